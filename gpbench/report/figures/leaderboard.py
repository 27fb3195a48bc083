"""The picture of a leaderboard: scores with their intervals, and the Pareto front of scores and seconds."""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.analysis.leaderboard import CORES, Board
from gpbench.analysis.provenance import provenance_lines
from gpbench.report.figures import style

_OTHER = "#777777"
_MARGIN = 200  # points above and below the scores in the panel of the front
_SIZE, _LINE, _LETTER = 7.0, 9.0, 4.0
"""Size of names in the panel of the front, and height of a line and width of a letter, in points."""
_HEIGHTS = ((2.0, -7.0, 11.0, -16.0), (20.0, -25.0))
"""Heights of names above their points: those that are tried first, on both sides, and others."""


def draw_board(board: Board) -> Figure:
    """Draws the methods by score with 95 % intervals, and score against CPU seconds with the front as a blue line."""
    order = [*map(int, np.argsort(-board.scores.values, kind="stable"))]
    with style.context():
        figure = style.figure(9.6, 1.6 + 0.22 * len(order))
        scores, front = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        for y, k in enumerate(order):
            x, half = board.scores.values[k], board.scores.half_widths[k]
            reach = half if np.isfinite(half) else None  # None draws no interval
            scores.errorbar(x, y, xerr=reach, fmt="o", color=_colour(board, k), markersize=4, elinewidth=1.3)
        scores.axvline(1000, color="black", linewidth=0.6)
        scores.set(xlabel="score (Elo points)")
        style.rows(scores, [board.methods[k] for k in order])
        _front_panel(front, board)
        metric = board.division.measures[0].metric
        style.caption(
            figure,
            f"Leaderboard of {board.division.name} within {board.seconds} seconds of {CORES} cores",
            [
                f"Bradley-Terry scores by {metric} with 95 % intervals over {len(board.datasets)} data sets and their"
                " splits; blue: on the Pareto front of score and CPU seconds",
                *provenance_lines(board.runs.values()),
            ],
        )
    return figure


def _colour(board: Board, k: int) -> str:
    return style.PALETTE["blue"] if board.on_front[k] else _OTHER


def _front_panel(axis: Axes, board: Board) -> None:
    scores, seconds = board.scores.values, np.exp(board.seconds_of.values)
    for k, x in enumerate(seconds):
        reach, half = None, None
        if board.on_front[k]:  # the other panel has all intervals of scores
            width, half = board.seconds_of.half_widths[k], board.scores.half_widths[k]
            reach = [[x - x * np.exp(-width)], [x * np.exp(width) - x]] if np.isfinite(width) else None
            half = half if np.isfinite(half) else None
        look: dict[str, Any] = {"color": _colour(board, k), "markersize": 4, "elinewidth": 0.6}
        axis.errorbar(x, scores[k], xerr=reach, yerr=half, fmt="o", **look)
    members = sorted((seconds[k], scores[k]) for k in np.flatnonzero(board.on_front))
    axis.step(*zip(*members), where="post", color=style.PALETTE["blue"], linewidth=1.2, alpha=0.6)
    axis.set_xscale("log")
    # intervals of methods with two data sets would set the range
    axis.set(xlim=(seconds.min() / 1.6, 3.2 * seconds.max()), ylim=(scores.min() - _MARGIN, scores.max() + _MARGIN))
    style.number_ticks(axis.xaxis)
    axis.set(xlabel="CPU seconds until the predictions (geometric mean over data sets)", ylabel="score (Elo points)")
    _add_names(axis, board, seconds, scores)


def _add_names(axis: Axes, board: Board, seconds: Float[ndarray, " K"], scores: Float[ndarray, " K"]) -> None:
    """Writes each method's name at one of the places around its point, the first that covers no other name or point."""
    figure = axis.get_figure(root=True)
    assert figure
    figure.draw_without_rendering()  # the layout sets where points are
    scale = figure.dpi / 72
    points = axis.transData.transform(np.stack([seconds, scores], axis=1)) / scale
    boxes = [(x - 2, y - 2, x + 2, y + 2) for x, y in points]
    for k in sorted(range(len(points)), key=lambda k: (not board.on_front[k], -scores[k])):
        width, (x, y) = _LETTER * len(board.methods[k]), points[k]
        starts = [(across, up) for heights in _HEIGHTS for across in (5.0, -5.0 - width) for up in heights]
        places = [(x + across, y + up, x + across + width, y + up + _LINE) for across, up in starts]
        overlap = lambda a, b: a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
        free = [n for n, area in enumerate(places) if not any(overlap(area, box) for box in boxes)]
        start = starts[free[0] if free else 0]
        boxes.append(places[free[0] if free else 0])
        axis.annotate(
            board.methods[k],
            (seconds[k], scores[k]),
            start,
            textcoords="offset points",
            fontsize=_SIZE,
            color=_colour(board, k),
            # a line to its point where another may be nearer
            arrowprops={"arrowstyle": "-", "color": _OTHER, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 1},
        )
