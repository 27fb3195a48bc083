"""Numbers of the arrays that `run.keep=true` keeps (`gpbench.records.kept`): of one run, and of two beside each other.

Inputs are in the units in which the method was trained, nearly always standard deviations.  A collection has these
arrays of the first split of a cell, and of the others `extracts`: for banana, a hundredth of the bytes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy import ndarray

from gpbench.analysis import effects
from gpbench.data.builtin import friedman_effect

_Arrays = Mapping[str, ndarray]
_PREFIX = "kept_extract_"
"""Prefix of an extract's name in a collection."""


def boundary_distance(run: _Arrays) -> float | None:
    """The median distance of inducing points to the decision boundary, the midpoints between neighbours on the grid of
    different predicted classes; None without points or without a boundary."""
    if not {"kept_inducing", "kept_log_probs", "kept_grid"} <= run.keys() or run["kept_grid"].shape[1] != 2:
        return None
    side = round(len(run["kept_grid"]) ** 0.5)
    grid, classes = run["kept_grid"].reshape(side, side, 2), _classes(run).reshape(side, side)
    along, across = classes[1:] != classes[:-1], classes[:, 1:] != classes[:, :-1]
    middles = np.concatenate([(grid[1:] + grid[:-1])[along] / 2, (grid[:, 1:] + grid[:, :-1])[across] / 2])
    if not len(middles):
        return None
    return float(np.median(_distances(run["kept_inducing"], middles).min(axis=1)))


def _inactive_share(run: _Arrays) -> float | None:
    """The largest mean share of the predictor's variance of an effect that Friedman's function has not."""
    if "kept_effect1_inputs" not in run or "kept_shares" not in run:
        return None
    shares = []
    for size in (1, 2):
        for i, inputs in enumerate(run.get(f"kept_effect{size}_inputs", ())):
            x, _, _ = effects.original(run, size, i)
            if not friedman_effect(tuple(map(int, inputs)), x).any():
                shares.append(float(run["kept_shares"][:, int(run[f"kept_effect{size}_place"][i])].mean()))
    return max(shares, default=None)


def _effect(number: int) -> Callable[[_Arrays], float | None]:
    return lambda run: effects.errors(run, friedman_effect)[number] if "kept_effect1_inputs" in run else None


SUMMARIES: Mapping[str, Callable[[_Arrays], float | None]] = {
    "boundary_distance": boundary_distance,
    "effect_error": _effect(0),
    "effect_coverage": _effect(1),
    "inactive_share": _inactive_share,
}
"""Numbers of one run, which a clause calls `kept.NAME`.  Two are of Friedman's function: the RMSE of effects, and the
share of grid points at which their 95 % bands cover the truth."""


_Comparison = Callable[[_Arrays, _Arrays], float | None]


def _comparison(extract: str, function: Callable[[ndarray, ndarray], Any], on_grid: bool = True) -> _Comparison:
    """A number of the extracts of two runs; None where one lacks them, they differ in shape, or are on another grid."""

    def compare(a: _Arrays, b: _Arrays) -> float | None:
        pairs = [(_extract(a, name), _extract(b, name)) for name in (["corners", extract] if on_grid else [extract])]
        known = [(x, y) for x, y in pairs if x is not None and y is not None and x.shape == y.shape]
        if len(known) < len(pairs) or (on_grid and not np.allclose(*known[0])):
            return None
        return float(function(*known[-1]))

    return compare


def _matched_distance(a: ndarray, b: ndarray) -> Any:
    from scipy.optimize import linear_sum_assignment

    distances = _distances(a, b)
    return distances[linear_sum_assignment(distances)].mean()


COMPARISONS: Mapping[str, _Comparison] = {
    # the mean distance of inducing points to those of another run under the best matching, one to one
    "inducing_distance": _comparison("inducing", _matched_distance, on_grid=False),
    # the share of training rows at whose nearest points of the grid both runs predict one class
    "class_agreement": _comparison("row_classes", lambda a, b: np.mean(a == b)),
    # the correlation over the grid of the predictive standard deviations
    "std_correlation": _comparison("var", lambda a, b: np.corrcoef(np.sqrt(a), np.sqrt(b))[0, 1]),
    # the typical factor between predictive standard deviations, 1 or more, over the grid within the training inputs:
    # the exponential of the mean of the absolute values of logarithms
    "std_ratio": _comparison("var_within", lambda a, b: np.exp(np.mean(np.abs(np.log(a / b)) / 2))),
    # the root mean square difference of predictive means over the grid, in standard deviations of the targets
    "mean_distance": _comparison("mean", lambda a, b: np.sqrt(np.mean((a - b) ** 2, dtype=float))),
}
"""Numbers of two runs, of which a clause has a `comparison`."""


def summary(run: _Arrays, name: str) -> float | None:
    """One of `SUMMARIES` of a run, also of one of which a collection has extracts alone; None where it lacks it."""
    value = _extract(run, name)
    return float(value) if value is not None and value.ndim == 0 else None


def extracts(run: _Arrays) -> dict[str, ndarray]:
    """The parts of a run's arrays that numbers read, by the names that they have in a collection; {} without any."""
    values = {name: _extract(run, name) for name in (*SUMMARIES, *_EXTRACTS)}
    return {_PREFIX + name: value for name, value in values.items() if value is not None}


def _extract(run: _Arrays, name: str) -> ndarray | None:
    if _PREFIX + name in run:
        return run[_PREFIX + name]
    needed, function = _EXTRACTS.get(name) or (set(), SUMMARIES[name])
    value = function(run) if needed <= run.keys() else None
    return None if value is None else np.asarray(value)


def _classes(run: _Arrays) -> Int[ndarray, " G"]:
    return run["kept_log_probs"].argmax(axis=1)


def _row_classes(run: _Arrays) -> UInt8[ndarray, " n"] | None:
    """The predicted class at the nearest point of the grid to each training row."""
    nearest = _nearest(run["kept_X"], run["kept_grid"])
    return None if nearest is None else _classes(run)[nearest].astype(np.uint8)


def _var_within(run: _Arrays) -> Float[ndarray, " g"]:
    """The predictive variance on the grid within the training inputs."""
    grid, rows = run["kept_grid"], run["kept_X"]
    return run["kept_var"][((grid >= rows.min(axis=0)) & (grid <= rows.max(axis=0))).all(axis=1)]


_EXTRACTS: Mapping[str, tuple[set[str], Callable[[_Arrays], ndarray | None]]] = {
    "inducing": ({"kept_inducing"}, lambda run: run["kept_inducing"]),
    # the first and the last point: with these and its size, a grid is known
    "corners": ({"kept_grid"}, lambda run: run["kept_grid"][[0, -1]]),
    "row_classes": ({"kept_log_probs", "kept_grid", "kept_X"}, _row_classes),
    "var": ({"kept_var"}, lambda run: run["kept_var"]),
    "var_within": ({"kept_var", "kept_grid", "kept_X"}, _var_within),
    "mean": ({"kept_mean"}, lambda run: run["kept_mean"]),
}
"""What comparisons read of each run: the arrays that it needs, and its function."""


def _nearest(rows: Float[ndarray, "n D"], grid: Float[ndarray, "G D"]) -> Int[ndarray, " n"] | None:
    """The place of the nearest point of a grid to each row; None unless the grid has all pairs of its coordinates."""
    axes, places = zip(*(np.unique(column, return_inverse=True) for column in grid.T))
    shape = tuple(map(len, axes))
    if np.prod(shape) != len(grid):
        return None
    order = np.zeros(len(grid), int)
    order[np.ravel_multi_index(places, shape)] = np.arange(len(grid))
    along = [np.abs(column[:, None] - axis).argmin(axis=1) for column, axis in zip(rows.T, axes)]
    return order[np.ravel_multi_index(along, shape)]


def _distances(a: Float[ndarray, "n D"], b: Float[ndarray, "m D"]) -> Float[ndarray, "n m"]:
    return np.sqrt(np.sum((a[:, None] - b[None]) ** 2, axis=-1, dtype=float))
