"""Numbers of a run that its record has not: read from its trace, and from the arrays that `run.keep=true` kept.

A metric of a clause may be

- `nll at step 10`, `nll after 2.5 seconds`: the last point of the trace by then;
- `steps until nll below 0.3`, `seconds until rmse below 1`: the first point at which it is, infinite without one,
  unknown where the trace begins with one after the first step;
- `kept.NAME`: a number of `SUMMARIES`.

The metric of a trace is that on the test rows, or `objective`.  Seconds are those of training, of which
runs that were trained together have equal shares.
"""

import functools
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpbench.claims import kept

if TYPE_CHECKING:
    from numpy import ndarray

Arrays = Mapping[str, "ndarray"]
"""The arrays of a run: its trace, and those that it kept, by their names in the trace."""
Reader = Callable[[Arrays], float | None]
"""Reads a number from the arrays of a run; None where they lack it."""

_NUMBER = r"(?P<x>[-+.\de]+)"
_AT = re.compile(rf"(?P<metric>\w+) (?:at (?P<step>step)|after) {_NUMBER}(?(step)| seconds)")
_UNTIL = re.compile(rf"(?P<axis>steps|seconds) until (?P<metric>\w+) (?P<side>below|above) {_NUMBER}")
PREFIX = "kept."


def base(metric: str) -> str:
    """The metric of records in a clause's metric, whose direction it has: that of a trace at a point."""
    match = _AT.fullmatch(metric)
    return match["metric"] if match else metric


def is_of_seconds(metric: str) -> bool:
    """Whether a metric depends on the machine."""
    return base(metric) == "seconds" or metric.startswith("seconds until ") or metric.endswith(" seconds")


def are_of_arrays(kind: str, metric: str) -> bool:
    """Whether the numbers of a clause of this kind and metric are read from arrays."""
    return kind == "comparison" or reader(metric) is not None


def trace_metric(metric: str) -> str:
    """The metric whose trace a clause's metric reads; "" of others."""
    match = _AT.fullmatch(metric) or _UNTIL.fullmatch(metric)
    return match["metric"] if match else ""


def reader(metric: str) -> Reader | None:
    """The function that reads a metric from the arrays of a run; None of one that records have."""
    if match := _AT.fullmatch(metric):
        axis = "step" if match["step"] else "seconds"
        return functools.partial(_last, metric=match["metric"], axis=axis, end=float(match["x"]))
    if match := _UNTIL.fullmatch(metric):
        sign, axis = (1 if match["side"] == "below" else -1), ("step" if match["axis"] == "steps" else "seconds")
        return functools.partial(_first, metric=match["metric"], axis=axis, sign=sign, level=float(match["x"]))
    name = metric.removeprefix(PREFIX) if metric.startswith(PREFIX) else ""
    return functools.partial(kept.summary, name=name) if name in kept.SUMMARIES else None


def _last(arrays: Arrays, metric: str, axis: str, end: float) -> float | None:
    """The last value up to an end; None where the trace begins later."""
    if not {metric, axis} <= arrays.keys():
        return None
    values = [float(value) for position, value in zip(arrays[axis], arrays[metric]) if position <= end]
    return values[-1] if values and math.isfinite(values[-1]) else None


def _first(arrays: Arrays, metric: str, axis: str, sign: int, level: float) -> float | None:
    """The place of the first value beyond a level; infinite without one, None where the trace may begin after it."""
    if not {metric, axis, "step"} <= arrays.keys() or not len(arrays["step"]):
        return None
    if sign * arrays[metric][0] < sign * level and arrays["step"][0] > 1:
        return None
    places = (float(position) for position, value in zip(arrays[axis], arrays[metric]) if sign * value < sign * level)
    return next(places, math.inf)
