"""What a record has beside its metrics: doubts and slopes; the bound, the gap, what pictures need."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.stats import norm
from toys import job

from gpbench.config.compose import compose
from gpbench.core.likelihoods import Gaussian
from gpbench.data.dataset import Dataset
from gpbench.data.scaled import prepare
from gpbench.errors import ConfigError
from gpbench.methods.parts.gradient import GradientState
from gpbench.metrics import Scored
from gpbench.records.plan import GAP, RunPlan
from gpbench.records.store import Store
from gpbench.train import result
from gpbench.train.context import Context, load
from gpbench.train.doubts import doubts
from gpbench.train.result import _last_slope


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


def test_predictions_worse_than_trivial_or_one_for_all_rows_are_doubted_and_the_trivial_predictor_never(rows):
    prepared = split(*rows, 20)
    assert doubts(prepared, scored(prepared, 0.0, 0.5), ()) == {}
    assert list(doubts(prepared, scored(prepared, 0.0, 1e-3), ())) == ["excess_loss"]
    assert list(doubts(prepared, scored(prepared, 9.0, 100.0), ())) == ["excess_rmse"]
    assert doubts(prepared, scored(prepared, 0.0, 0.5, spread=0.0), ()) == {"spread": pytest.approx(0.0, abs=1e-12)}
    assert doubts(prepared, scored(prepared, 0.0, 1.0, spread=0.0), ()) == {}
    X, y = rows
    y[25] = 1e6
    prepared = split(X, y, 20)
    assert doubts(prepared, scored(prepared, 0.0, 1.0, spread=0.0), ()) == {"far_rows": 1.0}


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
    [at_floor] = doubts(prepared, scored(prepared, 0.0, 1.0), (high, {"of": low})).items()
    assert at_floor == ("noise_at_floor", pytest.approx(1.1e-6))
    assert doubts(prepared, scored(prepared, 0.0, 1.0), high) == {}
    lost, kept = (Gaussian.initial(noise, 0, "float64", floor=1e-6) for noise in (9e-5, 2e-4))
    ratio = {"noise_ratio": pytest.approx(9e-4)}
    assert doubts(prepared, scored(prepared, 0.0, 1.0), (kept, lost), noise=0.1) == ratio
    assert doubts(prepared, scored(prepared, 0.0, 1.0), (kept, lost)) == {}
    assert doubts(prepared, scored(prepared, 0.0, 1.0), kept, noise=0.1) == {}
    averages = optax.ScaleByAdamState(jnp.asarray(1), lost, Gaussian(jnp.asarray(-50.0), floor=1e-6))
    for state in (GradientState(parameters=kept, optimiser=lost), (kept, (averages, optax.EmptyState()))):
        assert doubts(prepared, scored(prepared, 0.0, 1.0), state, noise=0.1) == {}


def test_a_run_says_its_doubts_and_records_them(tmp_path, printed, streams, new_file):
    card = "name: few\ntask: regression\nsources: [{kind: file, path: few.csv, target: y}]\nsplits: "
    card += "{set: random, sets: {random: 1}, test_rows: 2, train_rows: null}\n"
    new_file(tmp_path / "dataset" / "few.yaml", card)
    lines = [",".join(f"{v:.6f}" for v in row) for row in np.random.default_rng(1).normal(size=(6, 9))]
    (tmp_path / "dataset" / "few.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,y", *lines]) + "\n")

    words = ["dataset=few", "method=constant", f"run.results={tmp_path / 'r'}", "run.progress=false"]
    said = streams("run", f"--config-dir={tmp_path}", *words).err
    assert "gpbench: warning: few constant: fewer training rows than inputs: 0.5 rows" in said
    assert "rows_per_input 0.5" in printed("show", "--last", f"--results={tmp_path / 'r'}")


SIZES = ["mean_basis=20", "covariance_basis=5", "growth=20", "columns=20", "batch_size=100", "trial_steps=5"]
SVDGP = ["method=svdgp", *(f"method.{size}" for size in SIZES)]


@pytest.mark.parametrize("words", [["method=svi", "method.inducing=10"], SVDGP], ids=["svi", "svdgp"])
@pytest.mark.parametrize("likelihood", ["gaussian", "laplace"])
def test_the_bound_lies_below_the_log_density_under_every_noise(words, likelihood, tmp_path):
    """E log p(y|f) is at most log E p(y|f), and the divergence at least 0."""
    (record,) = job(tmp_path, *words, "dataset=sinc500", f"method.likelihood={likelihood}", "method.steps=40")
    assert record.status == "done" and ("likelihood=laplace" in record.setting) == (likelihood == "laplace")
    assert record.metrics["vlb_per_row"] < record.metrics["test_ll"]


def of_sinc(results, *words):
    (record,) = job(results, "dataset=sinc500", "split=0", *words)
    return record


@pytest.mark.parametrize("rows", [50, 10_000])
def test_the_gap_is_of_the_first_training_rows_and_a_record_without_it_is_made_again(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(result, "_GAP_ROWS", rows)
    without, record = (of_sinc(tmp_path, "method=constant", f"run.gap={value}") for value in ("false", "true"))
    assert GAP not in (without.diagnostics or {}) and record.id == without.id
    plan = RunPlan.from_config(compose(["dataset=sinc500", "split=0", "method=constant"]))
    _, (split,) = load(Context(plan), plan.runs)
    density = norm(np.mean(split.y), np.std(split.y)).logpdf
    gap = density(split.y[:rows]).mean() - density(split.y_test).mean()
    assert record.diagnostics[GAP] == pytest.approx(gap, rel=1e-3, abs=1e-6)
    again = of_sinc(tmp_path, "method=constant", "run.gap=true")
    assert again.created == record.created


def test_a_run_that_is_made_again_for_its_gap_keeps_its_state_and_the_other_way_round(tmp_path):
    of_sinc(tmp_path, "method=constant", "run.save=true")
    record = of_sinc(tmp_path, "method=constant", "run.gap=true")
    assert record.saved and GAP in record.diagnostics
    record = of_sinc(tmp_path, "method=constant", "run.keep=true")
    assert record.saved and record.kept and GAP in record.diagnostics


def traced(results, *words):
    (record,) = job(results, *words)
    return record, Store(results).trace(record.id)


def test_grid_predictions_rows_and_inducing_points_are_kept(tmp_path):
    words = ["dataset=moons", "method.inducing=5", "protocol.steps=3"]
    record, trace = traced(tmp_path, *words)
    assert not record.kept and not any(name.startswith("kept_") for name in trace)
    again, trace = traced(tmp_path, *words, "run.keep=true")
    assert again.id == record.id and again.kept and again.metrics == record.metrics
    assert trace["kept_inducing"].shape == (5, 2) and len(trace["kept_X"]) == len(trace["kept_y"])
    grid, X = trace["kept_grid"], trace["kept_X"]
    assert (grid.min(axis=0) < X.min(axis=0)).all() and (grid.max(axis=0) > X.max(axis=0)).all()
    np.testing.assert_allclose(np.exp(trace["kept_log_probs"]).sum(axis=1), 1, rtol=1e-5)
    third, _ = traced(tmp_path, *words)
    assert third.created == again.created  # asked for less, it is the same run


def test_regression_on_one_input_keeps_mean_and_variance_and_more_than_two_are_refused(tmp_path):
    _, trace = traced(tmp_path, "dataset=sinc", "method=linear", "run.keep=true")
    grid, X = trace["kept_grid"], trace["kept_X"]
    assert grid.shape == (1200, 1) and trace["kept_mean"].shape == trace["kept_var"].shape == (1200,)
    span = np.ptp(X)  # pictures may extrapolate by as much on either side
    np.testing.assert_allclose([grid.min(), grid.max()], [X.min() - span, X.max() + span], rtol=1e-5)
    with pytest.raises(ConfigError, match="one or two inputs, and these have 30"):
        traced(tmp_path, "dataset=wdbc", "method=constant", "run.keep=true")


def trace(every, steps, objective):
    """A trace of two runs: the first has this objective, as a function of the steps, and the second none that rises."""
    ends = np.arange(every, steps + 1, every)
    means = [objective(np.arange(end - every, end) + 0.5).mean() for end in ends]
    return {"step": ends, "objective_mean": np.column_stack([means, np.full(len(ends), 3.0)])}


@pytest.mark.parametrize("every", [1, 10, 100])
def test_a_straight_line_has_its_own_slope_however_often_it_is_recorded(every):
    straight = trace(every, 1000, lambda t: 0.04 * t)
    assert _last_slope(straight, 0, rows=50) == pytest.approx(0.04 * 100 / 50)
    assert _last_slope(straight, 1, rows=50) == pytest.approx(0.0, abs=1e-12)


def test_only_the_last_three_tenths_of_the_training_count_and_too_few_points_or_numbers_not_finite_have_none():
    bent = trace(50, 1000, lambda t: np.where(t < 700.0, 5.0 * t, 3500.0))
    assert _last_slope(bent, 0, rows=1) == pytest.approx(0.0, abs=1e-9)
    assert _last_slope({}, 0, rows=1) is None
    assert _last_slope(trace(1000, 1000, lambda t: t), 0, rows=1) is None
    assert _last_slope(trace(100, 1000, lambda t: t * np.nan), 0, rows=1) is None
    earlier = {**trace(100, 1000, lambda t: t), "objective_mean": np.zeros((4, 2))}  # of an earlier version
    assert _last_slope(earlier, 0, rows=1) is None
