"""The scikit-learn estimators: scikit-learn's own checks, and the numbers of `gpbench run`."""

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from gpbench.cli import main
from gpbench.config.declared import methods
from gpbench.data import cards, load, splits
from gpbench.estimators import Classifier, Regressor
from gpbench.estimators.compiled import programs_of

ROOT = Path(__file__).resolve().parents[1]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
F = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]


def expected_failures(estimator) -> dict[str, str]:
    failures = {"check_sample_weight_equivalence_on_dense_data": "is of repeats, and weights are precisions by default"}
    if estimator.method == "constant":
        failures["check_classifiers_train"] = "asserts an accuracy of 83 %, and this method ignores the inputs"
    return failures


# Every check has data of another shape, and every shape is compiled: the whole suite runs on methods that compile fast.
@parametrize_with_checks(
    [Classifier(method="constant"), Regressor(method="linear")], expected_failed_checks=expected_failures
)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


FEW = {"method.inducing": 6, "method.steps": 20}
FEWER = {"method.inducing": 2, "method.steps": 40}
ACCURATE = [Classifier(method="logistic"), Classifier(options=FEWER), Regressor(options=FEW)]


@pytest.mark.parametrize("estimator", ACCURATE, ids=lambda estimator: estimator.method)
def test_the_checks_of_accuracy_pass_for_methods_that_see_the_inputs(estimator):
    names = ("check_classifiers_train", "check_regressors_train")
    of = [(owner, check) for owner, check in estimator_checks_generator(estimator) if check.func.__name__ in names]
    assert of
    for owner, check in of:
        check(owner)


@pytest.fixture
def run_on_the_same_rows(tmp_path, monkeypatch, capsys, new_file):
    """A function from task, targets and method to the record of `gpbench run` on a card named `data`, and its rows
    (training, test)."""

    def run(task, targets, method):
        rows = [",".join(map(str, [*x, t])) for x, t in zip(X, targets)]
        new_file(tmp_path / "dataset" / "data.csv", "\n".join(["a,b,target", *rows]))
        card = {"name": "data", "task": task, "sources": [{"kind": "file", "path": "data.csv", "target": "target"}]}
        (tmp_path / "dataset" / "data.yaml").write_text(json.dumps(card))
        monkeypatch.setenv("GPBENCH_RESULTS", str(tmp_path / "results"))
        monkeypatch.setattr(sys, "path", [*sys.path])
        settings = [f"{key}={value}" for key, value in FEW.items()]
        words = ["--json", "--config-dir", str(tmp_path), "dataset=data", f"method={method}", *settings]
        assert main(["run", *words]) == 0
        card = cards.read("data", [tmp_path])  # with the split set that its task has by default
        order = splits.indices(card, load(card, config_dirs=[tmp_path]), 0)
        return json.loads(capsys.readouterr().out)["records"][0], *order

    return run


def test_a_classifier_gives_the_numbers_of_a_run_on_the_same_rows(run_on_the_same_rows):
    y = np.where(F > 0, 1, 0)
    record, train, test = run_on_the_same_rows("binary", y, "sep")
    ours = Classifier(options=FEW).fit(X[train], y[train])
    nll = -np.log(ours.predict_proba(X[test])[np.arange(len(test)), y[test]]).mean()
    assert nll == pytest.approx(record["metrics"]["nll"], rel=1e-6)


def test_a_regressor_gives_the_numbers_of_a_run_on_the_same_rows(run_on_the_same_rows):
    record, train, test = run_on_the_same_rows("regression", F, "svi")
    ours = Regressor(options=FEW).fit(X[train], F[train])
    mean, std = ours.predict(X[test], return_std=True)
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((F[test] - mean) / std) ** 2
    assert np.sqrt(np.mean((mean - F[test]) ** 2)) == pytest.approx(record["metrics"]["rmse"], rel=1e-6)
    assert density.mean() == pytest.approx(record["metrics"]["test_ll"], rel=1e-6)
    assert record["held_out"] is True and record["scaled_by_all_rows"] is False


def test_predictions_follow_the_units_of_inputs_and_targets():
    """Under every scaler that has a unit: the same rows in other units give the same predictions in other units."""
    for scaler in ("standardise", "unit_interval"):
        options = {"protocol.inputs": scaler, "protocol.targets": scaler}
        mean, std = Regressor("linear", options=options).fit(X, F).predict(X[:9], return_std=True)
        other = Regressor("linear", options=options).fit(3 * X - 7, 100 * F + 50)
        other_mean, other_std = other.predict(3 * X[:9] - 7, return_std=True)
        np.testing.assert_allclose(other_mean, 100 * mean + 50, rtol=1e-6)
        np.testing.assert_allclose(other_std, 100 * std, rtol=1e-6)


def test_other_numbers_of_rows_need_no_compilation_and_change_no_prediction():
    """60, 50 and 3 rows have one program; 300 have another, and the same predictions."""
    model = Regressor("svi", options=FEW).fit(X, F)
    programs = programs_of(model.config_)
    mean, std = model.predict(X, return_std=True)
    compiled = len(programs._compiled)
    for rows in (slice(50), slice(57, 60)):
        np.testing.assert_allclose(model.predict(X[rows], return_std=True), (mean[rows], std[rows]), rtol=1e-12)
    assert len(programs._compiled) == compiled
    np.testing.assert_allclose(model.predict(np.tile(X, (5, 1))), np.tile(mean, 5), rtol=1e-12)
    assert len(programs._compiled) == compiled + 1


def test_three_classes_go_one_against_the_rest_and_counts_need_their_likelihood():
    y = np.searchsorted([-0.5, 0.5], F)[:54]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        Classifier(options=FEW).fit(X[:54], y)
    rest = OneVsRestClassifier(Classifier(options=FEW)).fit(X[:54], y)
    assert rest.predict_proba(X[54:]).shape == (6, 3)
    assert Classifier(method="constant").fit(X[:54], y).predict_proba(X[54:]).shape == (6, 3)
    y = np.random.default_rng(1).poisson(np.exp(1.0 + F))
    regressor = Regressor(options={"method.likelihood": "poisson", **FEW}).fit(X, y)
    mean, std = regressor.predict(X, return_std=True)
    assert np.corrcoef(mean, np.exp(F))[0, 1] > 0.7 and (std**2 > mean).all()
    with pytest.raises(ValueError, match="data: column 'y', row 1: "):
        regressor.fit(X, y - 0.5)
    with pytest.raises(ValueError, match=r"hmc needs a .* likelihood, not poisson"):
        Regressor(method="hmc", options={"method.likelihood": "poisson"}).fit(X, y)
    with pytest.raises(ValueError, match="regression data, and these are count"):
        Regressor(method="dsdgp", options={"method.likelihood": "poisson"}).fit(X, y)


MISTAKES = {
    "method=sepp: no such method; did you mean sep": {"method": "sepp"},
    "no key 'indcing' in method": {"options": {"method.indcing": 3}},
    "method.noise=nan: must be a number above 0": {"options": {"method.noise": float("nan")}},
    "config_dir /nowhere: no such folder": {"config_dir": "/nowhere"},
    "random_state=-1: must be a whole number from 0 to 4294967295": {"random_state": -1},
    "random_state='abc': give a whole number, a RandomState or None": {"random_state": "abc"},
    "'run.jobs' is no setting of the method or the protocol": {"options": {"run.jobs": 3}},
    "15%, at last 20: must be a whole number": {"options": {"method.inducing": "15%, at last 20"}},
    "asks for 3000 inducing points, but there are 60": {"options": {"method.inducing": 3000}},
    "method linear is for regression data, and these are binary": {"method": "linear"},
}


def test_mistakes_are_a_value_error_of_one_line(one_line):
    for line, parameters in MISTAKES.items():
        with one_line(ValueError, match=re.escape(line)):
            Classifier(**parameters).fit(X, F > 0)
    with pytest.raises(ValueError, match=r"^y has one class only, .*: give rows of at least two classes$"):
        Classifier(options=FEW).fit(X, np.ones(len(X)))


def test_a_size_with_a_least_number_is_a_text_lists_in_texts_stay_lists_and_defaults_are_of_the_task():
    options = {"method.inducing": "15%, at least 20", "method.hidden": "[2, 1]"}
    method = Regressor("dgp", options=options)._composed(200)["method"]
    assert (method["inducing"], method["hidden"]) == ("15%, at least 20", [2, 1])
    assert [kind("qsrvm")._composed(200)["method"]["rate"] for kind in (Regressor, Classifier)] == [0.01, 0.1]


def test_random_state_is_the_seed_or_its_generator_and_jax_without_64_bit_types_is_an_error():
    def seed(state):
        return Regressor("svi", random_state=state)._composed(9)["seed"]

    assert (seed(3), seed(np.int64(3)), Regressor("svi")._composed(9)["seed"]) == (3, 3, 0)
    assert seed(np.random.RandomState(5)) == seed(np.random.RandomState(5)) != seed(np.random.RandomState(6))
    assert seed(None) != seed(None)
    code = "import jax; from gpbench.estimators import Regressor; Regressor('linear').fit([[0], [1], [2]], [0, 1, 3])"
    assert in_a_new_process(code).startswith("ValueError: JAX was imported without 64-bit types")


def in_a_new_process(code: str, *words) -> str:
    """The last line that a program prints to which nobody has said that JAX has 64-bit types."""
    environment = {k: v for k, v in os.environ.items() if k != "JAX_ENABLE_X64"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *map(str, words)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    return (process.stdout or process.stderr).splitlines()[-1]


_SMALL = {"method.features": "rff", "method.basis": 50, "method.basis_batch": 10, "method.block": 10}
SAVED = {
    "of two classes": (Classifier("logistic", options={"method.steps": 3}), F > 0),
    "with a random key": (Regressor("qsgp", options=_SMALL), F),
    "of a method of one's own": (Regressor("robust_gp", config_dir=ROOT / "docs" / "examples", options=FEW), F),
}


def test_saved_estimators_predict_in_a_new_process_which_imports_nothing_first(tmp_path):
    models = [model.fit(X, y) for model, y in SAVED.values()]
    joblib.dump((models, X), tmp_path / "saved")
    code = "import joblib, sys; models, X = joblib.load(sys.argv[1]); print([float(m.predict(X)[0]) for m in models])"
    printed = in_a_new_process(code, tmp_path / "saved")
    np.testing.assert_allclose(json.loads(printed), [float(model.predict(X)[0]) for model in models], rtol=1e-6)
    line = in_a_new_process(f"import jax\n{code}", tmp_path / "saved")
    assert line.startswith("ValueError: Classifier: JAX was imported without 64-bit types")


def test_a_saved_estimator_of_another_version_or_without_its_class_is_refused(monkeypatch):
    model = Regressor("linear").fit(X, F)
    kept = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"^Regressor: it was saved by gpbench an earlier version, and this is"):
        Regressor("linear").__setstate__(vars(model))
    monkeypatch.delattr("gpbench.methods.baselines.linear.LinearState")
    with pytest.raises(ValueError, match=r"^Regressor: its method is not here, or is another one now \(.*LinearState"):
        pickle.loads(kept)
    monkeypatch.setattr("gpbench.estimators.compiled.__version__", "0.0.9")
    with pytest.raises(ValueError, match=r"^Regressor: it was saved by gpbench 0.1.0, and this is 0.0.9: fit it again"):
        pickle.loads(kept)


def test_a_users_method_on_a_dataframe_in_a_search_over_one_of_its_options():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"rain": X[:, 0].astype(np.float32), "wind": X[:, 1]})
    own = Regressor(method="robust_gp", config_dir=ROOT / "docs" / "examples", options={"method.inducing": 5})
    search = GridSearchCV(own, {"method.steps": [1, 40]}, cv=2).fit(frame, pandas.Series(F))
    best = search.best_estimator_
    assert best.options == {"method.inducing": 5, "method.steps": 40} and own.options == {"method.inducing": 5}
    assert best.get_params()["method.steps"] == 40 and list(best.feature_names_in_) == ["rain", "wind"]
    np.testing.assert_array_equal(best.predict(frame), clone(best).fit(frame.to_numpy(), F).predict(frame.to_numpy()))
    with pytest.raises(ValueError, match="feature names"):
        best.predict(frame[["wind", "rain"]])
    with pytest.raises(ValueError, match="Invalid parameter 'inducing'"):
        own.set_params(inducing=3)


CRASH = """
from gpbench.methods.baselines.linear import Linear

class Crash(Linear):
    def step(self, state, batch, *, key):
        raise RuntimeError("of mine")

class Late(Linear):
    def predict(self, state, X, *, key):
        if len(X) > 1:
            raise RuntimeError("of mine")
        return super().predict(state, X, key=key)
"""


def test_an_error_of_a_users_method_is_one_line_in_fit_and_in_predict(tmp_path, new_file):
    (tmp_path / "crashing_methods.py").write_text(CRASH)
    for name in ("Crash", "Late"):
        text = f"_target_: crashing_methods.{name}\nname: {name.lower()}\nsteps: 1\n"
        new_file(tmp_path / "method" / f"{name.lower()}.yaml", text)
    line = r"method {} \(\S*crashing_methods.py, line \d+\): RuntimeError: of mine; `gpbench check"
    with pytest.raises(ValueError, match=line.format("crash")):
        Regressor(method="crash", config_dir=tmp_path).fit(X, F)
    model = Regressor(method="late", config_dir=tmp_path).fit(X, F)
    with pytest.raises(ValueError, match=line.format("late")):
        model.predict(X)


BAGS = {
    "with weights": (BaggingRegressor(Regressor("linear"), n_estimators=2), F),
    "without weights": (BaggingRegressor(Regressor("pbp", options={"method.hidden": [2], "method.steps": 2}), 2), F),
    "of classes": (BaggingClassifier(Classifier(options={"method.inducing": 3, "method.steps": 2}), 2), F > 0),
    "boosted": (AdaBoostRegressor(Regressor("constant"), n_estimators=2), F),
    "boosted by weights": (AdaBoostClassifier(Classifier("logistic"), n_estimators=2), F > 0),
}


@pytest.mark.parametrize(("ensemble", "y"), BAGS.values(), ids=BAGS)
def test_ensembles_of_scikit_learn_fit_methods_with_and_without_weights(ensemble, y):
    predicted = ensemble.set_params(random_state=0).fit(X, y).predict(X)
    assert len(ensemble.estimators_) == 2 and predicted.shape == (60,)


def test_options_are_mappings_numbers_and_words_and_the_methods_that_the_guide_names_take_weights():
    shipped = {path.stem for path in (ROOT / "conf" / "method").glob("*.yaml")}
    page = (ROOT / "docs" / "how-to" / "estimators.md").read_text()
    (sentence,) = re.findall(r"Most sparse GPs, (.*?) take any weights", page, re.DOTALL)
    named = {*re.findall(r"\w+", sentence)} & shipped
    assert named and named <= {*methods(lambda declared: declared["sample_weights"])}
    kernel = {"sum": [{"periodic": {"period": 70.0}}, "linear"]}
    for value in (kernel, "{sum: [{periodic: {period: 70.0}}, linear]}"):
        options = {"method.kernel": value, "method.steps": np.int64(3), "method.rates": ()}
        model = Regressor("gpr", options=options).fit(X[:, :2], F)
        assert model.config_["method"]["kernel"] == kernel
        assert model.config_["method"]["steps"] == 3 and np.isfinite(model.predict(X[:2, :2])).all()
