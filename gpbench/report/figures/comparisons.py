"""Figures of comparisons: critical-difference diagrams of average ranks, and paired differences with intervals.

A diagram (J. Demšar, JMLR 7, 2006, section 3.2.2) has average ranks on an axis and the methods on both sides of it.
"""

from collections.abc import Callable, Iterable, Sequence
from textwrap import fill, wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.analysis import rankings
from gpbench.analysis.differences import Difference, note
from gpbench.analysis.provenance import provenance_lines, seconds_lines
from gpbench.analysis.rankings import SetRanking
from gpbench.analysis.ranks import Ranking, ranking_notes
from gpbench.analysis.sides import Side
from gpbench.analysis.tables import title
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.metrics import better
from gpbench.report.figures import style

_STEP = 0.26
"""Distance between two names in inches."""
_MAX_NAME = 40
"""Largest number of characters of a line of a name; longer names have several lines."""
_AXIS = 3.4
"""Length of the axis of ranks in inches, where a diagram stands alone."""
_MAX_TICKS = 15
"""Number of methods above which only every second tick has its number."""


def draw_ranking(ranking: Ranking) -> style.Picture:
    """Draws the critical-difference diagram of a ranking."""
    with style.context():
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
    _scale(axis, ranking)
    for row, (first, last) in enumerate(ranking.groups, 1):
        y = -0.12 * row
        start, end = ranking.average[first] - 0.012 * k, ranking.average[last] + 0.012 * k
        axis.plot([start, end], [y, y], color="black", linewidth=3.2, solid_capstyle="butt")
    _names(axis, ranking, -bars)


def _height(ranking: Ranking) -> float:
    """The height in inches that a panel needs."""
    return sum(_edges(ranking)) + max(sum(map(_step, names)) for names in _halves(ranking)) + 0.15


def _edges(ranking: Ranking) -> tuple[float, float]:
    """The height above the axis of ranks, and that of the bars below it, in inches."""
    return 0.55 if ranking.critical else 0.3, 0.12 * (len(ranking.groups) + 1)


def _scale(axis: Axes, ranking: Ranking) -> None:
    k = len(ranking.methods)
    axis.plot([1, k], [0, 0], color="black", linewidth=1)
    for rank in range(1, k + 1):
        axis.plot([rank, rank], [0, 0.07], color="black", linewidth=1)
        if k <= _MAX_TICKS or rank % 2:
            axis.text(rank, 0.1, str(rank), ha="center", va="bottom", fontsize=8)
    if ranking.critical:
        end, y = 1 + ranking.critical, 0.38
        axis.plot([1, end], [y, y], color="black", linewidth=1.2)
        for x in (1, end):
            axis.plot([x, x], [y - 0.05, y + 0.05], color="black", linewidth=1.2)
        axis.text(end + 0.02 * k, y, f"critical difference {ranking.critical:.2f}", va="center", fontsize=8)


def _names(axis: Axes, ranking: Ranking, below: float) -> None:
    """Writes the better half of the names on the left, best at the top, the others on the right, worst at the top."""
    k, average = len(ranking.methods), dict(zip(ranking.methods, ranking.average))
    for side, names in zip(("right", "left"), _halves(ranking)):
        y, edge, gap = below - 0.1, *((0.75, -0.012 * k) if side == "right" else (k + 0.25, 0.012 * k))
        for name in names:
            rank, text, y = average[name], fill(name, _MAX_NAME), y - (_step(name) - _STEP) / 2
            axis.plot([rank, rank, edge], [0, y, y], color="#555555", linewidth=0.8)
            label = f"{text}  {rank:.2f}" if side == "right" else f"{rank:.2f}  {text}"
            axis.text(edge + gap, y, label, ha=side, va="center", fontsize=9, multialignment=side)
            y -= (_step(name) + _STEP) / 2


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


_WIDTH = 5.6
"""Width of a diagram in inches."""
_NO_DIAGRAM = 0.6
"""Height of a panel without a diagram in inches."""


def draw_ranks(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> style.Picture:
    """Draws a row of diagrams for each set, of all methods first, and a column for each metric.

    A panel without a diagram has the reason.  The options of the figure are

    - `label`: Key or keys whose values name a method.
    - `metrics`: Metrics by which methods are ranked.
    - `sets`: Lists of methods by name; optional.
    - `settings`: `all`, or by default `main`, one setting a method (`gpbench.analysis.method_settings`).
    """
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
            _ranks_panel(axis, result, inches, margin)
    figure.notes = [*rankings.shared_notes(results), *rankings.settings_notes(options)]
    return figure


def _ranks_panel(axis: Axes, result: SetRanking, inches: float, margin: float) -> None:
    if result.ranking:
        _panel(axis, result.ranking, inches, margin)
        head = f"Friedman's p = {result.ranking.p:.2g}"
    else:
        axis.axis("off")
        axis.text(0, 0.8, fill(result.problem, 85), transform=axis.transAxes, va="top", fontsize=7.5, color="#666666")
        head = "no ranking"
    axis.set_title(f"{result.name}: {head}", loc="left", fontsize=9)


def draw_differences(a: Side, b: Side, differences: Sequence[Difference]) -> Figure:
    """Draws the difference A - B and its 95 % interval for each data set, from the top.

    Hollow points have no test, such as those of a single split; grey ones are not significantly different from 0.
    """
    metric = differences[0].metric
    hues = {"A": style.POSITIVE, "B": style.NEGATIVE, "": "#777777"}
    with style.context():
        figure = style.figure(6.8, 1.7 + 0.26 * len(differences))
        axis = figure.subplots()
        for y, d in enumerate(differences):
            mean, low, high, hue = d.test.mean, d.test.low, d.test.high, hues[d.winner]
            ends = [mean, mean] if low is None or high is None else [low, high]
            axis.plot(ends, [y, y], color=hue, linewidth=1.8, solid_capstyle="butt")
            axis.plot(mean, y, "o", color=hue, markersize=5, markerfacecolor="white" if low is None else hue)
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(differences)), [f"{d.name} (n = {d.n})" for d in differences])
        axis.set_ylim(len(differences) - 0.4, -0.6)
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
