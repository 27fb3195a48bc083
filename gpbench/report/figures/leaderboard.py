"""The picture of a leaderboard: scores with their intervals, and the Pareto front of scores and seconds."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpbench.analysis.divisions import CORES
from gpbench.analysis.leaderboard import Board
from gpbench.analysis.provenance import provenance_lines
from gpbench.report.figures import style

_OTHER = "#777777"
_MARGIN = 200
"""Points above and below the scores in the panel of the front."""


def draw_board(board: Board) -> Figure:
    """Draws the methods by score with 95 % intervals, and score against CPU seconds with the front as a line.

    Methods on the front are blue.

    Args:
        board: The board.
    """
    order = [*map(int, np.argsort(-board.scores.values, kind="stable"))]
    with style.context():
        figure = style.figure(9.6, 1.6 + 0.22 * len(order))
        scores, front = figure.subplots(1, 2, width_ratios=(1.0, 1.2))
        _scores_panel(scores, board, order)
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


def _scores_panel(axis: Axes, board: Board, order: list[int]) -> None:
    halves = board.scores.half_widths
    for y, k in enumerate(order):
        half = halves[k] if np.isfinite(halves[k]) else None
        axis.errorbar(
            board.scores.values[k], y, xerr=half, fmt="o", color=_colour(board, k), markersize=4, elinewidth=1.3
        )
    axis.axvline(1000, color="black", linewidth=0.6)
    axis.set_yticks(range(len(order)), [board.methods[k] for k in order])
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.set_xlabel("score (Elo points)")


def _front_panel(axis: Axes, board: Board) -> None:
    scores, seconds = board.scores.values, np.exp(board.seconds_of.values)
    halves, widths = board.scores.half_widths, board.seconds_of.half_widths
    for k, name in enumerate(board.methods):
        x, colour = seconds[k], _colour(board, k)
        reach = [[x - x * np.exp(-widths[k])], [x * np.exp(widths[k]) - x]] if np.isfinite(widths[k]) else None
        half = halves[k] if np.isfinite(halves[k]) else None
        axis.errorbar(x, scores[k], xerr=reach, yerr=half, fmt="o", color=colour, markersize=4, elinewidth=0.6)
        axis.annotate(name, (x, scores[k]), (4, 3), textcoords="offset points", fontsize=7.5, color=colour)
    members = sorted((seconds[k], scores[k]) for k in np.flatnonzero(board.on_front))
    axis.step(*zip(*members), where="post", color=style.PALETTE["blue"], linewidth=1.2, alpha=0.6)
    axis.set_xscale("log")
    # intervals of methods with two data sets would set the range
    axis.set_xlim(seconds.min() / 1.5, 2.5 * seconds.max())
    axis.set_ylim(scores.min() - _MARGIN, scores.max() + _MARGIN)
    style.number_ticks(axis.xaxis)
    axis.set_xlabel("CPU seconds until the predictions (geometric mean over data sets)")
    axis.set_ylabel("score (Elo points)")
