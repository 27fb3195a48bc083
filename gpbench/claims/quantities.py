"""Metrics of clauses: those of records, and numbers of a run's trace and of the arrays that `run.keep=true` kept.

A clause names a metric of records, `diagnostics.NAME`, or `kept.NAME` (`gpbench.claims.kept`); or has a mapping:

- `{metric: nll, step: 10}`, `{metric: nll, seconds: 2.5}`: the last point of the trace by then;
- `{metric: steps, until: nll, below: 0.3}`, or `seconds`, or `above`: the first point at which it is, infinite without
  one, unknown where the trace begins with one after the first step.

The metric of a trace is that on the test rows, or `objective`.  Seconds are those of training, of which runs that were
trained together have equal shares.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpbench.claims import kept
from gpbench.errors import ConfigError, require_known
from gpbench.keys import Keys, optional, required

if TYPE_CHECKING:
    from numpy import ndarray

Arrays = Mapping[str, "ndarray"]
"""The arrays of a run: its trace, and those that it kept, by their names in the trace."""

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
                require_known(name, kept.SUMMARIES, f"{subject}: no number {name!r}")
            if " " in metric:
                form = "{metric: nll, step: 10} or {metric: seconds, until: nll, below: 0.3}"
                raise ConfigError(f"{subject}: {metric!r}: write a number of a trace as {form}")
            return cls(metric)
        form, names = (_LEVEL, "below and above") if "until" in content else (_POINT, "step and seconds")
        keys = form.check(content, subject)
        points = [(key, float(keys[key])) for key in names.split(" and ") if key in keys]
        if len(points) != 1:
            raise ConfigError(f"{subject}: give one of {names}")
        until = (str(keys["until"]), *points[0]) if form is _LEVEL else None
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
        """Its value in the arrays of a run; None where they lack it.  The place of the first value beyond a level is
        infinite without one, and None where the trace may begin after it."""
        if self.until:
            metric, side, level = self.until
            axis, sign = {"steps": "step"}.get(self.metric, self.metric), 1 if side == "below" else -1
            if not {metric, axis, "step"} <= arrays.keys() or not len(arrays["step"]):
                return None
            beyond = [sign * value < sign * level for value in arrays[metric]]
            places = (float(position) for position, is_beyond in zip(arrays[axis], beyond) if is_beyond)
            return None if beyond[0] and arrays["step"][0] > 1 else next(places, math.inf)
        if self.point is None:
            return kept.summary(arrays, self.metric.removeprefix(_PREFIX))
        axis, end = self.point
        if not {self.metric, axis} <= arrays.keys():
            return None
        values = [float(value) for position, value in zip(arrays[axis], arrays[self.metric]) if position <= end]
        return values[-1] if values and math.isfinite(values[-1]) else None
