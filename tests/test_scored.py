"""Standard errors over test rows: of means by hand, of functions of means by resampling rows."""

from dataclasses import replace

import numpy as np
import pytest
from jax import numpy as jnp

from gpbench.core.predictive import CategoricalPredictive, CountPredictive, GaussianPredictive
from gpbench.metrics import Scored, score
from gpbench.scored import row_stderrs

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
        jackknife = np.sqrt((n - 1) / n * np.sum((replicates - replicates.mean()) ** 2))
        # nmse divides by a variance with n, which falls by a row's own distance too: a term of the next order
        assert error == pytest.approx(jackknife, rel={"rmse": 0.05, "rmse_std": 0.05, "nmse": 0.1}.get(name, 1e-9)), (
            name
        )


def test_an_error_of_no_rows_to_compare_is_absent():
    names = score("regression", scored := rows_of("regression"))
    assert row_stderrs(names, rows_of("regression", n=1)) == {}
    assert set(names) - set(row_stderrs(names, replace(scored, mean=scored.y))) == {
        "rmse",
        "rmse_std",
        "coverage_error",
    }
