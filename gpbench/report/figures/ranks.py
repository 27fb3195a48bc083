"""Average ranks of an experiment's methods: a critical-difference diagram for each set of methods and each metric."""

from collections.abc import Callable, Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.analysis import rankings
from gpbench.analysis.rankings import SetRanking
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import rank_diagram, style

_WIDTH = 5.6
"""Inches of a diagram."""
_NO_DIAGRAM = 0.6
"""Inches of the height of a panel without one."""


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws a row of diagrams for each set, of all methods first, and a column for each metric.

    A panel without a diagram says why.  Options of the experiment's `figure`:

    label: the key or keys whose values name a method.
    metrics: the metrics by which methods are ranked.
    sets: lists of methods by name; optional.

    Raises ConfigError where no set can be ranked.
    """
    options = experiment.figure or {}
    of = rankings.rankings(experiment, planned, options)
    columns = [[one for one in of if one.metric == metric] for metric in options["metrics"]]
    heights = [max(map(_height, row)) for row in zip(*columns)]
    figure = style.figure(_WIDTH * len(columns), sum(heights) + 0.35 * len(heights) + 1.2)
    axes = figure.subplots(len(heights), len(columns), squeeze=False, height_ratios=heights)
    margin = _margin(of)
    for axes_of_metric, column in zip(axes.T, columns):
        for axis, one, inches in zip(axes_of_metric, column, heights):
            _panel(axis, one, inches, margin)
    figure.supxlabel("\n".join(rankings.shared_notes(of)))
    return figure


def _panel(axis: Axes, one: SetRanking, inches: float, margin: float) -> None:
    if one.ranking:
        rank_diagram.panel(axis, one.ranking, inches, margin)
        head = f"Friedman's p = {one.ranking.p:.2g}"
    else:
        axis.axis("off")
        axis.text(0, 0.8, fill(one.problem, 85), transform=axis.transAxes, va="top", fontsize=7.5, color="#666666")
        head = "no ranking"
    axis.set_title(f"{one.name}: {head}", loc="left", fontsize=9)


def _height(one: SetRanking) -> float:
    return rank_diagram.height(one.ranking) if one.ranking else _NO_DIAGRAM


def _margin(of: Sequence[SetRanking]) -> float:
    """Room for the longest name and its rank on each side, as a fraction of the length of the axis of ranks."""
    longest = max(len(name) for one in of if one.ranking for name in one.ranking.methods)
    inches = 0.35 + 0.075 * (min(longest, rank_diagram.MAX_NAME) + 6)
    return inches / max(_WIDTH - 2 * inches, 1.0)
