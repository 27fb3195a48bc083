"""Every metric has the right value, unit and direction, and its standard error over test rows."""

from dataclasses import replace

import numpy as np
import pytest
from jax import numpy as jnp
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from gpbench.core.predictive import CategoricalPredictive, CountPredictive, GaussianPredictive, LaplacePredictive
from gpbench.metrics import METRICS, OPTIONAL, Scored, better, score, undefined
from gpbench.scored import ENDS, row_stderrs

RNG = np.random.default_rng(1)


def gaussian(y, mean, var, **units):
    arrays = GaussianPredictive(jnp.asarray(mean), jnp.asarray(var)).arrays(jnp.asarray(y))
    return Scored(y=y, **{name: np.asarray(array) for name, array in arrays.items()}, **units)


def classes(y, probs):
    codes = (y > 0).astype(int) if probs.shape[1] == 2 else y.astype(int)
    return Scored(y=y, log_probs=np.log(probs), log_prob=np.log(probs[np.arange(len(y)), codes]))


def good_and_bad(task):
    """Two models of one truth: the first is the truth's own distribution, the second is blunter and overconfident."""
    n = 4000
    if task == "regression":
        truth, y_std = RNG.normal(size=n), 3.0
        y = truth + 0.3 * RNG.normal(size=n)
        return (
            gaussian(y, truth, np.full(n, 0.09), y_std=y_std, y_train_var=1.2),
            gaussian(y, 0.3 * truth, np.full(n, 0.01), y_std=y_std, y_train_var=1.2),
        )
    C = {"binary": 2, "multiclass": 4}[task]
    good = RNG.dirichlet(np.full(C, 0.5), size=n)
    codes = np.array([RNG.choice(C, p=p) for p in good])
    sharp = RNG.permuted(good, axis=1) ** 3 + 1e-9
    y = (2 * codes - 1 if task == "binary" else codes).astype(float)
    return classes(y, good), classes(y, sharp / sharp.sum(1, keepdims=True))


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_the_better_model_is_better_in_every_metric(task):
    good, bad = (score(task, scored) for scored in good_and_bad(task))
    assert set(good) == {m.name for m in METRICS.values() if m.compute and task in m.tasks and m.name not in OPTIONAL}
    for name in good:
        if better(name):  # coverage95 and width95 have no direction
            ranked = sorted([bad[name], good[name]], reverse=better(name) == "higher")
            assert ranked[0] == good[name] != bad[name], name


def test_nll_error_auc_and_brier_are_those_of_their_definitions_and_of_scikit_learn():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    p = np.array([0.9, 0.2, 0.4, 0.7])  # of +1
    values = score("binary", classes(y, np.stack([1 - p, p], axis=1)))
    assert values["nll"] == pytest.approx(-np.mean(np.log([0.9, 0.8, 0.4, 0.3])))
    assert values["error"] == 0.5
    for y in (1.0, -1.0):
        p = 0.9 if y > 0 else 0.1
        assert score("binary", classes(np.full(3, y), np.tile([1 - p, p], (3, 1))))["error"] == 0
    assert better("seconds") == "lower" and better("vlb") == "higher"
    p = np.round(RNG.uniform(0.05, 0.95, size=300), 1)  # with ties
    y = np.where(RNG.uniform(size=300) < p, 1.0, -1.0)
    values = score("binary", classes(y, np.stack([1 - p, p], axis=1)))
    assert values["auc"] == pytest.approx(roc_auc_score(y, p), rel=1e-12)
    assert values["brier"] == pytest.approx(2 * np.mean((p - (y > 0)) ** 2))
    for p, auc in (([0.1, 0.2, 0.8], 1.0), ([0.9, 0.8, 0.1], 0.0), ([0.4, 0.4, 0.4], 0.5)):
        probs = np.stack([1 - np.array(p), p], axis=1)
        assert score("binary", classes(np.array([-1.0, -1.0, 1.0]), probs))["auc"] == auc


def test_regression_metrics_are_in_their_units_and_the_bound_in_original_ones():
    """Scaling the targets changes nothing in original and in standardised units."""
    y, mean = RNG.normal(5, 2, size=50), RNG.normal(5, 2, size=50)
    original = gaussian(y, mean, np.full(50, 1.7), y_train_var=4.0)
    scaled = gaussian((y - 5) / 2, (mean - 5) / 2, np.full(50, 1.7 / 4), y_mean=5.0, y_std=2.0, y_train_var=1.0)
    a, b = score("regression", original), score("regression", scaled)
    assert a == pytest.approx(b)
    assert a["rmse"] == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert a["rmse_std"] == pytest.approx(a["rmse"] / 2)
    assert a["test_ll"] == pytest.approx(np.mean(original.log_prob)) == pytest.approx(-a["mnlp"])
    assert a["ll_std"] == pytest.approx(a["test_ll"] + np.log(2))
    assert a["nmse"] == pytest.approx(a["rmse"] ** 2 / np.var(y))
    # The density of y = mean + std t is that of t divided by std: a bound on N rows falls by N log std.
    zeros = dict.fromkeys(("y", "log_prob", "mean", "crps", *ENDS), np.zeros(4))
    arrays = {**zeros, "var": np.ones(4), "cdf": np.full(4, 0.5)}
    bound = score(
        "regression",
        Scored(**arrays, train_rows=50, expected_log_prob=np.array([-1.0, -2.0, -3.0, -2.0]), kl=30.0, y_std=np.e),
    )
    assert bound["vlb"] == pytest.approx(50 * (-2.0 - 1.0) - 30.0)
    assert bound["vlb_per_row"] == pytest.approx(bound["vlb"] / 50)
    assert not set(OPTIONAL) & set(score("regression", Scored(**arrays)))


def test_a_calibrated_model_has_a_calibration_error_near_zero_and_95_percent_intervals_that_cover():
    for task, metric in (("binary", "ece"), ("multiclass", "ece"), ("regression", "coverage_error")):
        good, bad = (score(task, scored)[metric] for scored in good_and_bad(task))
        assert good < 0.04 < 0.15 < bad, task
    good, bad = (score("regression", scored) for scored in good_and_bad("regression"))
    assert good["coverage95"] == pytest.approx(0.95, abs=0.014)  # 4 standard errors of 4,000 rows
    assert good["width95"] == pytest.approx(2 * 1.959964 * 0.3 * 3.0, rel=1e-6)
    assert bad["width95"] < good["width95"] and bad["coverage95"] < 0.5
    assert better("coverage95") is better("width95") is None


def test_brier_is_the_sum_over_classes():
    probs = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0], [0.1, 0.8, 0.1]])
    with np.errstate(divide="ignore"):
        value = score("multiclass", classes(np.array([2.0, 0.0, 0.0]), probs))["brier"]
    assert value == pytest.approx(((0.04 + 0.09 + 0.25) + 0 + (0.81 + 0.64 + 0.01)) / 3)


@pytest.mark.filterwarnings("error")
def test_what_does_not_exist_on_a_test_set_is_undefined_with_the_reason():
    one_class = classes(np.ones(3), np.tile([0.1, 0.9], (3, 1)))
    equal = gaussian(np.ones(2), np.zeros(2), np.ones(2))
    for task, scored, reasons in (
        ("binary", one_class, {"auc": "1 class"}),
        ("regression", equal, {"nmse": "equal targets"}),
        ("regression", gaussian(np.ones(1), np.zeros(1), np.ones(1)), {"nmse": "equal targets"}),
        ("multiclass", one_class, {}),
        ("binary", classes(np.array([1.0, -1.0, 1.0]), np.tile([0.1, 0.9], (3, 1))), {}),
    ):
        assert undefined(task, scored) == reasons
        assert {name for name, value in score(task, scored).items() if np.isnan(value)} == {*reasons}


def test_coverage_is_that_of_intervals_or_of_the_densitys_own_cdf():
    """Intervals mean ± q std of level p, with q the normal quantile at (1 + p) / 2."""
    y, mean, var = RNG.normal(size=500), 0.3 * RNG.normal(size=500), RNG.uniform(0.3, 2.0, size=500)
    levels = np.arange(0.05, 0.96, 0.05)
    inside = (np.abs(y - mean) / np.sqrt(var))[:, None] <= norm.ppf((1 + levels) / 2)
    expected = np.mean(np.abs(inside.mean(axis=0) - levels))
    assert score("regression", gaussian(y, mean, var))["coverage_error"] == pytest.approx(expected, rel=1e-12)
    y = RNG.laplace(size=4000)
    own = LaplacePredictive(jnp.zeros(4000), jnp.full(4000, 1e-9), jnp.array(2.0)).arrays(jnp.asarray(y))
    arrays = {name: np.asarray(array) for name, array in own.items()}
    normal = {**arrays, "cdf": norm.cdf(y, 0.0, np.sqrt(2.0))}
    right, wrong = (score("regression", Scored(y=y, **part))["coverage_error"] for part in (arrays, normal))
    assert right < 0.015 < 0.04 < wrong


WITHOUT = {"ece", "auc", "coverage_error", "seconds"}
"""Metrics that are no functions of means over rows."""


def rows_of(task, n=60, seed=0):
    """A test set of unequal rows, with units of its own."""
    rng = np.random.default_rng(seed)
    if task == "regression":
        y, mean, var = rng.normal(size=n), 0.5 * rng.normal(size=n), rng.uniform(0.2, 1.5, size=n)
        predictive, units = GaussianPredictive(jnp.asarray(mean), jnp.asarray(var)), {"y_std": 3.0, "y_train_var": 1.3}
        units |= {"expected_log_prob": rng.normal(size=n), "kl": 7.0, "train_rows": 500}
    elif task == "count":
        y = rng.poisson(3.0, size=n).astype(float)
        predictive, units = CountPredictive(jnp.asarray(rng.normal(1.0, 0.3, n)), jnp.full(n, 0.2)), {}
    else:
        classes = {"binary": 2, "multiclass": 3}[task]
        codes = rng.integers(classes, size=n)
        y = (2.0 * codes - 1.0) if task == "binary" else codes.astype(float)
        predictive, units = CategoricalPredictive(jnp.asarray(rng.normal(size=(n, classes)))), {}
    return Scored(y=y, **{k: np.asarray(v) for k, v in predictive.arrays(jnp.asarray(y)).items()}, **units)


def selected(scored, rows):
    arrays = {name: value for name, value in vars(scored).items() if isinstance(value, np.ndarray) and len(value)}
    return replace(scored, **{name: value[rows] for name, value in arrays.items()})


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "count"])
def test_the_error_of_every_metric_is_that_of_rows_left_out_one_at_a_time(task):
    """The jackknife (Efron and Tibshirani 1993, chapter 11): exact for means, first order for functions of means."""
    scored = rows_of(task)
    n, values = len(scored.y), score(task, scored)
    errors = row_stderrs(values, scored)
    assert set(errors) == set(values) - WITHOUT
    left = [score(task, selected(scored, np.arange(n) != row)) for row in range(n)]
    for name, error in errors.items():
        replicates = np.array([value[name] for value in left])
        expected = np.sqrt((n - 1) / n * np.sum((replicates - replicates.mean()) ** 2))
        # nmse divides by a variance with n, which falls by a row's own distance too: a term of the next order
        assert error == pytest.approx(expected, rel={"rmse": 0.05, "rmse_std": 0.05, "nmse": 0.1}.get(name, 1e-9)), name


def test_an_error_of_no_rows_to_compare_is_absent():
    names = score("regression", scored := rows_of("regression"))
    assert row_stderrs(names, rows_of("regression", n=1)) == {}
    assert {*names} - {*row_stderrs(names, replace(scored, mean=scored.y))} == {"rmse", "rmse_std", "coverage_error"}
