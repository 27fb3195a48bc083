"""The tables of a board behind its first ones: pairs that are decided, and every data set."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.analysis.board import Board
from gpbench.analysis.leaderboard import BoardRuns, lost
from gpbench.analysis.printing import number
from gpbench.analysis.sheets import Grid, Text, parts
from gpbench.metrics import METRICS


def grids(runs: BoardRuns) -> list[Grid]:
    """The pairs that are decided and the data sets where a method is best and worst; values and seconds by data set."""
    board, names, measure = runs.board, np.array(runs.methods), runs.division.measures[0]
    of_sets, losses = Board(runs.of_sets[measure.metric]).shares, runs.array(measure.loss)
    least = np.nanmin(losses, axis=0)
    seconds = runs.array(lambda record: np.nan if lost(record) else record.rated_seconds)
    words = [(names[k], ", ".join(names[board.better[k]]), *_ends(runs, of_sets[k])) for k in board.order]
    values = [
        (names[k], *(_value(own, measure.sign, best) for own, best in zip(losses[k], least))) for k in board.order
    ]
    times = [(names[k], *("" if np.isnan(s) else f"{s:.1f}" for s in seconds[k])) for k in board.order]
    header, heading = ("method", *runs.datasets), METRICS[measure.metric].heading
    return [
        Grid("pairs and data sets", ("method", "better than", "best on", "worst on"), tuple(words), prose=True),
        *parts(Grid(f"{heading} by data set", header, tuple(values))),
        *parts(Grid("CPU seconds of runs with predictions, by data set", header, tuple(times))),
    ]


def _ends(runs: BoardRuns, shares: Float[ndarray, " D"]) -> list[str]:
    """The data sets on which a method beats the most others, and the fewest."""
    names = np.array(runs.datasets)
    return [", ".join(names[shares == end]) for end in (np.nanmax(shares), np.nanmin(shares))]


def _value(loss: float, sign: int, best: float) -> Text:
    """The metric of a run, marked where no method has a better one."""
    if np.isinf(loss):
        return Text("lost")
    return Text() if np.isnan(loss) else Text(number(sign * loss), "best" if loss == best else "")
