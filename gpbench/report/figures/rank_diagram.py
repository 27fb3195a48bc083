"""The critical-difference diagram of Demšar (2006), section 3.2.2: average ranks on an axis, methods on both sides."""

from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.metrics import METRICS
from gpbench.report.figures import style
from gpbench.report.ranks import Ranking, ranking_notes

_STEP = 0.26
"""Inches between two names."""
_MAX_NAME = 40
"""Characters of a name; there is room for one on each side of the axis."""


def draw(ranking: Ranking) -> Figure:
    """Bars join methods that are not significantly different; Nemenyi's critical difference is at the top."""
    k, groups = len(ranking.methods), len(ranking.groups)
    top = 0.55 if ranking.critical else 0.3
    bars = 0.12 * (groups + 1)
    height = top + bars + _STEP * ((k + 1) // 2) + 0.15
    with style.context():
        figure = style.figure(7.2, height + 0.75)
        axis = figure.subplots()
        axis.set(xlim=(0.5 - 0.34 * (k - 1), k + 0.5 + 0.34 * (k - 1)), ylim=(-height + top, top))
        axis.axis("off")
        _scale(axis, ranking)
        for row, (first, last) in enumerate(ranking.groups, 1):
            y = -0.12 * row
            left, right = ranking.average[first] - 0.012 * k, ranking.average[last] + 0.012 * k
            axis.plot([left, right], [y, y], color="black", linewidth=3.2, solid_capstyle="butt")
        _names(axis, ranking, -bars)
        style.caption(figure, _title(ranking.metric), ranking_notes(ranking))
    return figure


def _title(metric: str) -> str:
    known = METRICS.get(metric)
    return f"Average ranks: {metric}" + (f" ({known.better} is better)" if known else "")


def _scale(axis: Axes, ranking: Ranking) -> None:
    k = len(ranking.methods)
    axis.plot([1, k], [0, 0], color="black", linewidth=1)
    for rank in range(1, k + 1):
        axis.plot([rank, rank], [0, 0.07], color="black", linewidth=1)
        axis.text(rank, 0.1, str(rank), ha="center", va="bottom", fontsize=8)
    if ranking.critical:
        end, y = 1 + ranking.critical, 0.38
        axis.plot([1, end], [y, y], color="black", linewidth=1.2)
        for x in (1, end):
            axis.plot([x, x], [y - 0.05, y + 0.05], color="black", linewidth=1.2)
        axis.text(end + 0.02 * k, y, f"critical difference {ranking.critical:.2f}", va="center", fontsize=8)


def _names(axis: Axes, ranking: Ranking, below: float) -> None:
    """Names the better half on the left, best at the top; the others on the right, worst at the top."""
    k = len(ranking.methods)
    half = (k + 1) // 2
    for position, (name, average) in enumerate(zip(ranking.methods, ranking.average)):
        left, name = position < half, shorten(name, _MAX_NAME, placeholder=" …")
        y = below - _STEP * (position if left else k - 1 - position) - 0.1
        edge = 0.75 if left else k + 0.25
        axis.plot([average, average, edge], [0, y, y], color="#555555", linewidth=0.8)
        if left:
            axis.text(edge - 0.08, y, f"{name}  {average:.2f}", ha="right", va="center", fontsize=9)
        else:
            axis.text(edge + 0.08, y, f"{average:.2f}  {name}", ha="left", va="center", fontsize=9)
