"""Scalers of inputs and targets, fitted to the training rows; a protocol names them (`inputs`, `targets`)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from gpbench.config.values import TRANSFORMS
from gpbench.data.faults import reject
from gpbench.errors import ConfigError, DataError, listed, require, require_known

# A constant column's computed std is rarely 0 (kegg's is 1e-21): compare it with the column's size, never with 0.
_CONSTANT = 1e-12
# Beyond these sizes the square of a number is infinite or 0, in float64.
_SMALLEST, LARGEST = 1e-150, 1e150


@dataclass(frozen=True)
class Scaler:
    """A fitted affine map of each column of inputs, or of the targets: x' = (x - shift) / scale, in original units."""

    shift: Float[np.ndarray, " *D"]
    scale: Float[np.ndarray, " *D"]
    constant: Bool[np.ndarray, " *D"]  # does not vary among the training rows: it becomes 0, and its `scale` is 1
    train_only: bool = True  # only the training rows were used
    warp: Any = None  # of standardised targets: their transform, on which methods train (`core.predictive.Warp`)
    exposure: bool = False  # after the columns that are scaled comes an exposure, of which methods see the logarithm

    def transform(self, rows: Float[np.ndarray, " N *D"]) -> None:
        """Scale rows in place."""
        if self.exposure:
            rows[:, -1] = _log_exposure(rows[:, -1])
            rows = rows[:, :-1]
        rows -= self.shift
        rows /= self.scale
        rows[..., self.constant] = 0.0

    def inverse(self, rows: Float[np.ndarray, " N *D"]) -> Float[np.ndarray, " N *D"]:
        """Scaled rows in original units; constant columns get their value among the training rows."""
        if self.exposure:
            return np.column_stack([rows[:, :-1] * self.scale + self.shift, np.exp(rows[:, -1])])
        return rows * self.scale + self.shift

    def trained(self, y: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
        """Scaled targets as methods train on them."""
        return np.asarray(self.warp.forward(y)) if self.warp else y


def _log_exposure(exposure: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """Logarithms of exposures.  Raises DataError: one is not above 0."""
    require((exposure > 0.0).all(), f"an exposure is {exposure.min():g}, and must be above 0: mend or drop such rows")
    return np.log(exposure)


_Weight = Float[np.ndarray, " N"] | None
Fit = Callable[[Float[np.ndarray, " N *D"], Float[np.ndarray, " M *D"], _Weight], Scaler]
"""Fits a scaler to N training rows and their weights, out of M rows, and scales the training rows in place."""


def _standardise(rows: Float[np.ndarray, " N *D"], population: Float[np.ndarray, " M *D"], weight: _Weight) -> Scaler:
    """Mean 0 and variance 1 (ddof 0) over the training rows; without a temporary as large as the inputs, which are
    0.4 GB for mnist in float64."""
    size = _size(rows.min(axis=0), rows.max(axis=0))
    mean = np.asarray(np.average(rows, axis=0, weights=weight))
    rows -= mean
    if weight is not None:
        squares, total = weight @ rows**2, weight.sum()
    else:  # the two sums differ in the last bit: targets are summed pairwise, as np.std does, and inputs row by row
        squares = np.sum(rows * rows) if rows.ndim == 1 else np.einsum("nd,nd->d", rows, rows)
        total = len(rows)
    scaler = _standard(mean, np.asarray(np.sqrt(squares / total)), size)
    rows /= scaler.scale
    rows[..., scaler.constant] = 0.0
    return scaler


def _standard(mean: np.ndarray, std: np.ndarray, size: np.ndarray) -> Scaler:
    constant = np.asarray(std <= _CONSTANT * size)
    return Scaler(mean, np.where(constant, 1.0, std), constant)


def _unit_interval(rows: Float[np.ndarray, " N *D"], population: Float[np.ndarray, " M *D"], weight: _Weight) -> Scaler:
    """[0, 1] by the smallest and the largest training row.  Other rows may lie outside: nothing is clipped."""
    low, high = np.asarray(rows.min(axis=0)), np.asarray(rows.max(axis=0))
    constant = np.asarray(high - low <= _CONSTANT * _size(low, high))
    scaler = Scaler(low, np.where(constant, 1.0, high - low), constant)
    scaler.transform(rows)
    return scaler


def _centre_all(rows: Float[np.ndarray, " N *D"], population: Float[np.ndarray, " M *D"], weight: _Weight) -> Scaler:
    """Mean 0 over the whole population, test rows included, as in Evans and Nair's experiments (2020)."""
    mean = population.mean(axis=0, dtype=np.float64) if weight is None else weight @ population / weight.sum()
    mean = np.asarray(mean)
    scaler = Scaler(mean, np.ones_like(mean), np.zeros(mean.shape, bool), train_only=False)
    scaler.transform(rows)
    return scaler


def _none(rows: Float[np.ndarray, " N *D"], population: Float[np.ndarray, " M *D"], weight: _Weight) -> Scaler:
    """Original units."""
    shape = rows.shape[1:]
    return Scaler(np.zeros(shape), np.ones(shape), np.zeros(shape, bool))


def _size(low: Float[np.ndarray, " *D"] | np.floating, high: Float[np.ndarray, " *D"] | np.floating) -> np.ndarray:
    """The largest absolute value of each column."""
    return np.asarray(np.maximum(np.abs(high), np.abs(low)))


SCALERS: dict[str, Fit] = {
    "standardise": _standardise,
    "unit_interval": _unit_interval,
    "centre_all": _centre_all,
    "none": _none,
}


def fit_scalers(
    X: Float[np.ndarray, "N D"],
    y: Float[np.ndarray, " N"],
    *,
    inputs: str,
    targets: str,
    task: str,
    population: tuple[Float[np.ndarray, "M D"], Float[np.ndarray, " M"]] | None = None,
    weight: Float[np.ndarray, " N"] | None = None,
    dataset: str = "data",
    columns: Sequence[str] = (),
    target: str = "target",
    rows: int | None = None,
    exposure: bool = False,
) -> tuple[Scaler, Scaler]:
    """The scalers of inputs and targets, with which the training rows are scaled in place; an `exposure` is the last
    input.  Raises DataError: one class only, constant targets, or a column whose squares would be infinite or 0."""
    transform, targets = (targets, "standardise") if targets in TRANSFORMS else ("", targets)
    for key, name in (("inputs", inputs), ("targets", targets)):
        require_known(name, SCALERS, f"protocol.{key}={name}: no such scaler")
    only = f"protocol.targets={transform} is for regression, and {dataset} has other targets: leave it out"
    require(not transform or task == "regression", only, ConfigError)
    fit_inputs, fit_targets = SCALERS[inputs], SCALERS[targets] if task == "regression" else _none
    all_X, all_y = population or (X, y)
    rows = len(y) if rows is None else rows
    if task == "count":
        equal = f"the counts of the {rows} training rows are all equal"
        require(np.any(y != y[:1]), f"{dataset}: column {target!r}: {equal}")
    several = task == "regression" or len(np.unique(y)) > 1
    require(several, f"{dataset}: one class only among the {rows} training rows; take another split")
    _check_sizes(dataset, X, columns or [f"x{i + 1}" for i in range(X.shape[1])])
    _check_sizes(dataset, y[:, None], (target,))
    several = bool(np.any(y != y[:1]))  # scaling overwrites y
    original = y.copy() if transform else y
    of_kernels = slice(None, -1 if exposure else None)
    scalers = fit_inputs(X[:, of_kernels], all_X[:, of_kernels], weight), fit_targets(y, all_y, weight)
    if exposure:
        X[:, -1] = _log_exposure(X[:, -1])
        scalers = replace(scalers[0], exposure=True), scalers[1]
    if scalers[1].constant:
        reason = "differ by rounding alone; subtract their mean in the file" if several else "are all equal"
        raise DataError(f"{dataset}: column {target!r}: the targets of the {rows} training rows {reason}")
    if transform:
        from gpbench.core.predictive.warped import fit_warp  # JAX, which data alone do not need

        warp = fit_warp(transform, original, weight, f"{dataset}: column {target!r}")
        return scalers[0], replace(scalers[1], warp=warp)
    return scalers


def fit_in_blocks(
    blocks: Callable[[], Iterable[Float[np.ndarray, "B C"]]], *, inputs: str, targets: str, task: str, **names: Any
) -> tuple[tuple[Scaler, Scaler], float]:
    """The scalers of `fit_scalers`, to rounding, by rows that are read twice, and the variance of scaled targets."""
    unfit = {"centre_all", *TRANSFORMS} & {inputs, targets}
    fault = f"{names['dataset']}: {listed(sorted(unfit))} does not read rows from disk: set run.stream=false"
    require(not unfit, fault, ConfigError)
    low, high = np.asarray(np.inf), np.asarray(-np.inf)
    total, count = np.zeros(()), 0
    for rows in blocks():
        low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
        total, count = total + rows.sum(axis=0), count + len(rows)
    infinite = (name for name, cell in zip([*names["columns"], names["target"]], total) if not np.isfinite(cell))
    reject(f"{names['dataset']}: column {name!r} has missing or infinite cells: mend them" for name in infinite)
    mean = total / count
    std = np.sqrt(sum(np.einsum("nd,nd->d", rows - mean, rows - mean) for rows in blocks()) / count)
    ranges, size = np.stack([low, high]), _size(low, high)
    extremes = ranges[:, :-1].copy(), ranges[:, -1].copy()
    x_scaler, y_scaler = fit_scalers(*extremes, inputs=inputs, targets=targets, task=task, rows=count, **names)
    if inputs == "standardise":
        x_scaler = _standard(mean[:-1], std[:-1], size[:-1])
    if targets == "standardise" and task == "regression":
        y_scaler = _standard(*map(np.asarray, (mean[-1], std[-1], size[-1])))
    return (x_scaler, y_scaler), float((std[-1] / y_scaler.scale) ** 2)


def _check_sizes(dataset: str, rows: Float[np.ndarray, "N D"], columns: Sequence[str]) -> None:
    """Raises DataError that names the first column with infinite squares, or that varies while its squares are 0."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    size = _size(low, high)
    varies = high / 2 - low / 2 > _CONSTANT * size  # halves, since the difference may be infinite
    wrong = np.flatnonzero((size > LARGEST) | (varies & (high / 2 - low / 2 < _SMALLEST))).tolist()
    ranges = (f"column {columns[i]!r} has values from {low[i]:.3g} to {high[i]:.3g}" for i in wrong)
    reject(f"{dataset}: {text}, whose squares float64 cannot hold; give it in other units" for text in ranges)
