"""Scales of the charts: from values to pixels, with round values as ticks.  No Matplotlib."""

import math
from dataclasses import dataclass

import numpy as np

_INTERVALS = 5
"""Largest number of intervals between ticks."""


@dataclass(frozen=True)
class Scale:
    """A scale from the values `low` to `high` to the pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def pixel(self, value: float) -> float:
        """The pixel of a value; outside of the scale that of the nearer end."""
        transform = math.log if self.log else float
        low, high = transform(self.low), transform(self.high)
        fraction = (transform(min(max(value, self.low), self.high)) - low) / (high - low)
        return round(self.start + fraction * (self.end - self.start), 1)

    def pixels(self, values: np.ndarray) -> np.ndarray:
        """The pixels of several values."""
        transform = np.log if self.log else np.asarray
        low, high = transform(self.low), transform(self.high)
        fraction = (transform(np.clip(values, self.low, self.high)) - low) / (high - low)
        return np.round(self.start + fraction * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels of round values."""
        values = _powers(self.low, self.high) if self.log else _steps(self.low, self.high)
        return [(self.pixel(value), f"{value:.6g}") for value in values if self.low <= value <= self.high]


def _steps(low: float, high: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, whichever are fewest above the number of intervals."""
    raw = (high - low) / _INTERVALS
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    return [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten; with their multiples by 2 and 5 where these are fewer than two; every n-th where they are many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if high <= 100 * low:
        return [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]
    return [10.0**power for power in range(first, last + 1, math.ceil((last - first) / (2 * _INTERVALS)))]
