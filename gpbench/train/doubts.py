"""Doubts about a finished run: numbers that the data or the method make absurd, each with a warning in one line.  A run
is compared with the trivial predictor, `method=constant`.  Doubts change neither ids nor metrics."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpbench.core.likelihoods import Gaussian
from gpbench.data.scaled import ScaledSplit
from gpbench.methods.protocols import learned
from gpbench.metrics import Scored
from gpbench.records.record import Record

_WORST_LOSS = 5.0  # nats per row more than the trivial predictor's: on average its density is 150 times as high
_WORST_RMSE = 3.0  # in units of the trivial predictor's, or of the targets' standard deviation where that is larger
_SMALLEST_SPREAD = 0.01  # standard deviation of predictions over the test rows below which these count as one
_NEAR_FLOOR = 2.0  # noise variance in units of its floor up to which it counts as being there
_LOST_NOISE = 1e-3  # noise variance in units of its initial value below which training has all but removed it
_NEAR_ROWS = 1e-3  # root mean square of the differences of two scaled rows, of which float32 keeps few digits
_COMPARED_ROWS = 5000  # training rows at most that are compared with each other

_WARNINGS = {
    "excess_loss": "predictions cost {:.3g} nats per test row more than those of method=constant",
    "no_density": "{:.0f} test rows lie where the predictive density is 0, as outside all bins",
    "excess_rmse": "the RMSE is {:.3g} times that of method=constant, or of one standard deviation of the targets",
    "spread": "all test rows have nearly the same prediction (standard deviation {:.2g}): training has not left its"
    " start, as from lengthscales far too short or too long, or the inputs tell nothing of the targets",
    "rows_per_input": "fewer training rows than inputs: {:.2g} rows for each input",
    "far_rows": "{:.0f} test rows lie outside the training rows by more than the range of these",
    "unseen_rows": "{:.0f} test rows differ in an input that is constant among the training rows, and so ignored",
    "noise_at_floor": "the noise variance is at its floor: {:.2g} in units of the scaled targets",
    "noise_ratio": "training made the noise variance {:.2g} times its initial value",
    "near_rows": "{:.0f} training rows are so close to others that float32 hardly tells them apart: results may differ"
    " with protocol.precision=float64",
    "scaled_means": "the RMSE is {:.3g} times that of method=constant, but would be lower than that if the means were"
    " scaled: if they are, import them in original units with --again",
    "deviations": "the variances cost {:.3g} nats per test row more than their squares; they may be standard"
    " deviations: if so, import their squares with --again",
    "scaled_variances": "the variances cost {:.3g} nats per test row more than with the training targets' variance as a"
    " factor; they may be scaled: if so, import them in original units with --again",
}


def doubts(
    prepared: ScaledSplit, scored: Scored, state: Any = None, *, noise: float | None = None, precision: str = "float64"
) -> dict[str, float]:
    """Doubts about a run's numbers: a number for each doubt, by the names of `_WARNINGS`; {} for most runs."""
    loss, error = _trivial(prepared)
    excess, spread = -float(np.mean(scored.log_prob)) - loss, _spread(prepared, scored)
    rows_per_input = len(prepared.train_rows) / max(int((~prepared.x_scaler.constant).sum()), 1)
    far, near = float(_far(prepared)), float(_near(prepared)) if precision == "float32" else 0.0
    values = {
        "excess_loss": (excess, _WORST_LOSS < excess < np.inf),
        "no_density": (zero := float(np.sum(np.isneginf(scored.log_prob))), zero > 0),
        # the trivial predictor itself is meant to have one prediction
        "spread": (spread, spread < _SMALLEST_SPREAD and not np.isclose(excess + loss, loss, 1e-4)),
        "rows_per_input": (rows_per_input, rows_per_input < 1.0),
        "far_rows": (far, far > 0),
        "unseen_rows": (float(prepared.unseen), prepared.unseen > 0),
        "near_rows": (near, near > 0),
    }
    if prepared.task in ("regression", "count"):
        rmse = float(np.sqrt(np.mean((scored.y - scored.mean) ** 2))) / max(error, float(np.std(prepared.y)))
        values["excess_rmse"] = rmse, rmse > _WORST_RMSE
        values |= {name: (value, True) for name, value in _lost_noise(state, noise).items()}
    return {name: values[name][0] for name in _WARNINGS if name in values and values[name][1]}


_WRONG_VARIANCE = 10.0  # mean square of (target - mean) / std, or its inverse, from which other units are tried


def unit_doubts(prepared: ScaledSplit, test_set: Scored) -> dict[str, float]:
    """A number for each doubt about the units of another program's predictions, by the names of `_WARNINGS`."""
    centre, spread = float(np.mean(prepared.y)), float(np.std(prepared.y))
    square = lambda mean: (test_set.y - mean) ** 2
    error = lambda mean: float(np.sqrt(np.mean(square(mean))))
    numbers, mean, constant = {}, test_set.mean, error(centre)
    if error(mean) > 0.9 * constant and error(scaled := centre + spread * mean) < 0.8 * min(constant, error(mean)):
        numbers, mean = {"scaled_means": error(mean) / constant}, scaled
    ratio = lambda variance: float(np.mean(square(mean) / variance))
    loss = lambda variance: 0.5 * float(np.mean(np.log(variance) + square(mean) / variance))
    variance = test_set.var
    others = {"deviations": variance**2, "scaled_variances": variance * spread**2}
    if not 1.0 / _WRONG_VARIANCE <= ratio(variance) <= _WRONG_VARIANCE:
        gains = {name: loss(variance) - loss(other) for name, other in others.items() if 0.5 < ratio(other) < 2.0}
        numbers |= dict([max(gains.items(), key=lambda gain: gain[1])]) if gains else {}
    return numbers


def warnings(records: Sequence[Record]) -> Iterator[str]:
    """A line for each doubt about these runs of one method: its worst value, and how many runs it is about."""
    worst = {"rows_per_input": min, "spread": min, "noise_ratio": min}
    for name, text in _WARNINGS.items():
        values = [v for r in records if (v := (r.diagnostics or {}).get(name)) is not None]
        if values:
            some = "" if len(records) == 1 else f", in {len(values)} of {len(records)} runs, and here in the worst"
            yield f"{records[0].dataset} {records[0].method}: {text.format(worst.get(name, max)(values))}{some}"


def _trivial(prepared: ScaledSplit) -> tuple[float, float]:
    """Mean loss of the trivial predictor on the test rows in nats, and its RMSE; NaN for classes."""
    mean, variance = np.mean(prepared.y), np.var(prepared.y)
    if prepared.task == "count":
        from scipy.stats import nbinom  # takes a second, and few runs need it

        exposure, of_test = _exposures(prepared)
        rate = np.sum(prepared.y) / np.sum(exposure)
        expected = rate * exposure
        excess = np.sum((prepared.y - expected) ** 2 - expected) / np.sum(expected**2)
        shape, mean = 1.0 / max(excess, 1e-6 / np.mean(prepared.y)), rate * of_test
        log_prob = nbinom.logpmf(prepared.y_test, shape, shape / (shape + mean))
        return -float(np.mean(log_prob)), float(np.sqrt(np.mean((prepared.y_test - mean) ** 2)))
    if prepared.task == "regression":
        square = np.mean((prepared.y_test - mean) ** 2)
        return float(0.5 * (np.log(2.0 * np.pi * variance) + square / variance)), float(np.sqrt(square))
    labels, label = np.unique(prepared.y_test, return_inverse=True)
    counts = np.array([np.sum(prepared.y == each) for each in labels])[label]  # a pass for each class, not for each row
    return -float(np.mean(np.log((counts + 1.0) / (len(prepared.y) + prepared.classes)))), np.nan


def _exposures(prepared: ScaledSplit) -> tuple[np.ndarray, np.ndarray]:
    """The exposures of training and test rows, 1 where there are none."""
    inputs = (prepared.X, prepared.X_test)
    return tuple(np.exp(X[:, -1]) if prepared.exposure else np.ones(len(X)) for X in inputs)  # type: ignore[return-value]


def _spread(prepared: ScaledSplit, test_set: Scored) -> float:
    """Standard deviation over the test rows of the predictive mean, in units of that of the training targets, or of the
    probability of the class in which it is largest; infinite for one row."""
    if len(test_set.y) < 2:
        return np.inf
    if prepared.task in ("regression", "count"):
        exposure, of_test = _exposures(prepared)
        return float(np.std(test_set.mean / of_test) / np.std(prepared.y / exposure))
    return float(np.std(np.exp(test_set.log_probs), axis=0).max())


def _far(prepared: ScaledSplit) -> int:
    """The number of test rows beyond the range of the training rows, targets included, by more than its width."""
    rows, others = prepared.X, prepared.X_test
    if prepared.task in ("regression", "count"):
        rows, others = np.column_stack([rows, prepared.y]), np.column_stack([others, prepared.y_test])
    low, high = rows.min(axis=0), rows.max(axis=0)
    width = high - low
    far = (others < low - width) | (others > high + width)
    return int(far[:, width > 0.0].any(axis=1).sum())


def _near(prepared: ScaledSplit) -> int:
    """The number of the first training rows with another, not equal one beside them."""
    from scipy.spatial import KDTree  # takes a while, and few runs need it

    rows = np.unique(prepared.X[:_COMPARED_ROWS], axis=0)
    distance = KDTree(rows).query(rows, k=[2], distance_upper_bound=_NEAR_ROWS * rows.shape[1] ** 0.5)[0]
    return int(np.isfinite(distance).sum())


def _lost_noise(state: Any, initial: float | None) -> dict[str, float]:
    """The least noise variance of a state where it has come to its floor, or below a share of its initial value."""
    least = {float(np.min(noise.noise)): noise.floor for noise in learned(state, Gaussian)}
    if not least:
        return {}
    noise, floor = min(least.items())
    if noise < _NEAR_FLOOR * floor:
        return {"noise_at_floor": noise}
    return {"noise_ratio": noise / initial} if initial and noise < _LOST_NOISE * initial else {}
