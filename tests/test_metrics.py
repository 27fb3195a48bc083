"""Every metric has the right value, unit and direction."""

import math

import numpy as np
import pytest
from scipy.stats import laplace, norm

from gpbench.metrics import BOUNDS, METRICS, Scored, better, score

RNG = np.random.default_rng(1)


def gaussian(y, mean, var, **units):
    log_prob = -0.5 * (np.log(2 * np.pi * var) + (y - mean) ** 2 / var)
    return Scored(y=y, mean=mean, var=var, cdf=norm.cdf(y, mean, np.sqrt(var)), log_prob=log_prob, **units)


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
    assert set(good) == {m.name for m in METRICS.values() if m.compute and task in m.tasks and m.name not in BOUNDS}
    for name in good:
        ranked = sorted([bad[name], good[name]], reverse=better(name) == "higher")
        assert ranked[0] == good[name] != bad[name], name


def test_metrics_a_run_measures_have_a_direction_too():
    assert better("seconds") == "lower" and better("vlb") == "higher"


def test_nll_is_the_mean_loss_and_error_the_misclassified_fraction():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    p = np.array([0.9, 0.2, 0.4, 0.7])  # of +1
    values = score("binary", classes(y, np.stack([1 - p, p], axis=1)))
    assert values["nll"] == pytest.approx(-np.mean(np.log([0.9, 0.8, 0.4, 0.3])))
    assert values["error"] == 0.5


def test_one_class_in_the_test_rows_is_scored_against_its_own_column():
    for y in (1.0, -1.0):
        p = 0.9 if y > 0 else 0.1
        assert score("binary", classes(np.full(3, y), np.tile([1 - p, p], (3, 1))))["error"] == 0


def test_regression_metrics_are_in_their_units():
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


def test_a_calibrated_model_has_calibration_near_zero():
    for task in ("binary", "multiclass", "regression"):
        good, bad = (score(task, scored)["calibration"] for scored in good_and_bad(task))
        assert good < 0.04 < 0.15 < bad


def test_coverage_by_the_cdf_is_that_of_intervals_about_a_gaussian_mean():
    """Intervals mean ± q std of level p, with q the normal quantile at (1 + p) / 2."""
    y, mean, var = RNG.normal(size=500), 0.3 * RNG.normal(size=500), RNG.uniform(0.3, 2.0, size=500)
    levels = np.arange(0.05, 0.96, 0.05)
    inside = (np.abs(y - mean) / np.sqrt(var))[:, None] <= norm.ppf((1 + levels) / 2)
    expected = np.mean(np.abs(inside.mean(axis=0) - levels))
    assert score("regression", gaussian(y, mean, var))["calibration"] == pytest.approx(expected, rel=1e-12)


def test_a_density_that_is_not_gaussian_is_calibrated_by_its_own_cdf():
    y = RNG.laplace(size=4000)
    arrays = {"mean": np.zeros(4000), "var": np.full(4000, 2.0), "log_prob": laplace.logpdf(y)}
    own = score("regression", Scored(y=y, cdf=laplace.cdf(y), **arrays))["calibration"]
    normal = score("regression", Scored(y=y, cdf=norm.cdf(y, 0.0, np.sqrt(2.0)), **arrays))["calibration"]
    assert own < 0.015 < 0.04 < normal


@pytest.mark.filterwarnings("error")
def test_one_test_row_has_no_nmse_and_warns_of_nothing():
    assert not math.isfinite(score("regression", gaussian(np.ones(1), np.zeros(1), np.ones(1)))["nmse"])


def test_the_bound_is_in_original_units_with_the_held_out_rows_in_the_place_of_all():
    """The density of y = mean + std t is that of t divided by std: a bound on N rows falls by N log std."""
    told = {"y": np.zeros(4), "log_prob": np.zeros(4), "mean": np.zeros(4), "var": np.ones(4), "cdf": np.full(4, 0.5)}
    found = score(
        "regression",
        Scored(**told, train_rows=50, expected_log_prob=np.array([-1.0, -2.0, -3.0, -2.0]), kl=30.0, y_std=np.e),
    )
    assert found["vlb"] == pytest.approx(50 * (-2.0 - 1.0) - 30.0)
    assert found["vlb_per_row"] == pytest.approx(found["vlb"] / 50)
    assert not set(BOUNDS) & set(score("regression", Scored(**told)))
