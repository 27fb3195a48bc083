"""Charts of the pages: coordinates in pixels for `charts.html`, and SVG of claims and badges."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from gpbench.analysis.cells import CellRuns, Entry, by_split
from gpbench.analysis.printing import number
from gpbench.analysis.statistics import paired_t_test
from gpbench.claims import sentences
from gpbench.claims.grades import Judged
from gpbench.experiments.status import Cell
from gpbench.metrics import METRICS
from gpbench.records.arrays import thin
from gpbench.report.curves import curve
from gpbench.report.dots import span_limits, target
from gpbench.report.site.scales import Scale

_CURVE_RUNS = 3
"""Largest number of runs of a learning curve; reading the traces of all would take most of the time of a report."""
_PANELS = 3


@dataclass(frozen=True)
class _Dot:
    """A cell in the charts of a data set."""

    rank: int  # rank among the cells, 1 is best
    name: str  # method, label and output
    page: str  # page of the cell
    text: str  # mean and standard error
    x: float
    low: float
    high: float
    outside: str  # the mean as text where it is beyond the axis, else ""
    seconds: tuple[float, float] | None  # pixels of mean seconds of training and of the mean, or None
    target: float | None = None  # place of the printed value if that is a target, or None
    label: bool = True  # whether its number stands there, for it touches no other


@dataclass(frozen=True)
class Dots:
    """The cells of one data set by one metric, best first, and quality against seconds."""

    metric: str
    scale: Scale
    dots: Sequence[_Dot]
    seconds: Scale | None
    quality: Scale


@dataclass(frozen=True)
class _LearningCurve:
    """A metric along training: the points of the mean and of its band of one standard error, as in SVG."""

    metric: str
    line: str
    band: str
    x: Scale
    y: Scale
    n: int


def dots(entries: Mapping[str, Entry], page_of: Mapping[str, str], *, targets: bool = False) -> Dots | None:
    """The charts of the entries of one metric, by their names; None where fewer than two have a mean."""
    pairs = [(name, entry) for name, entry in entries.items() if entry.mean is not None]
    if len(pairs) < 2:
        return None
    metric, direction = pairs[0][1].metric, pairs[0][1].better
    sign = -1 if direction == "higher" else 1
    pairs.sort(key=lambda item: (not item[1].cell.held_out, sign * (item[1].mean or 0.0)))  # leaked ones win nothing
    drawn = [entry for _, entry in pairs]
    spans = [_span(entry) for entry in drawn]
    printed = [target(entry) if targets else None for entry in drawn]
    scale = Scale(*span_limits(spans, direction, [value for value in printed if value is not None]), 1, 99)
    quality = Scale(scale.low, scale.high, 250, 20)
    by_cell = [by_split(entry.cell, "seconds") for entry in drawn]
    seconds = {k: float(np.mean([*values.values()])) for k, values in enumerate(by_cell) if values}
    positive = [value for value in seconds.values() if value > 0]
    along = Scale(min(positive) / 1.3, max(positive) * 1.3, 60, 385, log=True) if len(positive) > 1 else None
    results = []
    for k, ((name, entry), span) in enumerate(zip(pairs, spans)):
        cell, (_, mean, _), value = entry.cell, span, printed[k]
        low, x, high = map(scale.pixel, span)
        mark = None if value is None else scale.pixel(value)
        outside = "" if scale.low <= mean <= scale.high else number(mean)
        position = (along.pixel(seconds[k]), quality.pixel(mean)) if along and seconds.get(k, 0) > 0 else None
        text = number(mean, entry.stderr)
        results.append(_Dot(k + 1, name, page_of[cell.records[0].id], text, x, low, high, outside, position, mark))
    flags = free([dot.seconds for dot in results])
    return Dots(metric, scale, [replace(dot, label=flag) for dot, flag in zip(results, flags)], along, quality)


def free(points: Sequence[tuple[float, float] | None], width: float = 18, height: float = 13) -> list[bool]:
    """Which of these points can have a label: those whose label touches none before it."""
    labels: list[tuple[float, float]] = []
    flags = []
    for point in points:
        room = all(abs(point[0] - x) > width or abs(point[1] - y) > height for x, y in labels) if point else False
        flags.append(room)
        if room and point:
            labels.append(point)
    return flags


def learning_curves(cell: CellRuns, trace: Callable[[str], Mapping[str, np.ndarray]]) -> list[_LearningCurve]:
    """Curves of the objective and of metrics over the first runs of a cell; empty where these have no traces."""
    records = sorted((r for r in cell.records if not r.diverged), key=lambda r: (r.split, r.seed))[:_CURVE_RUNS]
    arrays = {record.id: thin(trace(record.id), whole=False) for record in records}
    traced = {name for run in arrays.values() if "seconds" in run for name in run}
    names = [name for name in ("objective", *METRICS) if name in traced]
    runs = Cell({}, "", cell.dataset, cell.method, 0, (), records=records)
    return [*filter(None, (_learning_curve(name, runs, arrays) for name in names[:_PANELS]))]


def _learning_curve(metric: str, runs: Cell, arrays: Mapping[str, Any]) -> _LearningCurve | None:
    whole = curve(runs, metric, lambda id: arrays[id] if "seconds" in arrays[id] else {})
    if whole is None:
        return None
    finite = np.flatnonzero(np.isfinite(whole.mean) & (whole.seconds > 0))
    if len(finite) < 2:
        return None
    seconds, mean, stderr = (values[finite].astype(float) for values in (whole.seconds, whole.mean, whole.stderr))
    low, high = np.quantile(mean, [0.02, 0.98])  # extreme initial values do not set the range
    low, high = min(low, mean[-1]), max(high, mean[-1])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    if seconds[0] == seconds[-1]:
        return None
    x = Scale(float(seconds[0]), float(seconds[-1]), 60, 350, log=True)
    y = Scale(float(low - margin), float(high + margin), 190, 15)

    def points(values: np.ndarray) -> list[str]:
        return [f"{a:g},{b:g}" for a, b in zip(x.pixels(seconds).tolist(), y.pixels(values).tolist())]

    band = points(mean + stderr) + points(mean - stderr)[::-1]
    n = sum(metric in arrays[record.id] for record in runs.records)
    return _LearningCurve(metric, " ".join(points(mean)), " ".join(band), x, y, n)


def _span(entry: Entry) -> tuple[float, float, float]:
    """The mean, and the ends of its corrected 95 % interval; the mean alone where there is no interval."""
    test = paired_t_test([*entry.values.values()], entry.cell.ratio)
    low, high = (test.mean if end is None else end for end in (test.low, test.high))
    return low, test.mean, high


_WIDTH, _NAMES, _ROW_HEIGHT, _MAX_ROWS = 460, 190, 15, 30
"""Widths of a plot and of its names, height of a line, in pixels; largest number of lines."""


def claim_plot(judged: Judged) -> Markup:
    """Intervals of the numbers of a clause beside its region, as SVG in the colours of the page."""
    drawn = [(n.name, n.estimate) for n in judged.numbers if n.estimate][:_MAX_ROWS]
    ends = [end for end in judged.clause.region if not math.isinf(end)]
    points = [x for _, e in drawn for x in (e.value, *e.interval) if not math.isinf(x)] + ends
    low, high = min(points), max(points)
    margin = 0.05 * (high - low or abs(high) or 1.0)
    low, high = low - margin, high + margin

    scale = Scale(low, high, _NAMES, _WIDTH)
    region = judged.clause.region
    height, x, x_end = _ROW_HEIGHT * len(drawn), scale.pixel(region.low), scale.pixel(region.high)
    parts = [f'<rect class="region" x="{x:.1f}" y="0" width="{x_end - x:.1f}" height="{height}"/>']
    for k, (name, estimate) in enumerate(drawn):
        y, (a, b) = _ROW_HEIGHT * (k + 0.5), estimate.interval
        x, kind = scale.pixel(estimate.value), "inside" if region.low <= estimate.value <= region.high else "outside"
        parts += [
            f'<text x="{_NAMES - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(name or "all")}</text>',
            f'<line x1="{scale.pixel(a):.1f}" x2="{scale.pixel(b):.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="3"/>',
        ]
    height += _ROW_HEIGHT
    unlog = math.exp if judged.clause.is_logarithmic else float
    for end in ends:
        parts.append(f'<text x="{scale.pixel(end):.1f}" y="{height - 3}" text-anchor="middle">{unlog(end):.3g}</text>')
    words = escape(sentences.describe(judged.clause))
    return Markup(
        f'<svg class="claim" viewBox="0 0 {_WIDTH + 20} {height}" width="{_WIDTH + 20}" height="{height}" role="img"'
        f' aria-label="{words}">{"".join(parts)}</svg>'
    )


def badge(name: str, counts: str, colour: str) -> bytes:
    """A name and what is counted as a badge, an SVG to be shown elsewhere."""
    a, b = (int(6.2 * len(text)) + 14 for text in (name, counts))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{a + b}" height="20" role="img" aria-label="{escape(name)}:'
        f' {escape(counts)}"><rect width="{a}" height="20" fill="#444"/><rect x="{a}" width="{b}" height="20"'
        f' fill="{colour}"/><g fill="#fff" text-anchor="middle"'
        f' font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="{a / 2}" y="14">{escape(name)}</text>'
        f'<text x="{a + b / 2}" y="14">{escape(counts)}</text></g></svg>\n'
    ).encode()
