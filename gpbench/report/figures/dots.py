"""Means over splits with their standard errors: a panel for each data set, a line for each method."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from gpbench.analysis import rankings
from gpbench.analysis.cells import Entry
from gpbench.analysis.printing import number
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.dots import is_unranked, limits, notes, target
from gpbench.report.figures import style

_COLUMNS = 5
_STEP = 0.155
"""Distance between two methods in inches."""
_DIAMOND: Any = {"marker": "D", "markersize": 4.5, "markerfacecolor": "none", "markeredgecolor": "black"}


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> style.Picture:
    """Draws a panel for each data set, with published values as open diamonds where they are targets.

    The options of the figure are

    - `label`: Key or keys whose values name a method.
    - `metric`: The metric.
    - `sets`: Lists of methods by name, each with a colour of its own; optional.  The first set of a method counts.
    - `settings`: `all`, or by default `main`, one setting a method (`gpbench.analysis.method_settings`).
    """
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
        axis.set_title(f"{dataset} †" if is_unranked(row) else dataset, fontsize=9)
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(colours)), [*colours], fontsize=7.5)
        for label, colour in zip(axis.get_yticklabels(), colours.values()):
            label.set_color(colour)
    axes[0, 0].set_ylim(len(colours) - 0.4, -0.6)
    spare = axes.flat[len(rows) :]
    for axis in spare:
        axis.axis("off")
    if handles := _handles(hues, rows):
        spare[0].legend(handles=handles) if len(spare) else figure.legend(handles=handles, loc="outside right upper")
    figure.notes = [*notes(rows, metric), *rankings.settings_notes(options)]
    return figure


def _panel(axis: Axes, row: Mapping[str, Entry], colours: Mapping[str, str], direction: str | None) -> None:
    low, high = limits([*row.values()], direction)
    axis.set_xlim(low, high)
    axis.xaxis.set_major_locator(MaxNLocator(3))
    axis.tick_params(axis="x", labelsize=7)
    axis.tick_params(axis="y", length=0)
    for y, (method, colour) in enumerate(colours.items()):
        if method not in row:
            continue
        entry = row[method]
        published = target(entry)
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


def _handles(colours: Mapping[str, str], rows: Mapping[str, Mapping[str, Entry]]) -> list[Line2D]:
    handles = [Line2D([], [], color=colour, marker="o", markersize=3.6, label=name) for name, colour in colours.items()]
    if any(target(entry) is not None for row in rows.values() for entry in row.values()):
        handles.append(Line2D([], [], linestyle="", label="published", **_DIAMOND))
    return handles
