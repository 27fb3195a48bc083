"""The critical-difference diagram of Demšar (2006), section 3.2.2: average ranks on an axis, methods on both sides."""

from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.analysis.ranks import Ranking, ranking_notes
from gpbench.metrics import METRICS
from gpbench.report.figures import style

_STEP = 0.26
"""Inches between two names."""
MAX_NAME = 40
"""Characters of a name; there is room for one on each side of the axis."""
_MAX_NOTE = 400
"""Characters of a note: names of many data sets would leave no room for the diagram."""
_MAX_TICKS = 15
"""Above this number of methods every second tick has its number."""


def draw(ranking: Ranking) -> Figure:
    """The diagram of one ranking, with its notes."""
    with style.context():
        figure = style.figure(7.2, height(ranking) + 0.75)
        panel(figure.subplots(), ranking, height(ranking))
        notes = [shorten(note, _MAX_NOTE, placeholder=" …") for note in ranking_notes(ranking)]
        style.caption(figure, _title(ranking.metric), notes)
    return figure


def panel(axis: Axes, ranking: Ranking, inches: float, margin: float = 0.34) -> None:
    """Bars join methods that are not significantly different; Nemenyi's critical difference is at the top.

    `inches` is the height of the panel, `margin` the room for names on each side as a fraction of the axis of ranks.
    """
    k, top = len(ranking.methods), _top(ranking)
    room = 0.5 + margin * (k - 1)
    axis.set(xlim=(1 - room, k + room), ylim=(top - inches, top))
    axis.axis("off")
    _scale(axis, ranking)
    for row, (first, last) in enumerate(ranking.groups, 1):
        y = -0.12 * row
        left, right = ranking.average[first] - 0.012 * k, ranking.average[last] + 0.012 * k
        axis.plot([left, right], [y, y], color="black", linewidth=3.2, solid_capstyle="butt")
    _names(axis, ranking, -_bars(ranking))


def height(ranking: Ranking) -> float:
    """The height in inches that a panel needs."""
    return _top(ranking) + _bars(ranking) + _STEP * ((len(ranking.methods) + 1) // 2) + 0.15


def _top(ranking: Ranking) -> float:
    return 0.55 if ranking.critical else 0.3


def _bars(ranking: Ranking) -> float:
    return 0.12 * (len(ranking.groups) + 1)


def _title(metric: str) -> str:
    known = METRICS.get(metric)
    return f"Average ranks: {metric}" + (f" ({known.better} is better)" if known else "")


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
    """Names the better half on the left, best at the top; the others on the right, worst at the top."""
    k = len(ranking.methods)
    half = (k + 1) // 2
    for position, (name, average) in enumerate(zip(ranking.methods, ranking.average)):
        left, name = position < half, shorten(name, MAX_NAME, placeholder=" …")
        y = below - _STEP * (position if left else k - 1 - position) - 0.1
        edge = 0.75 if left else k + 0.25
        axis.plot([average, average, edge], [0, y, y], color="#555555", linewidth=0.8)
        if left:
            axis.text(edge - 0.012 * k, y, f"{name}  {average:.2f}", ha="right", va="center", fontsize=9)
        else:
            axis.text(edge + 0.012 * k, y, f"{average:.2f}  {name}", ha="left", va="center", fontsize=9)
