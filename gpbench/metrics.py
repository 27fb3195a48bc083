"""Metrics of a test set, each with its unit and its direction.  NumPy only.  `rmse` and `test_ll` are in the target's
original units; `rmse_std` and `ll_std` in units of the training targets' standard deviation."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gpbench.errors import ConfigError
from gpbench.scored import Scored as Scored
from gpbench.scored import brier, covered, hits, interval_score, mse, nmse, tail_log_prob

_CLASSIFICATION = ("binary", "multiclass")
_REGRESSION = ("regression",)
_NUMBERS = ("regression", "count")
_UNITS = "original units"
OPTIONAL = {
    **dict.fromkeys(("vlb", "vlb_per_row"), "expected_log_prob"),  # methods that predict both terms of a bound
    **{"tail_ll": "log_below", "tail_crps": "tail_crps"},  # data sets that name a threshold
}
"""Metrics that some runs have, with the array of their predictions."""


@dataclass(frozen=True)
class Metric:
    """A metric of test predictions."""

    name: str  # in tables and records
    unit: str  # as the head of a table prints it
    better: Literal["lower", "higher"] | None  # direction of improvement; None for one without a best value
    tasks: tuple[str, ...]  # that it applies to
    # function of the predictions, which are in the units of training, or in original units where the metric is custom;
    # None for what a run measures itself (seconds)
    compute: Callable[[Scored], Any] | None = None
    title: str = ""  # beside the name, for custom metrics
    # function of the predictions: why the metric does not exist on the test set, "" where it does; None: always does
    absence: Callable[[Scored], str] | None = None
    needs: str = ""  # the array of predictions without which it does not exist, as of another program's samples

    @property
    def heading(self) -> str:
        """Name, title, unit and direction, as the head of a table prints them."""
        direction = f"{self.better} is better" if self.better else ""
        facts = "; ".join(filter(None, [self.title, self.unit, direction]))
        return f"{self.name} ({facts})" if facts else self.name


def score(task: str, scored: Scored) -> dict[str, float]:
    """Every metric of a task by name: NaN if a prediction is NaN, and where a metric is `undefined`."""
    lost = any(np.isnan(getattr(scored, name)).any() for name in ("log_prob", "mean", "crps", "tail_crps", "log_below"))
    absent = undefined(task, scored)
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite predictions are NaN or infinite without a warning
        return {
            m.name: np.nan if lost or m.name in absent else float(m.compute(scored))
            for m in METRICS.values()
            if m.compute and task in m.tasks and (m.name not in OPTIONAL or getattr(scored, OPTIONAL[m.name]).size)
        }


def names(task: str) -> list[str]:
    """The names of the metrics of a task that every method has."""
    return [m.name for m in METRICS.values() if m.compute and task in m.tasks and m.name not in OPTIONAL]


def undefined(task: str, scored: Scored) -> dict[str, str]:
    """The metrics of a task that do not exist on a test set, whatever was predicted, with reasons such as "1 class"."""
    of_task = [m for m in METRICS.values() if task in m.tasks]
    lacking = {m.name: _LACKING[m.needs] for m in of_task if m.needs and not getattr(scored, m.needs).size}
    known = ((m.name, m.absence(scored)) for m in of_task if m.absence and m.name not in lacking)
    return lacking | {name: reason for name, reason in known if reason}


def find(name: str, records: Iterable[Any] = ()) -> Metric | None:
    """The metric of a name: a built-in one, or a custom one, without its function, as `own_metrics` of records say."""
    described = [r.own_metrics[name] for r in records if name not in METRICS and name in (r.own_metrics or ())]
    if name == "objective" or name.startswith("diagnostics."):
        before = METRICS.get(name.removeprefix("diagnostics.before_"))
        return replace(before, name=name) if before else Metric(name, "", None, ())
    if name in METRICS or not described:
        return METRICS.get(name)
    first, directions = described[0], {entry.get("better") for entry in described}
    direction = directions.pop() if len(directions) == 1 else None
    return Metric(name, first.get("unit") or "", direction, (), title=first.get("title") or "")


def better(metric: str, records: Iterable[Any] = ()) -> Literal["lower", "higher"] | None:
    """Direction in which a metric improves: "lower" or "higher", or None without one."""
    known = find(metric, records)
    return known.better if known else "lower"


def ranking_direction(metric: str, records: Iterable[Any] = ()) -> Literal["lower", "higher"]:
    """The direction of `better`, by which methods are ranked.  Raises ConfigError for a metric without one."""
    if direction := better(metric, records):
        return direction
    raise ConfigError(f"{metric} ranks no method: neither a lower nor a higher value is better by itself")


_LACKING = {
    "log_prob": "no density",
    "mean": "no mean",
    **dict.fromkeys(("crps", "cdf"), "fewer than 9 quantiles from 0.1 to 0.9"),
    **{"low95": "no quantiles at 0.025 and 0.975", "low80": "no quantiles at 0.1 and 0.9"},
}
"""Why predictions of another program lack an array."""


def _log_prob(s: Scored) -> float:
    return float(np.mean(s.log_prob))


def _test_ll(s: Scored) -> float:
    # y = y_mean + y_std t, so p(y) = p(t) / y_std
    return _log_prob(s) - float(np.log(s.y_std))


def _bound_per_row(s: Scored) -> float:
    return float(np.mean(s.expected_log_prob) - np.log(s.y_std) - s.kl / s.train_rows)


def _auc(s: Scored) -> float:
    """P(a +1 row has a higher p(+1) than a -1 row), ties counted half, from mid-ranks."""
    positive = s.y > 0
    n, n_positive = len(s.y), int(positive.sum())
    # log odds, so that probabilities that round to 1 are still in order
    _, order, counts = np.unique(s.log_probs[:, 1] - s.log_probs[:, 0], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - 0.5 * (counts - 1))[order]
    return float((ranks[positive].sum() - 0.5 * n_positive * (n_positive + 1)) / (n_positive * (n - n_positive)))


def _expected_calibration_error(s: Scored) -> float:
    """sum_b (n_b / n) |accuracy_b - confidence_b| over 15 equal bins of the confidence (Guo et al. 2017, eq. 3)."""
    bins = 15
    confidence = np.exp(np.max(s.log_probs, axis=1))
    bin_index = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_index, weights=hits(s) - confidence, minlength=bins)
    return float(np.sum(np.abs(gaps)) / len(confidence))


def _equal(reason: str) -> Callable[[Scored], str]:
    return lambda s: reason if np.ptp(s.y) == 0 else ""


def _coverage_error(s: Scored) -> float:
    """Mean |empirical - nominal| coverage of central intervals of 5 %, ..., 95 %: p covers y if |2 cdf(y) - 1| ≤ p.

    A count is covered to the part of [P(target < y), P(target ≤ y)] that lies in the interval: the expectation under
    a randomised transform (Czado, Gneiting and Held 2009).
    """
    levels = np.arange(0.05, 0.96, 0.05)
    if s.below.size:
        low, high = ((1 + sign * levels) / 2 for sign in (-1, 1))
        inside = np.clip(s.cdf[:, None], low, high) - np.clip(s.below[:, None], low, high)
        covered = inside / np.maximum(s.cdf - s.below, 1e-12)[:, None]
    else:
        covered = np.abs(2 * s.cdf - 1)[:, None] <= levels
    return float(np.mean(np.abs(np.mean(covered, axis=0) - levels)))


def _number_metric(array: str, name: str, unit: str, better: Any, compute: Any, **more: Any) -> Metric:
    """A metric of predicted numbers that needs this array of them."""
    return Metric(name, unit, better, _NUMBERS, compute, needs=array, **more)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("nll", "nats per row", "lower", _CLASSIFICATION, lambda s: -_log_prob(s)),
        Metric("error", "fraction misclassified", "lower", _CLASSIFICATION, lambda s: 1 - np.mean(hits(s))),
        Metric("ece", "probability", "lower", _CLASSIFICATION, _expected_calibration_error),
        Metric("brier", "sum over classes of squared errors", "lower", _CLASSIFICATION, lambda s: np.mean(brier(s))),
        Metric("auc", "area under the ROC curve", "higher", ("binary",), _auc, absence=_equal("1 class")),
        Metric("coverage_error", "probability", "lower", _NUMBERS, _coverage_error, needs="cdf"),
        _number_metric("mean", "rmse", _UNITS, "lower", lambda s: s.y_std * np.sqrt(mse(s))),
        _number_metric("log_prob", "test_ll", f"nats per row, {_UNITS}", "higher", _test_ll),
        _number_metric("log_prob", "mnlp", f"nats per row, {_UNITS}", "lower", lambda s: -_test_ll(s)),
        _number_metric("crps", "crps", _UNITS, "lower", lambda s: s.y_std * float(np.mean(s.crps))),
        _number_metric(
            "low95", "coverage95", "fraction of rows in the 95 % interval", None, lambda s: np.mean(covered(s))
        ),
        # Neither narrow nor wide is better by itself: the narrower of two intervals with the same coverage is.
        _number_metric("low95", "width95", _UNITS, None, lambda s: s.y_std * float(np.mean(s.high95 - s.low95))),
        _number_metric("low95", "interval95", _UNITS, "lower", lambda s: np.mean(interval_score(s, 95))),
        _number_metric("low80", "interval80", _UNITS, "lower", lambda s: np.mean(interval_score(s, 80))),
        _number_metric("mean", "rmse_std", "standard deviations", "lower", lambda s: np.sqrt(mse(s) / s.y_train_var)),
        Metric(
            *("ll_std", "nats per row, standardised", "higher", _REGRESSION),
            lambda s: _log_prob(s) + 0.5 * float(np.log(s.y_train_var)),
            needs="log_prob",
        ),
        _number_metric("mean", "nmse", "fraction of the test variance", "lower", nmse, absence=_equal("equal targets")),
        Metric("tail_ll", f"nats per row, {_UNITS}", "higher", _REGRESSION, lambda s: np.mean(tail_log_prob(s))),
        Metric("tail_crps", _UNITS, "lower", _REGRESSION, lambda s: s.y_std * np.mean(s.tail_crps)),
        # Paper svdgp evaluates the bound on held-out rows: their mean expected log-likelihood stands for all rows'.
        Metric(
            *("vlb", "nats, original units, from test rows", "higher", _REGRESSION),
            lambda s: s.train_rows * _bound_per_row(s),
        ),
        Metric("vlb_per_row", "nats per row, original units, from test rows", "higher", _REGRESSION, _bound_per_row),
        Metric("seconds", "seconds of training", "lower", _CLASSIFICATION + _NUMBERS),
    )
}
