"""Recalibration of runs and estimators by training rows that do not train."""

import json

import numpy as np
import pandas
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from gpbench.cli import main
from gpbench.data.split_sets import generator
from gpbench.estimators import Classifier, Regressor
from gpbench.records.store import Store

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (150, 1))
Y = np.sin(2.0 * X[:, 0]) + 0.3 * RNG.standard_t(3, size=150)
ORDER = generator("data", "recalibrate", 0).permutation(150)
TRAINED, KEPT_OUT = np.sort(ORDER[:-50]), ORDER[-50:]


def options(name, **more):
    return {"options": {"protocol.recalibrate": name, **more}}


def test_factors_are_those_of_rows_that_did_not_train():
    """The closed form of Gaussians, and the 49th of 50 scores; intervals and deviations have them."""
    plain = Regressor("gpr").fit(X[TRAINED], Y[TRAINED])
    mean, std = plain.predict(X[KEPT_OUT], return_std=True)
    z = (Y[KEPT_OUT] - mean) / std
    scale, conformal = (Regressor("gpr", **options(name)).fit(X, Y) for name in ("scale", "conformal"))
    assert scale.factor_ == pytest.approx(np.sqrt(np.mean(z**2)), rel=1e-4)
    assert conformal.factor_ == pytest.approx(np.sort(np.abs(z))[48] / 1.959964, rel=1e-6)
    ours, spread = scale.predict(X, return_std=True)
    np.testing.assert_allclose(ours, plain.predict(X), rtol=1e-9)
    np.testing.assert_allclose(spread, scale.factor_ * plain.predict(X, return_std=True)[1], rtol=1e-9)
    for model, deviation in ((scale, spread), (conformal, spread / scale.factor_ * conformal.factor_)):
        np.testing.assert_allclose(model.predict_interval(X), ours + 1.959964 * np.outer([-1, 1], deviation), rtol=1e-6)


def test_the_temperature_is_the_best_of_rows_that_did_not_train():
    labels = np.where(RNG.uniform(size=150) < 0.1, -1.0, 1.0) * np.sign(Y)
    plain = Classifier("svi").fit(X[TRAINED], labels[TRAINED])
    log_probs = np.log(plain.predict_proba(X[KEPT_OUT]))
    column = (labels[KEPT_OUT] > 0).astype(int)
    loss = lambda t: -log_softmax(log_probs / np.exp(t), axis=1)[np.arange(50), column].mean()
    best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-9}).x
    model = Classifier("svi", **options("temperature")).fit(X, labels)
    assert model.factor_ == pytest.approx(np.exp(best), rel=1e-4)
    assert np.log(model.factor_) != pytest.approx(0.0, abs=0.01)
    expected = np.exp(log_softmax(np.log(plain.predict_proba(X)) / model.factor_, axis=1))
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-6)


def test_conformal_intervals_cover_within_their_bounds_over_200_simulated_sets():
    """Between 95 % and 49/51 of new rows on average; Gaussian intervals do not, as the noise is uniform."""
    covered = {"conformal": [], None: []}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(400, 1))
        targets = rows[:, 0] + rng.uniform(-1.0, 1.0, 400)
        for name, shares in covered.items():
            low, high = Regressor("linear", **options(name)).fit(rows[:100], targets[:100]).predict_interval(rows[100:])
            shares.append(np.mean((low <= targets[100:]) & (targets[100:] <= high)))
    (mean, plain), error = (np.mean(v) for v in covered.values()), np.std(covered["conformal"]) / np.sqrt(200)
    assert 0.95 - 2.0 * error < mean < 49 / 51 + 2.0 * error
    assert plain > 49 / 51 + 5.0 * error


def test_a_record_has_its_metrics_before_and_after_and_new_rows_their_intervals(tmp_path, printed):
    table, rows = tmp_path / "table.csv", tmp_path / "rows.csv"
    pandas.DataFrame({"x": X[:, 0], "y": np.exp(Y)}).to_csv(table, index=False)
    shared = ["run", f"dataset={table}", "target=y", f"run.results={tmp_path}/r", "run.save=true", "split=[0,1]"]
    shared += ["method=gpr", "protocol.targets=log", "run.predictions=true"]
    assert main([*shared, "protocol.recalibrate=scale", "run.together=true"]) == 0
    record, store = Store(tmp_path / "r").last(), Store(tmp_path / "r")
    assert record.train_rows == 135 - 50 and "recalibrate=scale" in record.setting
    own, trace = record.diagnostics, store.trace(record.id)
    assert own["recalibration"] != 1.0 and own["before_test_ll"] == pytest.approx(trace["test_ll"][-1])
    assert own["before_test_ll"] != pytest.approx(record.metrics["test_ll"], abs=1e-3)
    words = ["table", "--metric", "test_ll,diagnostics.before_test_ll", "--json", "--config-dir", str(tmp_path)]
    entries = json.loads(printed(*words, "--results", f"{tmp_path}/r"))
    means = {entry["metric"]: entry["mean"] for entry in entries}
    assert means["diagnostics.before_test_ll"] != pytest.approx(means["test_ll"], abs=1e-3)
    ours = store.predictions(record.id)
    pandas.DataFrame({"x": X[ours["row"], 0]}).to_csv(rows, index=False)
    predict = ["predict", "--last", "--results", f"{tmp_path}/r", "--data", str(rows), "--config-dir", str(tmp_path)]
    assert main([*predict, "--out", f"{tmp_path}/out.csv"]) == 0
    frame = pandas.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(frame["variance"], ours["variance"], rtol=1e-6)
    inside = np.mean((frame["low95"] <= ours["target"]) & (ours["target"] <= frame["high95"]))
    assert inside == pytest.approx(record.metrics["coverage95"]) and (frame["low95"] > 0.0).all()
    assert main([*shared, "protocol.recalibrate=scale", "run.together=1", "run.again=true"]) == 0
    again = Store(tmp_path / "r").get(record.id)
    assert again.diagnostics["recalibration"] == pytest.approx(own["recalibration"], rel=1e-4)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dataset=friedman", "protocol.recalibrate=temperature"], "is for binary or multiclass data"),
        (["dataset=moons", "protocol.recalibrate=scale"], "is for regression data, and these are binary"),
        (["dataset=sinc", "protocol.recalibrate=scale", "run.keep=true"], "run.keep draws predictions without"),
        (["dataset=sinc", "protocol.recalibrate=isotonic"], "protocol.recalibrate=isotonic: must be"),
    ],
)
def test_what_cannot_be_recalibrated_is_one_line_before_any_work(words, line, tmp_path, refused):
    assert line in refused("run", f"run.results={tmp_path}", "method=svi", "split=0", *words)
    assert not list(tmp_path.glob("runs/*"))


def test_few_rows_and_what_an_estimator_lacks_are_refused():
    make = lambda name, **more: Regressor(name, **options("scale"), **more)
    for message, ask in (
        ("keeps 50 training rows out, and there are 90", lambda: make("gpr").fit(X[:90], Y[:90])),
        ("takes no sample_weight", lambda: make("gpr").fit(X, Y, np.arange(150.0) + 1.0)),
        ("no sample_weight", lambda: make("pbp", weights="repeats").fit(X, Y, np.arange(150) % 2 + 1.0)),
        ("no joint covariance", lambda: make("linear").fit(X, Y).predict(X, return_cov=True)),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
