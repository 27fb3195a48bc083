"""The picture of a leaderboard: shares of others beaten, also against seconds with the Pareto front."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from gpbench.analysis.leaderboard import BoardRuns
from gpbench.analysis.provenance import provenance_lines
from gpbench.report.figures import style

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
