"""Charts of the pages as coordinates in pixels; `charts.html` draws them as SVG in the colours of the style sheet."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import LogLocator, MaxNLocator

from gpbench.analysis.cells import CellRuns, Entry, by_split
from gpbench.analysis.formats import number
from gpbench.analysis.statistics import paired_t_test
from gpbench.claims import report
from gpbench.claims.verdicts import Judged, Verdict
from gpbench.experiments.status import Cell
from gpbench.metrics import METRICS, better
from gpbench.records.arrays import thin
from gpbench.report.figures.dots import span_limits
from gpbench.report.figures.traces import curve

CURVE_RUNS = 3
"""Learning curves are of at most so many runs of a cell: reading the traces of all would take the most of a report."""
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
        return float(self.pixels(np.array([value]))[0])

    def pixels(self, values: np.ndarray) -> np.ndarray:
        """`at` of several values."""
        of = np.log if self.log else np.asarray
        low, high = of(self.low), of(self.high)
        part = (of(np.clip(values, self.low, self.high)) - low) / (high - low)
        return np.round(self.start + part * (self.end - self.start), 1)

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
    shown.sort(key=lambda entry: entry.mean or 0.0, reverse=better(metric) == "higher")
    spans = [_span(entry) for entry in shown]
    scale = Scale(*span_limits(spans, better(metric)), 300, 730)
    quality = Scale(scale.low, scale.high, 250, 20)
    seconds = {
        k: float(np.mean([*of.values()])) for k, entry in enumerate(shown) if (of := by_split(entry.cell, "seconds"))
    }
    positive = [value for value in seconds.values() if value > 0]
    along = Scale(min(positive) / 1.3, max(positive) * 1.3, 70, 730, log=True) if len(positive) > 1 else None
    placed = []
    for k, (entry, (low, mean, high)) in enumerate(zip(shown, spans), 1):
        name = f"{entry.cell.method} {entry.cell.label} {entry.cell.output}".strip()
        outside = "" if scale.low <= mean <= scale.high else number(mean)
        at = (along.at(seconds[k - 1]), quality.at(mean)) if along and seconds.get(k - 1, 0) > 0 else None
        placed.append(
            Dot(
                k,
                name,
                page_of[entry.cell.records[0].id],
                number(mean, entry.stderr),
                scale.at(mean),
                scale.at(low),
                scale.at(high),
                outside,
                at,
            )
        )
    return Dots(metric, scale, placed, along, quality)


def learning_curves(cell: CellRuns, trace: Callable[[str], Mapping[str, np.ndarray]]) -> list[LearningCurve]:
    """Curves of the objective and of metrics over the first runs of a cell; empty where these have no traces."""
    done = [record for record in cell.records if not record.diverged]
    some = sorted(done, key=lambda record: (record.split, record.seed))[:CURVE_RUNS]
    arrays = {record.id: thin(trace(record.id), kept=False) for record in some}
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
    seconds, mean, stderr = (of[whole].astype(float) for of in (found.seconds, found.mean, found.stderr))
    low, high = np.quantile(mean, [0.02, 0.98])  # extreme initial values do not set the range
    low, high = min(low, mean[-1]), max(high, mean[-1])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    if seconds[0] == seconds[-1]:
        return None
    x, y = (
        Scale(float(seconds[0]), float(seconds[-1]), 60, 350, log=True),
        Scale(float(low - margin), float(high + margin), 190, 15),
    )

    def points(values: np.ndarray) -> list[str]:
        return [f"{a:g},{b:g}" for a, b in zip(x.pixels(seconds).tolist(), y.pixels(values).tolist())]

    band = points(mean + stderr) + points(mean - stderr)[::-1]
    n = sum(metric in arrays[record.id] for record in runs.records)
    return LearningCurve(metric, " ".join(points(mean)), " ".join(band), x, y, n)


def _span(entry: Entry) -> tuple[float, float, float]:
    """The mean, and the ends of its corrected 95 % interval; the mean alone where there is no interval."""
    test = paired_t_test([*entry.values.values()], entry.cell.ratio)
    low, high = (test.mean if end is None else end for end in (test.low, test.high))
    return low, test.mean, high


_WIDTH, _NAMES, _ROW_HEIGHT, _MAX_ROWS = 460, 190, 15, 30
"""Pixels of a plot, of its names and of a line; and the most lines."""


def claim_plot(judged: Judged) -> Markup:
    """Intervals of the numbers of a clause beside its region, as SVG whose colours are the page's."""
    drawn = [(n.name, n.estimate) for n in judged.numbers if n.estimate][:_MAX_ROWS]
    ends = [end for end in judged.clause.region if not math.isinf(end)]
    points = [x for _, e in drawn for x in (e.value, *e.interval) if not math.isinf(x)] + ends
    low, high = min(points), max(points)
    margin = 0.05 * (high - low or abs(high) or 1.0)
    low, high = low - margin, high + margin

    def at(x: float) -> float:
        return _NAMES + (_WIDTH - _NAMES) * (min(max(x, low), high) - low) / (high - low)

    left, right = at(judged.clause.region.low), at(judged.clause.region.high)
    height = _ROW_HEIGHT * (len(drawn) + 1)
    parts = [f'<rect class="region" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{height - _ROW_HEIGHT}"/>']
    for k, (name, estimate) in enumerate(drawn):
        y, (a, b) = _ROW_HEIGHT * (k + 0.5), estimate.interval
        inside = judged.clause.region.low <= estimate.value <= judged.clause.region.high
        parts += [
            f'<text x="{_NAMES - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(name or "all")}</text>',
            f'<line x1="{at(a):.1f}" x2="{at(b):.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="{"inside" if inside else "outside"}" cx="{at(estimate.value):.1f}" cy="{y}" r="3"/>',
        ]
    unlog = math.exp if judged.clause.kind == "ratio" else float
    for end in ends:
        parts.append(f'<text x="{at(end):.1f}" y="{height - 3}" text-anchor="middle">{unlog(end):.3g}</text>')
    words = escape(report.describe(judged.clause))
    return Markup(
        f'<svg class="claim" viewBox="0 0 {_WIDTH + 20} {height}" width="{_WIDTH + 20}" height="{height}" role="img"'
        f' aria-label="{words}">{"".join(parts)}</svg>'
    )


def badge(paper: str, judged: Sequence[Verdict]) -> bytes:
    """A paper's verdicts in numbers, to be shown elsewhere."""
    left, right = f"{paper} claims", report.summary(judged)
    a, b = (int(6.2 * len(text)) + 14 for text in (left, right))
    contradicted = any(verdict.verdict == "contradicted" for verdict in judged)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{a + b}" height="20" role="img" aria-label="{escape(left)}:'
        f' {escape(right)}"><rect width="{a}" height="20" fill="#444"/><rect x="{a}" width="{b}" height="20"'
        f' fill="{"#a8471c" if contradicted else "#2c6e49"}"/><g fill="#fff" text-anchor="middle"'
        f' font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="{a / 2}" y="14">{escape(left)}</text>'
        f'<text x="{a + b / 2}" y="14">{escape(right)}</text></g></svg>\n'
    ).encode()
