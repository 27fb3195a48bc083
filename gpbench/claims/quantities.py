"""Metrics of clauses: those of records, and numbers of a run's trace and of the arrays that `run.keep=true` kept.

docs/reference/claims.md says how a clause names them.  The metric of a trace is that on the test rows, or `objective`;
its seconds are those of training, of which runs that were trained together have equal shares.
Kept inputs are in the units in which the method was trained, nearly always standard deviations.  A collection has the
arrays of the first split of a cell, and of the others `extracts`: for banana, a hundredth of the bytes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, UInt8
from numpy import ndarray

from gpbench.analysis import effects
from gpbench.errors import ConfigError, require_known
from gpbench.schema import Keys, optional, required

Arrays = Mapping[str, ndarray]
"""The arrays of a run: its trace, and those that it kept, by their names in the trace."""
_EXTRACT = "kept_extract_"  # prefix of an extract's name in a collection


def boundary_distance(run: Arrays) -> float | None:
    """The median distance of inducing points to the decision boundary, on a grid; None without either of them."""
    if not {"kept_inducing", "kept_log_probs", "kept_grid"} <= run.keys() or run["kept_grid"].shape[1] != 2:
        return None
    side = round(len(run["kept_grid"]) ** 0.5)
    grid, classes = run["kept_grid"].reshape(side, side, 2), _classes(run).reshape(side, side)
    along, across = classes[1:] != classes[:-1], classes[:, 1:] != classes[:, :-1]
    middles = np.concatenate([(grid[1:] + grid[:-1])[along] / 2, (grid[:, 1:] + grid[:, :-1])[across] / 2])
    if not len(middles):
        return None
    return float(np.median(_distances(run["kept_inducing"], middles).min(axis=1)))


def _inactive_share(run: Arrays) -> float | None:
    """The largest mean share of the predictor's variance of an effect that Friedman's function has not."""
    if "kept_effect1_inputs" not in run or "kept_shares" not in run:
        return None
    shares = []
    for size, i in effects.places(run):
        if not effects.truth(run, size, i).any():
            shares.append(float(run["kept_shares"][:, int(run[f"kept_effect{size}_place"][i])].mean()))
    return max(shares, default=None)


def _effect(number: int) -> Callable[[Arrays], float | None]:
    return lambda run: effects.errors(run)[number] if "kept_effect1_inputs" in run else None


SUMMARIES: Mapping[str, Callable[[Arrays], float | None]] = {
    "boundary_distance": boundary_distance,
    "effect_error": _effect(0),
    "effect_coverage": _effect(1),
    "inactive_share": _inactive_share,
}
"""Numbers of one run, which a clause calls `kept.NAME`.  Two are of Friedman's function: the RMSE of effects, and the
share of grid points at which their 95 % bands cover the truth."""


_Comparison = Callable[[Arrays, Arrays], float | None]


def _comparison(extract: str, function: Callable[[ndarray, ndarray], Any], on_grid: bool = True) -> _Comparison:
    """A number of the extracts of two runs; None where one lacks them, they differ in shape, or are on another grid."""

    def compare(a: Arrays, b: Arrays) -> float | None:
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


def summary(run: Arrays, name: str) -> float | None:
    """One of `SUMMARIES` of a run, also of one of which a collection has extracts alone; None where it lacks it."""
    value = _extract(run, name)
    return float(value) if value is not None and value.ndim == 0 else None


def extracts(run: Arrays) -> dict[str, ndarray]:
    """The parts of a run's arrays that numbers read, by the names that they have in a collection; {} without any."""
    values = {name: _extract(run, name) for name in (*SUMMARIES, *_EXTRACTS)}
    return {_EXTRACT + name: value for name, value in values.items() if value is not None}


def _extract(run: Arrays, name: str) -> ndarray | None:
    if _EXTRACT + name in run:
        return run[_EXTRACT + name]
    needed, function = _EXTRACTS.get(name) or (set(), SUMMARIES[name])
    value = function(run) if needed <= run.keys() else None
    return None if value is None else np.asarray(value)


def _classes(run: Arrays) -> Int[ndarray, " G"]:
    return run["kept_log_probs"].argmax(axis=1)


def _row_classes(run: Arrays) -> UInt8[ndarray, " n"]:
    """The predicted class at the nearest point of the grid to each training row."""
    from scipy.spatial import cKDTree

    _, nearest = cKDTree(run["kept_grid"]).query(run["kept_X"])
    return _classes(run)[nearest].astype(np.uint8)


def _var_within(run: Arrays) -> Float[ndarray, " g"]:
    """The predictive variance on the grid within the training inputs."""
    grid, rows = run["kept_grid"], run["kept_X"]
    return run["kept_var"][((grid >= rows.min(axis=0)) & (grid <= rows.max(axis=0))).all(axis=1)]


_EXTRACTS: Mapping[str, tuple[set[str], Callable[[Arrays], ndarray]]] = {
    "inducing": ({"kept_inducing"}, lambda run: run["kept_inducing"]),
    # the first and the last point: with these and its size, a grid is known
    "corners": ({"kept_grid"}, lambda run: run["kept_grid"][[0, -1]]),
    "row_classes": ({"kept_log_probs", "kept_grid", "kept_X"}, _row_classes),
    "var": ({"kept_var"}, lambda run: run["kept_var"]),
    "var_within": ({"kept_var", "kept_grid", "kept_X"}, _var_within),
    "mean": ({"kept_mean"}, lambda run: run["kept_mean"]),
}
"""What comparisons read of each run: the arrays that it needs, and its function."""


def _distances(a: Float[ndarray, "n D"], b: Float[ndarray, "m D"]) -> Float[ndarray, "n m"]:
    return np.sqrt(np.sum((a[:, None] - b[None]) ** 2, axis=-1, dtype=float))


_PREFIX = "kept."
_POINT = Keys({"metric": required(), "step": optional("number"), "seconds": optional("number")})
_LEVEL = Keys(
    {"metric": required(["steps", "seconds"]), "until": required()}
    | {side: optional("number") for side in ("below", "above")}
)


@dataclass(frozen=True)
class Quantity:
    """A metric of records; or of a trace, at a `point` of an axis, or as the point at which it passes a level."""

    metric: str
    point: tuple[str, float] | None = None
    until: tuple[str, str, float] | None = None  # the metric of the trace, below or above, and the level

    @classmethod
    def read(cls, content: Any, subject: str) -> "Quantity":
        """The quantity of an entry of a claims file.  Raises ConfigError: there is none of this form or name."""
        if not isinstance(content, Mapping):
            metric = str(content)
            name = metric.removeprefix(_PREFIX)
            if metric != name:
                require_known(name, SUMMARIES, f"{subject}: no number {name!r}")
            if " " in metric:
                form = "{metric: nll, step: 10} or {metric: seconds, until: nll, below: 0.3}"
                raise ConfigError(f"{subject}: {metric!r}: write a number of a trace as {form}")
            return cls(metric)
        is_level = "until" in content
        names = "below and above" if is_level else "step and seconds"
        keys = (_LEVEL if is_level else _POINT).check(content, subject)
        points = [(key, float(keys[key])) for key in names.split(" and ") if key in keys]
        if len(points) != 1:
            raise ConfigError(f"{subject}: give one of {names}")
        until = (str(keys["until"]), *points[0]) if is_level else None
        return cls(str(keys["metric"]), None if until else points[0], until)

    def __str__(self) -> str:
        if self.until:
            metric, side, level = self.until
            return f"{self.metric} until {metric} {side} {level:.12g}"
        if self.point:
            axis, end = self.point
            return f"{self.metric} at step {end:.12g}" if axis == "step" else f"{self.metric} after {end:.12g} seconds"
        return self.metric

    @property
    def is_of_seconds(self) -> bool:
        """Whether it depends on the machine."""
        return self.metric == "seconds" or (self.point is not None and self.point[0] == "seconds")

    @property
    def is_of_arrays(self) -> bool:
        return bool(self.point or self.until) or self.metric.startswith(_PREFIX)

    @property
    def recorded(self) -> str:
        """The metric of records or of traces that it is read from; "" of kept arrays."""
        return self.until[0] if self.until else "" if self.metric.startswith(_PREFIX) else self.metric

    def value(self, arrays: Arrays) -> float | None:
        """Its value in the arrays of a run; None where they lack it, and infinite for a level that is never passed."""
        if self.until:
            metric, side, level = self.until
            axis, sign = {"steps": "step"}.get(self.metric, self.metric), 1 if side == "below" else -1
            if not {metric, axis, "step"} <= arrays.keys() or not len(arrays["step"]):
                return None
            beyond = [sign * value < sign * level for value in arrays[metric]]
            places = (float(position) for position, is_beyond in zip(arrays[axis], beyond) if is_beyond)
            return None if beyond[0] and arrays["step"][0] > 1 else next(places, math.inf)
        if self.point is None:
            return summary(arrays, self.metric.removeprefix(_PREFIX))
        axis, end = self.point
        if not {self.metric, axis} <= arrays.keys():
            return None
        values = [float(value) for position, value in zip(arrays[axis], arrays[self.metric]) if position <= end]
        return values[-1] if values and math.isfinite(values[-1]) else None
