"""The measures of a test set, each with its unit and its direction.  NumPy only.

`rmse` and `test_ll` are in the target's original units; `rmse_std` and `ll_std` in units of the training targets'
standard deviation, whatever the protocol did to the targets.  A log-likelihood is never called an nll.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

CLASSIFICATION = ("binary", "multiclass")
REGRESSION = ("regression",)
BOUNDS = ("vlb", "vlb_per_row")
"""Only for methods with both parts of a variational bound."""


@dataclass(frozen=True, kw_only=True)
class Scored:
    """A test set and what a method predicted for it, in the units in which the method was trained.

    `y`: the truth (binary -1/+1, multiclass 0..C-1, regression scaled).  `log_prob`: log density or probability of
    the truth.  `mean`, `var`, `cdf` and `crps` at the truth, `low95` and `high95`, the ends of the central 95 %
    interval, (n,) each: regression, else empty.  `log_probs` (n, C): classification, else empty; one column per class
    (binary: -1, then +1).
    `expected_log_prob` (n,), `kl`: of variational methods E_q log p(y|f), and KL[q || prior]; else empty, NaN.
    `y_mean`, `y_std`: original = y_mean + y_std * scaled.  `y_train_var`: variance of the scaled training targets.
    `train_rows`: how many rows were trained on.
    """

    y: Float[ndarray, " n"]
    log_prob: Float[ndarray, " n"]
    mean: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    var: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    cdf: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    crps: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    low95: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    high95: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    log_probs: Float[ndarray, "_ C"] = field(default_factory=lambda: np.empty((0, 0)))
    expected_log_prob: Float[ndarray, " _"] = field(default_factory=lambda: np.empty(0))
    kl: float = np.nan
    train_rows: int = 0
    y_mean: float = 0.0
    y_std: float = 1.0
    y_train_var: float = 1.0


@dataclass(frozen=True)
class Metric:
    """A measure: `unit` as a table's head prints it, which way is better, the tasks it is for, and how to compute it.

    `better` is None where neither way is: such a metric has no best.  `compute` is None for what a run measures by
    itself, not from predictions (seconds).
    """

    name: str
    unit: str
    better: Literal["lower", "higher"] | None
    tasks: tuple[str, ...]
    compute: Callable[[Scored], float] | None = None


def score(task: str, scored: Scored) -> dict[str, float]:
    """Every metric of the task ("binary", "multiclass" or "regression"), by name; NaN where a prediction is NaN."""
    lost = bool(np.isnan(scored.log_prob).any())
    with np.errstate(divide="ignore", invalid="ignore"):  # one test row has no variance: its nmse is null
        return {
            m.name: np.nan if lost else float(m.compute(scored))
            for m in METRICS.values()
            if m.compute and task in m.tasks and (m.name not in BOUNDS or scored.expected_log_prob.size)
        }


def better(metric: str) -> Literal["lower", "higher"] | None:
    """Which way is better, None where neither is; an unknown metric counts as a loss."""
    return METRICS[metric].better if metric in METRICS else "lower"


def _log_prob(s: Scored) -> float:
    return float(np.mean(s.log_prob))


def _mse(s: Scored) -> float:
    return float(np.mean((s.y - s.mean) ** 2))


def _test_ll(s: Scored) -> float:
    # y = y_mean + y_std t, so p(y) = p(t) / y_std
    return _log_prob(s) - float(np.log(s.y_std))


def _bound_per_row(s: Scored) -> float:
    return float(np.mean(s.expected_log_prob) - np.log(s.y_std) - s.kl / s.train_rows)


def _codes(s: Scored) -> np.ndarray:
    """The column of `log_probs` that is the truth's: two classes are -1/+1 or 0/1."""
    return (s.y > 0 if s.log_probs.shape[1] == 2 else s.y).astype(int)


def _hits(s: Scored) -> np.ndarray:
    return np.argmax(s.log_probs, axis=1) == _codes(s)


def _probs(s: Scored) -> np.ndarray:
    return np.exp(s.log_probs)


def _brier(s: Scored) -> float:
    """Mean of Σ_c (p_c - 1{y = c})² (Brier 1950): from 0 to 2; of two classes twice the squared error of p(+1)."""
    truth = np.arange(s.log_probs.shape[1]) == _codes(s)[:, None]
    return float(np.mean(np.sum((_probs(s) - truth) ** 2, axis=1)))


def _auc(s: Scored) -> float:
    """P(a +1 row has a higher p(+1) than a -1 row), ties counted half, from mid-ranks; NaN where a class is absent."""
    positive = s.y > 0
    n, n_positive = len(s.y), int(positive.sum())
    if n_positive in (0, n):
        return np.nan
    # log odds, so that probabilities that round to 1 are still in order
    _, place, counts = np.unique(s.log_probs[:, 1] - s.log_probs[:, 0], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[place]
    return float((ranks[positive].sum() - 0.5 * n_positive * (n_positive + 1)) / (n_positive * (n - n_positive)))


def _expected_calibration_error(s: Scored, bins: int = 15) -> float:
    """sum_b (n_b / n) |accuracy_b - confidence_b| over equal bins of the confidence (Guo et al. 2017, eq. 3)."""
    confidence = np.exp(np.max(s.log_probs, axis=1))
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(which, weights=_hits(s) - confidence, minlength=bins)
    return float(np.sum(np.abs(gaps)) / len(confidence))


def _coverage_error(s: Scored) -> float:
    """Mean |empirical - nominal| coverage of the central intervals of 5 %, 10 %, ..., 95 % of the predictions.

    The central interval of level p reaches from the quantile (1 - p) / 2 to (1 + p) / 2: it covers y where
    |2 cdf(y) - 1| ≤ p.
    """
    levels = np.arange(0.05, 0.96, 0.05)
    covered = np.abs(2 * s.cdf - 1)[:, None] <= levels
    return float(np.mean(np.abs(np.mean(covered, axis=0) - levels)))


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("nll", "nats per row", "lower", CLASSIFICATION, lambda s: -_log_prob(s)),
        Metric("error", "fraction misclassified", "lower", CLASSIFICATION, lambda s: 1 - np.mean(_hits(s))),
        Metric("ece", "probability", "lower", CLASSIFICATION, _expected_calibration_error),
        Metric("brier", "sum over classes of squared errors", "lower", CLASSIFICATION, _brier),
        Metric("auc", "area under the ROC curve", "higher", ("binary",), _auc),
        Metric("coverage_error", "probability", "lower", REGRESSION, _coverage_error),
        Metric("rmse", "original units", "lower", REGRESSION, lambda s: s.y_std * np.sqrt(_mse(s))),
        Metric("test_ll", "nats per row, original units", "higher", REGRESSION, _test_ll),
        Metric("mnlp", "nats per row, original units", "lower", REGRESSION, lambda s: -_test_ll(s)),
        Metric("crps", "original units", "lower", REGRESSION, lambda s: s.y_std * float(np.mean(s.crps))),
        Metric(
            "coverage95",
            "fraction of rows in the 95 % interval",
            None,
            REGRESSION,
            lambda s: float(np.mean((s.low95 <= s.y) & (s.y <= s.high95))),
        ),
        # Neither narrow nor wide is better by itself: the narrower of two intervals with the same coverage is.
        Metric("width95", "original units", None, REGRESSION, lambda s: s.y_std * float(np.mean(s.high95 - s.low95))),
        Metric("rmse_std", "standard deviations", "lower", REGRESSION, lambda s: np.sqrt(_mse(s) / s.y_train_var)),
        Metric(
            "ll_std",
            "nats per row, standardised",
            "higher",
            REGRESSION,
            lambda s: _log_prob(s) + 0.5 * np.log(s.y_train_var),
        ),
        # Paper svdgp's nMSE: over the variance of the TEST targets.
        Metric("nmse", "fraction of the test variance", "lower", REGRESSION, lambda s: _mse(s) / np.var(s.y)),
        # Paper svdgp evaluates the bound on held-out rows: their mean expected log-likelihood stands for all rows'.
        Metric("vlb", "nats, original units", "higher", REGRESSION, lambda s: s.train_rows * _bound_per_row(s)),
        Metric("vlb_per_row", "nats per row, original units", "higher", REGRESSION, lambda s: _bound_per_row(s)),
        Metric("seconds", "seconds of training", "lower", CLASSIFICATION + REGRESSION),
    )
}
