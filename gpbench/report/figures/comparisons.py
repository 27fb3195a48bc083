"""Figures of comparisons: diagrams of critical differences (Demšar 2006), paired differences, and leaderboards."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from textwrap import fill, wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.analysis import rankings
from gpbench.analysis.comparison import RULE
from gpbench.analysis.differences import Difference, note
from gpbench.analysis.leaderboard import BoardRuns
from gpbench.analysis.provenance import provenance_lines, seconds_lines
from gpbench.analysis.rankings import Ranking, ranking_notes
from gpbench.analysis.sides import Side
from gpbench.analysis.tables import title
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.metrics import better
from gpbench.report.figures import style

_STEP = 0.26  # distance between two names in inches
_MAX_NAME = 40  # largest number of characters of a line of a name; longer names have several lines
_AXIS = 3.4  # length of the axis of ranks in inches, where a diagram stands alone
_MAX_TICKS = 15  # number of methods above which only every second tick has its number
_WIDTH = 5.6  # width in inches of a diagram beside others
_NO_DIAGRAM = 0.6  # height in inches of a panel without a diagram


@style.context()
def draw_ranking(ranking: Ranking) -> style.Picture:
    """Draws the critical-difference diagram of a ranking."""
    room, inches = _room(ranking.methods), _height(ranking)
    figure = style.figure(_AXIS + 2 * room, inches + 0.4)
    _panel(figure.subplots(), ranking, inches, room / _AXIS)
    known = ranking.known
    style.head(figure, f"Average ranks: {ranking.metric}" + (f" ({known.better} is better)" if known else ""))
    figure.notes = ranking_notes(ranking)
    return figure


def _panel(axis: Axes, ranking: Ranking, inches: float, margin: float) -> None:
    """Draws a diagram; bars join methods without a significant difference, the critical difference is at the top."""
    k, (top, bars) = len(ranking.methods), _edges(ranking)
    room = 0.5 + margin * (k - 1)
    axis.set(xlim=(1 - room, k + room), ylim=(top - inches, top))
    axis.axis("off")
    line = partial(axis.plot, color="black")
    line([1, k], [0, 0], linewidth=1)
    for rank in range(1, k + 1):
        line([rank, rank], [0, 0.07], linewidth=1)
        if k <= _MAX_TICKS or rank % 2:
            axis.text(rank, 0.1, str(rank), ha="center", va="bottom", fontsize=8)
    end, y = 1.0 + ranking.critical, 0.38
    for xs, ys in (([1.0, end], [y, y]), ([1, 1], [y - 0.05, y + 0.05]), ([end, end], [y - 0.05, y + 0.05])):
        line(xs, ys, linewidth=1.2)
    axis.text(end + 0.02 * k, y, f"critical difference {ranking.critical:.2f}", va="center", fontsize=8)
    for row, (first, last) in enumerate(ranking.groups, 1):
        start, end = ranking.average[first] - 0.012 * k, ranking.average[last] + 0.012 * k
        line([start, end], [-0.12 * row, -0.12 * row], linewidth=3.2, solid_capstyle="butt")
    average = dict(zip(ranking.methods, ranking.average))
    for side, names in zip(("right", "left"), _halves(ranking)):
        y, edge, gap = -bars - 0.1, *((0.75, -0.012 * k) if side == "right" else (k + 0.25, 0.012 * k))
        for name in names:
            value, text, y = average[name], fill(name, _MAX_NAME), y - (_step(name) - _STEP) / 2
            axis.plot([value, value, edge], [0, y, y], color="#555555", linewidth=0.8)
            label = f"{text}  {value:.2f}" if side == "right" else f"{value:.2f}  {text}"
            axis.text(edge + gap, y, label, ha=side, va="center", fontsize=9, multialignment=side)
            y -= (_step(name) + _STEP) / 2


def _height(ranking: Ranking) -> float:
    """The height in inches that a panel needs."""
    return sum(_edges(ranking)) + max(sum(map(_step, names)) for names in _halves(ranking)) + 0.15


def _edges(ranking: Ranking) -> tuple[float, float]:
    """The height above the axis of ranks, and that of the bars below it, in inches."""
    return 0.55, 0.12 * (len(ranking.groups) + 1)


def _halves(ranking: Ranking) -> tuple[Sequence[str], Sequence[str]]:
    """The better half of the methods, best first, and the others, worst first."""
    half = (len(ranking.methods) + 1) // 2
    return ranking.methods[:half], ranking.methods[: half - 1 : -1]


def _step(name: str) -> float:
    """The height of a name in inches; a long name has several lines."""
    return _STEP + 0.15 * (len(wrap(name, _MAX_NAME)) - 1)


def _room(names: Iterable[str]) -> float:
    """The room in inches that the longest line of these names and its rank need on each side of the axis."""
    longest = max(len(line) for name in names for line in wrap(name, _MAX_NAME))
    return 0.3 + 0.075 * (longest + 6)


def draw_ranks(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> style.Picture:
    """Draws a row of diagrams of critical differences for each set, and a column for each metric."""
    options = {"settings": rankings.MAIN, **experiment.figure}
    results = rankings.rankings(experiment, planned, options)
    columns = [[result for result in results if result.metric == metric] for metric in options["metrics"]]
    needed = [[_height(result.ranking) if result.ranking else _NO_DIAGRAM for result in column] for column in columns]
    heights = [*map(max, zip(*needed))]
    figure = style.figure(_WIDTH * len(columns), sum(heights) + 0.35 * len(heights) + 0.4)
    axes = figure.subplots(len(heights), len(columns), squeeze=False, height_ratios=heights)
    longest = _room(name for result in results if result.ranking for name in result.ranking.methods)
    margin = longest / max(_WIDTH - 2 * longest, 1.0)
    for axes_of_metric, column in zip(axes.T, columns):
        for axis, result, inches in zip(axes_of_metric, column, heights):
            head = "no ranking"
            if result.ranking:
                _panel(axis, result.ranking, inches, margin)
                head = f"Friedman's p = {result.ranking.p:.2g}"
            else:
                axis.axis("off")
                look = {"va": "top", "fontsize": 7.5, "color": "#666666"}
                axis.text(0, 0.8, fill(result.problem, 85), transform=axis.transAxes, **look)
            axis.set_title(f"{result.name}: {head}", loc="left", fontsize=9)
    figure.notes = [*rankings.shared_notes(results), *([RULE] if options["settings"] == rankings.MAIN else [])]
    return figure


@style.context()
def draw_differences(a: Side, b: Side, differences: Sequence[Difference]) -> Figure:
    """Draws A - B with its 95 % interval for each data set; hollow: no test, as of one split; grey: not significant."""
    metric = differences[0].metric
    hues = {"A": style.POSITIVE, "B": style.NEGATIVE, "": "#777777"}
    figure = style.figure(6.8, 1.7 + 0.26 * len(differences))
    axis = figure.subplots()
    for y, d in enumerate(differences):
        mean, low, high, hue = d.test.mean, d.test.low, d.test.high, hues[d.winner]
        ends = [mean, mean] if low is None or high is None else [low, high]
        axis.plot(ends, [y, y], color=hue, linewidth=1.8, solid_capstyle="butt")
        axis.plot(mean, y, "o", color=hue, markersize=5, markerfacecolor="white" if low is None else hue)
    axis.axvline(0, color="black", linewidth=0.8)
    style.rows(axis, [f"{d.name} (n = {d.n})" for d in differences])
    label = f"difference of {metric}, {a.value} - {b.value}"
    records = [record for d in differences for record in d.records]
    if direction := better(metric, records):
        first, second = (a.value, b.value) if direction == "lower" else (b.value, a.value)
        label = f"← {first} better     {label}     {second} better →"
    axis.set_xlabel(label)
    shared = [f"all with {', '.join(terms)}"] if (terms := differences[0].shared) else []
    timed = seconds_lines(records) if metric == "seconds" else []
    notes = [*shared, note(differences), *provenance_lines(records), *timed]
    style.caption(figure, f"{a.value} and {b.value}: {title(metric, records)}", notes)
    return figure


_OTHER = "#777777"
_SHARE = "share of other methods beaten"
_SIZE, _LINE, _LETTER = 7.0, 9.0, 4.0
"""Size of names in the panel of the front, and height of a line and width of a letter, in points."""
_HEIGHTS = ((2.0, -7.0, 11.0, -16.0), (20.0, -25.0))
"""Heights of names above their points: those that are tried first, on both sides, and others."""


def draw_board(runs: BoardRuns) -> style.Picture:
    """Draws shares of others beaten with standard errors, and the Pareto front; blue methods may be the best."""
    board = runs.board
    with style.context():
        figure = style.figure(9.6, 1.6 + 0.22 * len(board.means))
        shares, front = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        for y, k in enumerate(board.order):
            reach = board.stderrs[k] if np.isfinite(board.stderrs[k]) else None  # None draws no interval
            look: dict[str, Any] = {"color": _colour(runs, k), "markersize": 4, "elinewidth": 1.3}
            shares.errorbar(board.means[k], y, xerr=reach, fmt="o", **look)
        shares.axvline(0.5, color="black", linewidth=0.6)
        shares.set(xlabel=_SHARE)
        style.rows(shares, [runs.methods[k] for k in board.order])
        _front_panel(front, runs)
        metric = runs.division.measures[0].metric
        style.caption(
            figure,
            f"Leaderboard of {runs.division.name}: methods with their defaults",
            [
                f"Share of the other methods beaten by {metric}, mean over {len(runs.datasets)} data sets ± standard"
                " error; blue: may be the best; line: Pareto front of share and CPU seconds",
                *provenance_lines(runs.runs.values()),
            ],
        )
    return figure


def _colour(runs: BoardRuns, k: int) -> str:
    return style.PALETTE["blue"] if runs.board.may_be_best[k] else _OTHER


def _front_panel(axis: Axes, runs: BoardRuns) -> None:
    shares, seconds = runs.board.means, runs.cpu_seconds
    for k in np.flatnonzero(runs.is_complete).tolist():  # seconds of others are of fewer data sets
        axis.plot(seconds[k], shares[k], "o", color=_colour(runs, k), markersize=4)
    members = sorted((seconds[k], shares[k]) for k in np.flatnonzero(runs.on_front))
    axis.step(*zip(*members), where="post", color=style.PALETTE["blue"], linewidth=1.2, alpha=0.6)
    axis.set(xscale="log", xlim=(np.nanmin(seconds) / 1.6, 3.2 * np.nanmax(seconds)))
    style.number_ticks(axis.xaxis)
    axis.set(xlabel="CPU seconds without compilation (geometric mean over data sets)", ylabel=_SHARE)
    _add_names(axis, runs)


def _add_names(axis: Axes, runs: BoardRuns) -> None:
    """Writes each method's name at one of the places around its point, the first that covers no other name or point."""
    shares, seconds, figure = runs.board.means, runs.cpu_seconds, axis.get_figure(root=True)
    assert figure
    figure.draw_without_rendering()  # the layout sets where points are
    scale = figure.dpi / 72
    points = axis.transData.transform(np.stack([seconds, shares], axis=1)) / scale
    boxes = [(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    for k in sorted(np.flatnonzero(runs.is_complete).tolist(), key=lambda k: (not runs.on_front[k], -shares[k])):
        width, (x, y) = _LETTER * len(runs.methods[k]), points[k]
        starts = [(across, up) for heights in _HEIGHTS for across in (5.0, -5.0 - width) for up in heights]
        places = [(x + across, y + up, x + across + width, y + up + _LINE) for across, up in starts]
        overlap = lambda a, b: a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        free = [n for n, area in enumerate(places) if not any(overlap(area, box) for box in boxes)] or [0]
        start = starts[free[0]]
        boxes.append(places[free[0]])
        axis.annotate(
            runs.methods[k],
            (seconds[k], shares[k]),
            start,
            textcoords="offset points",
            fontsize=_SIZE,
            color=_colour(runs, k),
            # a line to its point where another may be nearer
            arrowprops={"arrowstyle": "-", "color": _OTHER, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 1},
        )
