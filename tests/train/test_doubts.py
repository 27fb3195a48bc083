"""Doubts stand in a run's record and output, where predictions are absurd or the data leave the method little."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from toys import job

from gpbench.core.likelihoods import Gaussian
from gpbench.data.dataset import Dataset
from gpbench.data.scaled import prepare
from gpbench.methods.parts.gradient import GradientState
from gpbench.metrics import Scored
from gpbench.train.doubts import doubts


def split(X, y, rows):
    columns = tuple(f"x{i}" for i in range(X.shape[1]))
    dataset = Dataset(name="odd", task="regression", X=X, y=y, columns=columns, classes=(), checksum="")
    return prepare(dataset, np.arange(rows), np.arange(rows, len(X)))


def scored(prepared, mean, variance, spread=0.1):
    """Normal predictions of the test rows, with means that differ by about this."""
    y = prepared.y_test
    mean = mean + spread * np.sin(np.arange(len(y)))
    log_prob = -0.5 * (np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)
    parts = {"y": y, "log_prob": log_prob, "mean": mean, "var": np.full(len(y), variance)}
    return Scored(**parts, y_mean=0.0, y_std=1.0, y_train_var=1.0, train_rows=len(prepared.y))


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(30, 3)), rng.uniform(size=30)


def test_predictions_worse_than_trivial_are_doubted(rows):
    prepared = split(*rows, 20)
    assert doubts(prepared, scored(prepared, 0.0, 0.5), ()) == {}
    assert list(doubts(prepared, scored(prepared, 0.0, 1e-3), ())) == ["excess_loss"]
    assert list(doubts(prepared, scored(prepared, 9.0, 100.0), ())) == ["excess_rmse"]


def test_a_loss_of_classes_is_compared_with_their_frequencies(rows):
    """The predictor of method=constant has (n_c + 1) / (n + C) for a class with n_c of the n training rows."""
    X, _ = rows
    y = np.arange(30.0) % 3
    columns, classes = ("a", "b", "c"), ("x", "y", "z")
    dataset = Dataset(name="odd", task="multiclass", X=X, y=y, columns=columns, classes=classes, checksum="")
    prepared = prepare(dataset, np.arange(20), np.arange(20, 30))
    log_probs = np.log((np.bincount(prepared.y.astype(int)) + 1.0) / (20 + 3))
    own = log_probs[prepared.y_test.astype(int)]
    spread = np.linspace(-9.0, 0.0, 30).reshape(10, 3)  # so that the predictions differ
    parts = {"y": prepared.y_test, "log_probs": spread, "y_mean": 0.0, "y_std": 1.0, "train_rows": 20}
    assert "excess_loss" not in doubts(prepared, Scored(log_prob=own - 4.9, **parts), None)
    assert doubts(prepared, Scored(log_prob=own - 6.0, **parts), None)["excess_loss"] == pytest.approx(6.0)


def test_one_prediction_for_all_rows_is_doubted_and_the_trivial_predictor_never(rows):
    prepared = split(*rows, 20)
    assert doubts(prepared, scored(prepared, 0.0, 0.5, spread=0.0), ()) == {"spread": pytest.approx(0.0, abs=1e-12)}
    assert doubts(prepared, scored(prepared, 0.0, 1.0, spread=0.0), ()) == {}
    X, y = rows
    y[25] = 1e6
    prepared = split(X, y, 20)
    assert doubts(prepared, scored(prepared, 0.0, 1.0, spread=0.0), ()) == {"far_rows": 1.0}


def test_what_the_data_leave_a_method_is_doubted(rows):
    X, y = rows
    prepared = split(X[:5], y[:5], 2)
    assert doubts(prepared, scored(prepared, 0.0, 10.0), ())["rows_per_input"] == pytest.approx(2 / 3)
    X[:20, 1], X[20:22, 1] = 7.0, 7.0
    found = doubts(constant := split(X, y, 20), scored(constant, 0.0, 1.0), ())
    assert found == {"unseen_rows": 8.0}


def test_noise_at_its_floor_or_below_a_thousandth_of_its_start_is_doubted_and_averages_of_gradients_are_no_noise(rows):
    prepared = split(*rows, 20)
    low, high = (Gaussian.initial(noise, 0, "float64", floor=1e-6) for noise in (1.1e-6, 0.1))
    assert doubts(prepared, scored(prepared, 0.0, 1.0), (high, {"of": low})) == {
        "noise_at_floor": pytest.approx(1.1e-6)
    }
    assert doubts(prepared, scored(prepared, 0.0, 1.0), high) == {}
    prepared = split(*rows, 20)
    lost, kept = (Gaussian.initial(noise, 0, "float64", floor=1e-6) for noise in (9e-5, 2e-4))
    ratio = {"noise_ratio": pytest.approx(9e-4)}
    assert doubts(prepared, scored(prepared, 0.0, 1.0), (kept, lost), noise=0.1) == ratio
    assert doubts(prepared, scored(prepared, 0.0, 1.0), (kept, lost)) == {}
    assert doubts(prepared, scored(prepared, 0.0, 1.0), kept, noise=0.1) == {}
    averages = optax.ScaleByAdamState(jnp.asarray(1), lost, Gaussian(jnp.asarray(-50.0), floor=1e-6))
    for state in (GradientState(parameters=kept, optimiser=lost), (kept, (averages, optax.EmptyState()))):
        assert doubts(prepared, scored(prepared, 0.0, 1.0), state, noise=0.1) == {}


def test_a_run_says_its_doubts_and_records_them(tmp_path, capsys, printed):
    (tmp_path / "dataset").mkdir()
    card = "name: few\ntask: regression\nsources: [{kind: file, path: few.csv, target: y}]\n"
    (tmp_path / "dataset" / "few.yaml").write_text(
        card + "splits: {set: random, sets: {random: 1}, test_rows: 2, train_rows: null}\n"
    )
    lines = [",".join(f"{v:.6f}" for v in row) for row in np.random.default_rng(1).normal(size=(6, 9))]
    (tmp_path / "dataset" / "few.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,y", *lines]) + "\n")
    from gpbench.cli import main

    words = ["dataset=few", "method=constant", f"run.results={tmp_path / 'r'}", "run.progress=false"]
    assert main(["run", f"--config-dir={tmp_path}", *words]) == 0
    assert "gpbench: warning: few constant: fewer training rows than inputs: 0.5 rows" in capsys.readouterr().err
    assert "rows_per_input 0.5" in printed("show", "--last", f"--results={tmp_path / 'r'}")


def test_an_ordinary_run_has_no_doubt(tmp_path, capsys):
    job(tmp_path, "dataset=moons", "method=walk", "method.steps=20")
    assert "warning" not in capsys.readouterr().err
