"""Coordinates for the charts of `charts.html`, of hundreds of cells: Matplotlib takes most of a second for each."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, MaxNLocator

from gpbench.analysis.cells import CellRuns, Entry, by_split
from gpbench.analysis.printing import number
from gpbench.analysis.statistics import paired_t_test
from gpbench.claims import sentences
from gpbench.claims.grades import Judged
from gpbench.records.arrays import thin
from gpbench.records.record import Record
from gpbench.report.figures.dots import span_limits
from gpbench.report.figures.runs import curve, traced_metrics

_CURVE_RUNS = 3  # runs of a learning curve; reading the traces of all would take most of the time of a report
_PANELS = 3
_LABEL = (18, 13)  # width and height of a label in pixels
_MAX_ROWS = 30  # largest number of lines of a plot of a claim


@dataclass(frozen=True)
class Scale:
    """A scale from the values `low` to `high` to the pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def pixels(self, values: Any) -> list[float]:
        """The pixels of values; outside of the scale that of the nearer end."""
        transform = np.log if self.log else np.asarray
        within = np.clip(np.asarray(values, float), self.low, self.high)
        ends = transform([self.low, self.high])
        return np.round(np.interp(transform(within), ends, [self.start, self.end]), 1).tolist()

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and labels of round values: powers of ten, or multiples of 1, 2 or 5 times a power."""
        of_powers = LogLocator(subs=(1,) if self.high > 100 * self.low else (1, 2, 5), numticks=11)
        locator = of_powers if self.log else MaxNLocator(5, steps=(1, 2, 5, 10))
        values = [value for value in locator.tick_values(self.low, self.high) if self.low <= value <= self.high]
        return [(pixel, f"{value:.6g}") for pixel, value in zip(self.pixels(values), values)]


def dots(entries: Mapping[str, Entry], page_of: Mapping[str, str]) -> dict[str, Any] | None:
    """The entries of one metric as dots, best first, also against seconds; None where fewer than two have a mean."""
    known = [(name, entry) for name, entry in entries.items() if entry.mean is not None]
    if len(known) < 2:
        return None
    direction = known[0][1].better
    sign = -1 if direction == "higher" else 1
    known.sort(key=lambda item: (not item[1].cell.held_out, sign * (item[1].mean or 0.0)))  # leaked ones win nothing
    tests = [paired_t_test([*entry.values.values()], entry.cell.ratio) for _, entry in known]
    spans = [
        (mean, mean, mean) if low is None or high is None else (low, mean, high) for mean, _, low, high, _ in tests
    ]
    scale = Scale(*span_limits(spans, direction), 1, 99)
    quality = Scale(scale.low, scale.high, 250, 20)
    seconds = [fmean(by_split(entry.cell, "seconds").values() or [0.0]) for _, entry in known]
    positive = [value for value in seconds if value > 0]
    along = Scale(min(positive) / 1.3, max(positive) * 1.3, 60, 385, log=True) if len(positive) > 1 else None
    pixels = zip(along.pixels(seconds), quality.pixels([mean for _, mean, _ in spans])) if along else ()
    points = [point if time > 0 else None for point, time in zip(pixels, seconds)] or [None] * len(known)
    touch = lambda a, b: all(abs(x - y) <= size for x, y, size in zip(a, b, _LABEL))
    drawn: list[dict[str, Any]] = []
    for k, ((name, entry), span, point) in enumerate(zip(known, spans, points)):
        mean = span[1]
        touched = [dot["seconds"] for dot in drawn if dot["label"]]
        drawn.append(
            {
                "rank": k + 1,
                "name": name,
                "page": page_of[entry.cell.records[0].id],
                "text": number(mean, entry.stderr),
                **dict(zip(("low", "x", "high"), scale.pixels(span))),
                "outside": "" if scale.low <= mean <= scale.high else number(mean),
                "seconds": point,
                "label": point and not any(touch(point, other) for other in touched),
            }
        )
    return {"metric": known[0][1].metric, "scale": scale, "dots": drawn, "seconds": along, "quality": quality}


def learning_curves(cell: CellRuns, trace: Callable[[str], Mapping[str, np.ndarray]]) -> list[dict[str, Any]]:
    """Curves of the objective and of metrics over the first runs of a cell; empty where these have no traces."""
    records = sorted((r for r in cell.records if not r.diverged), key=lambda r: (r.split, r.seed))[:_CURVE_RUNS]
    arrays = {record.id: thin(trace(record.id), whole=False) for record in records}
    timed = [record for record in records if "seconds" in arrays[record.id]]
    metrics = traced_metrics([arrays[record.id] for record in timed])[:_PANELS]
    return [*filter(None, (_learning_curve(metric, timed, arrays) for metric in metrics))]


def _learning_curve(metric: str, records: Sequence[Record], arrays: Mapping[str, Any]) -> dict[str, Any] | None:
    """A metric along training: the points of the mean and of its band of one standard error, as in SVG."""
    whole = curve(records, metric, arrays.__getitem__)
    if whole is None:
        return None
    finite = np.flatnonzero(np.isfinite(whole.mean) & (whole.seconds > 0))
    if len(finite) < 2 or whole.seconds[finite[0]] == whole.seconds[finite[-1]]:
        return None
    seconds, mean, stderr = (values[finite].astype(float) for values in (whole.seconds, whole.mean, whole.stderr))
    low, high = np.quantile(mean, [0.02, 0.98])  # extreme initial values do not set the range
    low, high = min(low, mean[-1]), max(high, mean[-1])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    x = Scale(float(seconds[0]), float(seconds[-1]), 60, 350, log=True)
    y = Scale(float(low - margin), float(high + margin), 190, 15)
    points = lambda values: [f"{a:g},{b:g}" for a, b in zip(x.pixels(seconds), y.pixels(values))]
    line, above, below = map(points, (mean, mean + stderr, mean - stderr))
    n = sum(metric in arrays[record.id] for record in records)
    return {"metric": metric, "line": " ".join(line), "band": " ".join(above + below[::-1]), "x": x, "y": y, "n": n}


def claim_plot(judged: Judged) -> dict[str, Any]:
    """Pixels across of a clause's region, and of the numbers in its order with their intervals."""
    drawn = [(n.name, n.estimate) for n in judged.numbers if n.estimate][:_MAX_ROWS]
    region, ends = judged.clause.region, [end for end in judged.clause.region if not math.isinf(end)]
    points = [x for _, e in drawn for x in (e.value, *e.interval) if not math.isinf(x)] + ends
    margin = 0.05 * (max(points) - min(points) or abs(max(points)) or 1.0)
    scale = Scale(min(points) - margin, max(points) + margin, 190, 460)
    unlog = math.exp if judged.clause.is_logarithmic else float
    kind = lambda value: "inside" if region.low <= value <= region.high else "outside"
    return {
        "words": sentences.describe(judged.clause),
        "region": scale.pixels(region),
        "ends": [(x, f"{unlog(end):.3g}") for x, end in zip(scale.pixels(ends), ends)],
        "rows": [(name, kind(e.value), *scale.pixels([e.value, *e.interval])) for name, e in drawn],
    }
