"""The scikit-learn estimators: scikit-learn's own checks, and the numbers of `gpbench run`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpbench.data import Dataset, splits
from gpbench.estimators import Classifier, Regressor

ROOT = Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


@parametrize_with_checks([Classifier(method="logistic"), Regressor(method="linear")])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


QUICK = {"method.inducing": 2, "method.steps": 40}
FEW = {"check_classifiers_train", "check_estimators_pickle", "check_fit_idempotent", "check_regressors_train"}
"""The checks that see what is particular to a method; each costs a compilation."""


@parametrize_with_checks([Classifier(options=QUICK), Regressor(options={**QUICK, "method.inducing": 8})])
def test_checks_pass_for_the_sparse_methods_too(estimator, check):
    if check.func.__name__ not in FEW:
        pytest.skip("as for the other methods")
    check(estimator)


def run_on_the_same_rows(folder, task, targets, method):
    """The metrics of `gpbench run` on a card named `data`, and its rows (training, test)."""
    (folder / "dataset").mkdir()
    rows = [",".join(map(str, [*x, t])) for x, t in zip(X, targets)]
    (folder / "dataset" / "data.csv").write_text("\n".join(["a,b,target", *rows]))
    card = {"name": "data", "task": task, "sources": [{"kind": "file", "path": "data.csv", "target": "target"}]}
    (folder / "dataset" / "data.yaml").write_text(json.dumps(card))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": str(folder / "results")}
    words = ["run", "--json", "--config-dir", str(folder), "dataset=data", *method]
    done = subprocess.run([sys.executable, "-m", "gpbench", *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    order = splits.indices(card, Dataset("data", task, X, F, ("a", "b"), (), ""), 0)
    return json.loads(done.stdout)["records"][0]["metrics"], *order


def test_a_classifier_gives_the_numbers_of_a_run_on_the_same_rows(tmp_path):
    y = np.where(F > 0, 1, 0)
    words = ["method=sep", "method.inducing=6", "method.steps=20"]
    metrics, train, test = run_on_the_same_rows(tmp_path, "binary", y, words)
    ours = Classifier(options={"method.inducing": 6, "method.steps": 20}).fit(X[train], y[train])
    nll = -np.log(ours.predict_proba(X[test])[np.arange(len(test)), y[test]]).mean()
    assert nll == pytest.approx(metrics["nll"], rel=1e-6)


def test_a_regressor_gives_the_numbers_of_a_run_on_the_same_rows(tmp_path):
    words = ["method=svi", "method.inducing=6", "method.steps=20"]
    metrics, train, test = run_on_the_same_rows(tmp_path, "regression", F, words)
    ours = Regressor(options={"method.inducing": 6, "method.steps": 20}).fit(X[train], F[train])
    mean, std = ours.predict(X[test], return_std=True)
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((F[test] - mean) / std) ** 2
    assert np.sqrt(np.mean((mean - F[test]) ** 2)) == pytest.approx(metrics["rmse"], rel=1e-6)
    assert density.mean() == pytest.approx(metrics["test_ll"], rel=1e-6)


def test_three_classes_with_a_method_for_two_go_one_against_the_rest():
    y = np.searchsorted([-0.5, 0.5], F)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Classifier(options=QUICK).fit(X, y)
    assert OneVsRestClassifier(Classifier(options=QUICK)).fit(X, y).predict_proba(X).shape == (60, 3)
    assert Classifier(method="logistic").fit(X, y).predict_proba(X).shape == (60, 3)


@pytest.mark.parametrize(
    "estimator, line",
    [
        (Classifier(method="sepp"), "method=sepp: no such method; did you mean sep"),
        (Classifier(protocol="cleen"), "protocol=cleen: no such protocol; did you mean clean"),
        (Classifier(options={"method.indcing": 3}), "no key 'indcing' in method"),
        (Classifier(options={"run.jobs": 3}), "'run.jobs' is no setting of the method or the protocol"),
        (Classifier(options={"method.inducing": 3000}), "asks for 3000 inducing points, but there are 60"),
        (Classifier(method="linear"), "method linear is for regression data, and these are binary"),
    ],
)
def test_mistakes_are_a_value_error_of_one_line(estimator, line):
    with pytest.raises(ValueError, match=re.escape(line)) as caught:
        estimator.fit(X, F > 0)
    assert "\n" not in str(caught.value)


def test_jax_without_64_bit_types_is_said_and_not_changed():
    code = "import jax; from gpbench.estimators import Regressor; Regressor('linear').fit([[0], [1], [2]], [0, 1, 3])"
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("ValueError: JAX was imported without 64-bit types")
