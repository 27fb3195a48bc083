"""Runs, estimators and predictions under a transform of the targets: those of a table of transformed targets."""

import numpy as np
import pandas
import pytest

from gpbench.cli import main
from gpbench.estimators import Regressor
from gpbench.records.store import Store

RNG = np.random.default_rng(0)
X = RNG.uniform(-2.0, 2.0, (90, 1))
Y = np.exp(np.sin(2.0 * X[:, 0]) + 0.3 * RNG.normal(size=90))
LOG = {"protocol.targets": "log"}


def run(folder, y, *words):
    folder.mkdir()
    pandas.DataFrame({"x": X[:, 0], "y": y}).to_csv(folder / "table.csv", index=False)
    assert main(["run", f"dataset={folder}/table.csv", "target=y", f"run.results={folder}/r", "split=0", *words]) == 0
    return Store(folder / "r").last(), Store(folder / "r")


@pytest.mark.parametrize("method", ["gpr", "ensemble"])
def test_a_density_of_logarithms_is_that_of_the_targets_but_for_the_slope(method, tmp_path):
    """Of a Gaussian, and of a mixture."""
    words = [f"method={method}", "run.save=true", "run.predictions=true"]
    words += ["method.steps=20"] if method == "ensemble" else []
    record, store = run(tmp_path / "a", Y, *words, "protocol.targets=log")
    plain, others = run(tmp_path / "b", np.log(Y), *words)
    ours, theirs = store.predictions(record.id), others.predictions(plain.id)
    target = ours["target"]
    np.testing.assert_allclose(np.log(target), theirs["target"], rtol=1e-9)
    np.testing.assert_allclose(ours["log_prob"], theirs["log_prob"] - np.log(target), rtol=1e-5, atol=1e-5)
    assert record.metrics["coverage95"] == plain.metrics["coverage95"]
    assert record.metrics["test_ll"] != pytest.approx(plain.metrics["test_ll"], abs=0.01)
    assert "targets=log" in record.setting and record.id != plain.id
    rows = tmp_path / "rows.csv"
    pandas.DataFrame({"x": X[ours["row"], 0]}).to_csv(rows, index=False)
    words = ["predict", "--last", "--results", f"{tmp_path}/a/r", "--data", str(rows), "--out", f"{tmp_path}/o.csv"]
    assert main([*words, "--config-dir", f"{tmp_path}/a"]) == 0
    np.testing.assert_allclose(pandas.read_csv(tmp_path / "o.csv")["mean"], ours["mean"], rtol=1e-6)


def test_an_estimator_has_the_moments_of_a_log_normal_distribution():
    mean, std = Regressor("gpr").fit(X, np.log(Y)).predict(X, return_std=True)
    model = Regressor("gpr", options=LOG).fit(X, Y)
    ours, spread = model.predict(X, return_std=True)
    total = np.exp(mean + std**2 / 2)
    np.testing.assert_allclose(ours, total, rtol=1e-6)
    np.testing.assert_allclose(spread, total * np.sqrt(np.expm1(std**2)), rtol=1e-6)
    for ask in (lambda: model.predict(X, return_cov=True), lambda: Regressor("gpr", options=LOG).fit(X, Y - 1.0)):
        with pytest.raises(ValueError, match=r"no joint covariance|and log is of numbers above 0"):
            ask()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dataset=moons"], "protocol.targets=log is for regression, and moons has other targets"),
        (["protocol.precision=float32"], "protocol.targets=log needs protocol.precision=float64"),
        (["run.keep=true"], "run.keep draws predictions without a transform"),
        (["method.likelihood=student_t"], "a StudentTPredictive, and transformed targets take Gaussians"),
        (["dataset=sinc"], "and log is of numbers above 0: take protocol.targets=yeo_johnson, or log1p"),
    ],
)
def test_what_has_no_transform_is_one_line_before_any_work(words, line, tmp_path, refused):
    data = [] if words[0].startswith("dataset") else ["dataset=friedman"]
    words = ["run", f"run.results={tmp_path}", "method=svi", "protocol.targets=log", "split=0", *data, *words]
    assert line in refused(*words, code=3 if words[-1] == "dataset=sinc" else 2)
    assert not list(tmp_path.glob("runs/*"))
