"""Means over splits with their standard errors: a panel for each data set, a line for each method."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gpbench.analysis import rankings
from gpbench.analysis.cells import Entry, caveats
from gpbench.analysis.comparison import RULE
from gpbench.analysis.printing import number
from gpbench.analysis.tables import title
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.papers.published import UNRANKED
from gpbench.report.figures import style

_COLUMNS = 5
_STEP = 0.155  # distance between two methods in inches
# interquartile ranges, or median standard errors where larger, beyond the quartile on the worse side at which values no
# longer set the range of a panel
_FENCE = 3
_DIAMOND: Any = {"marker": "D", "markersize": 4.5, "markerfacecolor": "none", "markeredgecolor": "black"}


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> style.Picture:
    """Draws a panel for each data set, with published targets as open diamonds."""
    options = {"settings": rankings.MAIN, **experiment.figure}
    metric, sets = options["metric"], options.get("sets", {})
    rows = rankings.selected_rows(experiment, planned, options, metric)
    hues = style.colours(list(sets))
    colours = {
        name: next((hues[key] for key, members in sets.items() if entry.cell.method in members), "#444444")
        for row in rows.values()
        for name, entry in row.items()
    }
    n_columns = min(_COLUMNS, len(rows))
    n_rows = math.ceil(len(rows) / n_columns)
    figure = style.figure(1.3 + 1.55 * n_columns, 0.6 + n_rows * (_STEP * len(colours) + 0.55))
    axes = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False)
    for axis, (dataset, row) in zip(axes.flat, rows.items()):
        _panel(axis, row, colours, next(iter(row.values())).better)
        axis.set_title(f"{dataset} †" if _is_unranked(row) else dataset, fontsize=9)
    for axis in axes[:, 0]:
        style.rows(axis, [*colours], fontsize=7.5)
        for label, colour in zip(axis.get_yticklabels(), colours.values()):
            label.set_color(colour)
    spare = axes.flat[len(rows) :]
    for axis in spare:
        axis.axis("off")
    handles = [Line2D([], [], color=hue, marker="o", markersize=3.6, label=name) for name, hue in hues.items()]
    if any(_target(entry) is not None for row in rows.values() for entry in row.values()):
        handles.append(Line2D([], [], linestyle="", label="published", **_DIAMOND))
    if handles:
        spare[0].legend(handles=handles) if len(spare) else figure.legend(handles=handles, loc="outside right upper")
    figure.notes = [*_notes(rows, metric), *([RULE] if options["settings"] == rankings.MAIN else [])]
    return figure


def _panel(axis: Axes, row: Mapping[str, Entry], colours: Mapping[str, str], direction: str | None) -> None:
    means = [(entry.mean, entry.stderr or 0) for entry in row.values() if entry.mean is not None]
    targets = [value for entry in row.values() if (value := _target(entry)) is not None]
    low, high = span_limits([(mean - half, mean, mean + half) for mean, half in means], direction, targets)
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(MaxNLocator(3))
    axis.tick_params(axis="x", labelsize=7)
    axis.tick_params(axis="y", length=0)
    for y, (method, colour) in enumerate(colours.items()):
        if method not in row:
            continue
        entry = row[method]
        published = _target(entry)
        if entry.mean is None and (entry.no_value or published is None):
            _text(axis, 0.5, y, entry.no_value or "missing", "#999999")
        elif entry.mean is None:
            pass
        elif low <= entry.mean <= high:
            axis.errorbar(entry.mean, y, xerr=entry.stderr, fmt="o", color=colour, markersize=3.6, elinewidth=1.2)
        else:
            edge, marker, x = (low, "<", 0.3) if entry.mean < low else (high, ">", 0.7)
            axis.plot(edge, y, marker, color=colour, markersize=4.5, clip_on=False)
            _text(axis, x, y, number(entry.mean, entry.stderr), colour)
        if published is not None:
            axis.plot(published, y, linestyle="", **_DIAMOND)


def _text(axis: Axes, x: float, y: float, text: str, colour: str) -> None:
    """Text at a fraction x of the width."""
    axis.text(x, y, text, transform=axis.get_yaxis_transform(), fontsize=6, color=colour, ha="center", va="center")


def span_limits(
    spans: Sequence[tuple[float, float, float]], direction: str | None, targets: Sequence[float] = ()
) -> tuple[float, float]:
    """The range of targets and of spans (low, mean, high), but of those whose mean is beyond the fence."""
    if not spans:
        return 0.0, 1.0
    first, third = np.quantile([mean for _, mean, _ in spans], [0.25, 0.75])
    reach = _FENCE * max(third - first, np.median([high - mean for _, mean, high in spans]))
    lowest = first - reach if direction == "higher" else -np.inf
    highest = third + reach if direction == "lower" else np.inf
    within = [span for span in spans if lowest <= span[1] <= highest]
    low = min([max(lowest, min(span[0] for span in within)), *targets])
    high = max([min(highest, max(span[2] for span in within)), *targets])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    return float(low - margin), float(high + margin)


def _target(entry: Entry) -> float | None:
    """The published value of a cell if it is a target, else None."""
    return printed.value if (printed := entry.published) and printed.held_out and not printed.note else None


def _notes(rows: Mapping[str, Mapping[str, Entry]], metric: str) -> Iterator[str]:
    """A legend of dots and bars, then caveats with their methods."""
    records = [record for row in rows.values() for entry in row.values() for record in entry.cell.records]
    bars = "means over splits ± one standard error, not corrected for rows that splits share"
    yield f"{title(metric, records)}: {bars}; arrows: means outside of the panel, with their values"
    for reason in dict.fromkeys(UNRANKED[name] for name, row in rows.items() if _is_unranked(row)):
        yield f"† {reason}"
    methods: dict[str, dict[str, None]] = {}
    for dataset, row in rows.items():
        for method, entry in row.items():
            if entry.diverged:
                methods.setdefault("diverged runs do not count", {})[f"{method} on {dataset} ({entry.diverged})"] = None
            for words, n in entry.undefined.items():
                methods.setdefault(words, {})[f"{method} on {dataset} ({n})"] = None
            for note in caveats(entry.cell, metric, None):
                methods.setdefault(note, {})[method] = None
    yield from (f"{note}: {', '.join(names)}" for note, names in methods.items() if note not in UNRANKED.values())


def _is_unranked(row: Mapping[str, Entry]) -> bool:
    return any(entry.cell.dataset in UNRANKED for entry in row.values())
