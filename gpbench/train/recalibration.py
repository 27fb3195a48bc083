"""Recalibration of predictions by training rows that were kept out of training."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from gpbench.core.predictive.recalibrated import Recalibration, middle_and_half
from gpbench.train.group import Fit, Group, Predictions
from gpbench.train.programs import Programs

_RANGE, _ROUNDS = (0.05, 20.0), 30  # of a factor, and of golden sections, which leave 4e-6 of its logarithm
_GOLDEN = 0.5 * (3.0 - 5.0**0.5)
_MISSED = 0.05  # the part of new rows that may be outside their intervals

_Factors = Float[np.ndarray, " S"]
_Predict = Callable[[_Factors], Predictions]  # of the rows that were kept out, with a factor for each member


def recalibrated(programs: Programs, group: Group, fit: Fit) -> tuple[Group, Predictions]:
    """The group with each member's factor, whose predictions the trained run has from here on, and those before."""
    before, change = fit.predictions, group.changes.recalibration
    if change is None or group.kept_out is None:
        return group, before
    everywhere = programs.devices.everywhere
    (X, z), step_keys = everywhere((group.kept_out, group.step_keys))
    # predictions of what methods train on: a transform adds the same to a log density for all factors
    changes = replace(group.changes, warp=None, threshold=None)
    judged = replace(group, X_test=X, y_test=z, step_keys=step_keys, changes=changes)

    def with_factor(group: Group, factor: _Factors) -> Group:
        own = Recalibration(jnp.asarray(factor, group.X.dtype), change.name)
        return replace(group, changes=everywhere(replace(group.changes, recalibration=own)))

    def predict(by: Programs, factor: _Factors) -> Predictions:
        by.predict(with_factor(judged, factor), fit)
        return fit.predictions

    if change.name == "conformal":
        factor = _conformal(partial(predict, programs), group.kept_out[1])
    else:
        factor = _best(partial(predict, programs.of_trials(programs.method)), group.size)
    X_test, y_test = everywhere((group.X_test, group.y_test))
    group = replace(with_factor(group, factor), X_test=X_test, y_test=y_test, step_keys=step_keys)
    programs.predict(group, fit)
    return group, before


def _best(predict: _Predict, size: int) -> _Factors:
    """The factors with the largest mean log density, by golden sections."""
    score = lambda logs: np.nan_to_num(predict(np.exp(logs))["log_prob"].mean(axis=1), nan=-np.inf)
    low, high = (np.full(size, np.log(end)) for end in _RANGE)
    lower, upper = low + _GOLDEN * (high - low), high - _GOLDEN * (high - low)
    of_lower, of_upper = score(lower), score(upper)
    for _ in range(_ROUNDS):
        is_lower = of_lower >= of_upper
        low, high = np.where(is_lower, low, lower), np.where(is_lower, upper, high)
        new = np.where(is_lower, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        lower, upper = np.where(is_lower, new, upper), np.where(is_lower, lower, new)
        of_new = score(new)
        of_lower, of_upper = np.where(is_lower, of_new, of_upper), np.where(is_lower, of_lower, of_new)
    return np.exp(0.5 * (low + high))


def _conformal(predict: _Predict, z: Float[np.ndarray, "S n"]) -> _Factors:
    """The factors of split-conformal intervals (Lei et al. 2018), which cover at least 95 % of exchangeable rows."""
    middle, half = middle_and_half(predict(np.ones(len(z))))
    scores = np.sort(np.abs(z - middle) / half, axis=1)
    return scores[:, int(np.ceil((scores.shape[1] + 1) * (1.0 - _MISSED))) - 1]
