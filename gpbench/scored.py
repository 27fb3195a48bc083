"""A test set with its predictions: scores of its rows, and standard errors of the metrics that are means of them.  The
rows are independent given the trained model: the errors say nothing of other training rows or another seed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

ENDS = {"low95": 0.025, "high95": 0.975, "low80": 0.1, "high80": 0.9}
"""Ends of central intervals by name, with their levels."""
_empty = partial(np.empty, 0)


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A test set and what a method predicted for it, in the units in which the method was trained."""

    y: Float[ndarray, " n"]  # targets: -1/+1 (binary), 0..C-1 (multiclass), counts or scaled values (regression)
    log_prob: Float[ndarray, " _"] = field(default_factory=_empty)  # log density or probability of targets, in nats
    mean: Float[ndarray, " _"] = field(default_factory=_empty)  # predictive means; as the next six, empty for classes
    var: Float[ndarray, " _"] = field(default_factory=_empty)  # predictive variances
    cdf: Float[ndarray, " _"] = field(default_factory=_empty)  # P(target ≤ y)
    below: Float[ndarray, " _"] = field(default_factory=_empty)  # P(target < y), of counts alone
    crps: Float[ndarray, " _"] = field(default_factory=_empty)  # continuous ranked probability score at y
    low95: Float[ndarray, " _"] = field(default_factory=_empty)  # ends of the central 95 % interval
    high95: Float[ndarray, " _"] = field(default_factory=_empty)
    low80: Float[ndarray, " _"] = field(default_factory=_empty)  # and of the 80 % interval
    high80: Float[ndarray, " _"] = field(default_factory=_empty)
    log_probs: Float[ndarray, "_ C"] = field(default_factory=lambda: np.empty((0, 0)))  # of each class, -1 before +1
    expected_log_prob: Float[ndarray, " _"] = field(default_factory=_empty)  # E_q log p(y|f), from variational methods
    above: Float[ndarray, " _"] = field(default_factory=_empty)  # 1 for a target above the data set's threshold, else 0
    log_below: Float[ndarray, " _"] = field(default_factory=_empty)  # log P(target ≤ threshold)
    tail_crps: Float[ndarray, " _"] = field(default_factory=_empty)  # the part of `crps` above the threshold
    kl: float = np.nan  # KL[q || prior] in nats, from variational methods
    train_rows: int = 0
    y_mean: float = 0.0  # of the targets: original = y_mean + y_std * scaled
    y_std: float = 1.0  # unit of the scaled targets, in original units
    y_train_var: float = 1.0  # variance of the scaled training targets

    def in_original_units(self) -> "Scored":
        """The predictions in the target's original units, as custom metrics see it; its arrays cannot be written to."""
        shift, scale = self.y_mean, self.y_std
        arrays = {
            **{name: shift + scale * getattr(self, name) for name in ("y", "mean", *ENDS)},
            **{name: getattr(self, name) - np.log(scale) for name in ("log_prob", "expected_log_prob")},
            **{name: +getattr(self, name) for name in ("cdf", "below", "log_probs", "above", "log_below")},
            "var": scale**2 * self.var,
            **{name: scale * getattr(self, name) for name in ("crps", "tail_crps")},
        }
        for array in arrays.values():
            array.flags.writeable = False
        return replace(self, **arrays, y_mean=0.0, y_std=1.0, y_train_var=scale**2 * self.y_train_var)


def row_stderrs(names: Iterable[str], scored: Scored) -> dict[str, float]:
    """Finite standard errors over test rows, by name, of metrics of ours that are means over rows.  A function of
    means, such as `rmse`, has the error of its linear expansion (the delta method); `ece`, `auc` and `coverage_error`
    have none."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        errors = {name: row_stderr(_TERMS[name](scored)) for name in names if name in _TERMS}
    return {name: error for name, error in errors.items() if np.isfinite(error)}


def row_stderr(scores: Float[ndarray, " n"] | Bool[ndarray, " n"]) -> float:
    """The standard error of the mean of these scores, one a test row; NaN below two."""
    return float(np.std(scores, ddof=1, dtype=float) / np.sqrt(len(scores))) if len(scores) > 1 else np.nan


def codes(s: Scored) -> ndarray:
    """Column of `log_probs` of each target; two classes are -1/+1 or 0/1."""
    return (s.y > 0 if s.log_probs.shape[1] == 2 else s.y).astype(int)


def hits(s: Scored) -> ndarray:
    """True for a row of which the most probable class is the target."""
    return np.argmax(s.log_probs, axis=1) == codes(s)


def brier(s: Scored) -> ndarray:
    """Σ_c (p_c - 1{y = c})² (Brier 1950): from 0 to 2; of two classes twice the squared error of p(+1)."""
    truth = np.arange(s.log_probs.shape[1]) == codes(s)[:, None]
    return np.sum((np.exp(s.log_probs) - truth) ** 2, axis=1)


def covered(s: Scored) -> ndarray:
    """True for a row whose target is in the central 95 % interval."""
    return (s.low95 <= s.y) & (s.y <= s.high95)


def interval_score(s: Scored, percent: int) -> ndarray:
    """Width of the interval, + 2 / (1 - its level) times a target's distance from it (Gneiting & Raftery 2007, eq. 43),
    in original units."""
    low, high = (getattr(s, f"{end}{percent}") for end in ("low", "high"))
    beyond = np.maximum(np.maximum(low - s.y, s.y - high), 0.0)
    return s.y_std * (high - low + 200.0 / (100 - percent) * beyond)


def tail_log_prob(s: Scored) -> ndarray:
    """The log density of a target above the threshold, in original units, else log P(target ≤ threshold): the censored
    likelihood (Diks, Panchenko and van Dijk 2011)."""
    return np.where(s.above > 0.0, s.log_prob - np.log(s.y_std), s.log_below)


def _squared_errors(s: Scored) -> ndarray:
    """(y - mean)², in squared units of training."""
    return (s.y - s.mean) ** 2


def mse(s: Scored) -> float:
    """Mean squared error."""
    return float(np.mean(_squared_errors(s)))


def nmse(s: Scored) -> float:
    """Mean squared error over the variance of the TEST targets, as paper svdgp's nMSE."""
    return float(mse(s) / np.var(s.y))


def _root(s: Scored) -> ndarray:
    # d sqrt(m) = dm / (2 sqrt(m)), m the mean of the squared errors
    return _squared_errors(s) / (2 * np.sqrt(mse(s)))


def _ratio(s: Scored) -> ndarray:
    # d (m / v) = (dm - (m / v) dv) / v, v the variance of the test targets
    return (_squared_errors(s) - nmse(s) * (s.y - np.mean(s.y)) ** 2) / np.var(s.y)


_TERMS: Mapping[str, Callable[[Scored], ndarray]] = {
    **dict.fromkeys(("nll", "test_ll", "mnlp", "ll_std"), lambda s: s.log_prob),
    "error": hits,
    "brier": brier,
    "rmse": lambda s: s.y_std * _root(s),
    "rmse_std": lambda s: _root(s) / np.sqrt(s.y_train_var),
    "nmse": _ratio,
    "crps": lambda s: s.y_std * s.crps,
    "coverage95": covered,
    "interval95": partial(interval_score, percent=95),
    "interval80": partial(interval_score, percent=80),
    "width95": lambda s: s.y_std * (s.high95 - s.low95),
    "tail_ll": tail_log_prob,
    "tail_crps": lambda s: s.y_std * s.tail_crps,
    "vlb": lambda s: s.train_rows * s.expected_log_prob,
    "vlb_per_row": lambda s: s.expected_log_prob,
}
"""Terms by the metric whose fluctuations are those of their mean, up to sign, to first order."""
