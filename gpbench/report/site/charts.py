"""Charts of the pages as coordinates in pixels; `charts.html` draws them as SVG in the colours of the style sheet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from gpbench.experiments.status import Cell
from gpbench.metrics import METRICS, better
from gpbench.report.cells import CellRuns, Entry, by_split
from gpbench.report.figures.dots import span_limits
from gpbench.report.figures.traces import curve
from gpbench.report.statistics import paired_t_test
from gpbench.report.text import number

CURVE_RUNS = 5
"""Learning curves are of at most so many runs of a cell: reading the traces of all would take the most of a report."""
_CURVE_POINTS = 60
_PANELS = 3


@dataclass(frozen=True)
class Scale:
    """Maps the values from `low` to `high` to pixels from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; of one outside that of the nearer end."""
        of = np.log if self.log else float
        low, high = of(self.low), of(self.high)
        part = (of(min(max(value, self.low), self.high)) - low) / (high - low)
        return round(float(self.start + part * (self.end - self.start)), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels of round values."""
        wide = self.high > 100 * self.low
        locator = LogLocator(subs=(1,) if wide else (1, 2, 5)) if self.log else MaxNLocator(5)
        values = [value for value in locator.tick_values(self.low, self.high) if self.low <= value <= self.high]
        return [(self.at(value), f"{value:.6g}") for value in values]


@dataclass(frozen=True)
class Dot:
    """A cell in the charts of a data set: its place among the others, its name and page, and where it is.

    x, low, high: pixels of the mean and of its interval; `outside` has the value where the mean is beyond the axis.
    seconds: the pixels of mean seconds of training and of the mean, or None.
    """

    place: int
    name: str
    page: str
    text: str
    x: float
    low: float
    high: float
    outside: str
    seconds: tuple[float, float] | None


@dataclass(frozen=True)
class Dots:
    """The cells of one data set by one metric, best first, and quality against seconds."""

    metric: str
    scale: Scale
    dots: Sequence[Dot]
    seconds: Scale | None
    quality: Scale


@dataclass(frozen=True)
class LearningCurve:
    """A metric along training: the points of the mean, and of its band of one standard error, as SVG has them."""

    metric: str
    line: str
    band: str
    x: Scale
    y: Scale
    n: int


def dots(entries: Sequence[Entry], page_of: Mapping[str, str]) -> Dots | None:
    """The charts of the entries of one metric; None where fewer than two have a mean."""
    shown = [entry for entry in entries if entry.mean is not None]
    if len(shown) < 2:
        return None
    metric = shown[0].metric
    shown.sort(key=lambda entry: entry.mean, reverse=better(metric) == "higher")
    spans = [_span(entry) for entry in shown]
    scale = Scale(*span_limits(spans, better(metric)), 300, 730)
    quality = Scale(scale.low, scale.high, 250, 20)
    seconds = {
        k: float(np.mean([*of.values()])) for k, entry in enumerate(shown) if (of := by_split(entry.cell, "seconds"))
    }
    positive = [value for value in seconds.values() if value > 0]
    along = Scale(min(positive) / 1.3, max(positive) * 1.3, 70, 730, log=True) if len(positive) > 1 else None
    return Dots(metric, scale, [
        Dot(k, f"{entry.cell.method} {entry.cell.label} {entry.cell.output}".strip(),
            page_of[entry.cell.records[0]["id"]],
            number(mean, entry.stderr), *map(scale.at, (mean, low, high)),
            "" if scale.low <= mean <= scale.high else number(mean),
            (along.at(seconds[k - 1]), quality.at(mean)) if along and seconds.get(k - 1, 0) > 0 else None)
        for k, (entry, (low, mean, high)) in enumerate(zip(shown, spans), 1)
    ], along, quality)  # fmt: skip


def learning_curves(cell: CellRuns, trace: Callable[[str], Mapping[str, np.ndarray]]) -> list[LearningCurve]:
    """Curves of the objective and of metrics over the first runs of a cell; empty where these have no traces."""
    done = [record for record in cell.records if record["status"] == "done"]
    some = sorted(done, key=lambda record: (record["split"], record["seed"]))[:CURVE_RUNS]
    arrays = {record["id"]: dict(trace(record["id"])) for record in some}
    names = [name for name in ("objective", *METRICS) if any(name in of and "seconds" in of for of in arrays.values())]
    runs = Cell({}, "", cell.dataset, cell.method, 0, (), records=some)
    curves = (_learning_curve(name, runs, arrays) for name in names[:_PANELS])
    return [one for one in curves if one]


def _learning_curve(metric: str, runs: Cell, arrays: Mapping[str, Any]) -> LearningCurve | None:
    found = curve(runs, metric, lambda id: arrays[id] if "seconds" in arrays[id] else {})
    if found is None:
        return None
    whole = np.flatnonzero(np.isfinite(found.mean) & (found.seconds > 0))
    if len(whole) < 2:
        return None
    points = whole[np.unique(np.linspace(0, len(whole) - 1, _CURVE_POINTS).astype(int))]
    seconds, mean, stderr = found.seconds[points], found.mean[points], found.stderr[points]
    low, high = np.quantile(mean, [0.02, 0.98])  # extreme initial values do not set the range
    low, high = min(low, mean[-1]), max(high, mean[-1])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    if seconds[0] == seconds[-1]:
        return None
    x, y = Scale(seconds[0], seconds[-1], 60, 350, log=True), Scale(low - margin, high + margin, 190, 15)

    def line(values: np.ndarray, along: slice = slice(None)) -> str:
        return " ".join(f"{x.at(s)},{y.at(v)}" for s, v in zip(seconds[along], values[along]))

    n = sum(metric in arrays[record["id"]] for record in runs.records)
    return LearningCurve(
        metric, line(mean), f"{line(mean + stderr)} {line(mean - stderr, slice(None, None, -1))}", x, y, n
    )


def _span(entry: Entry) -> tuple[float, float, float]:
    """The mean, and the ends of its corrected 95 % interval; the mean alone where there is no interval."""
    test = paired_t_test([*entry.values.values()], entry.cell.ratio)
    low, high = (test.mean if end is None else end for end in (test.low, test.high))
    return low, test.mean, high
