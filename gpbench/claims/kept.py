"""Numbers of the arrays that `run.keep=true` keeps (`gpbench.records.kept`): of one run, and of two beside each other.

Inputs are in the units in which the method was trained, nearly always standard deviations.  A collection keeps these
arrays of the first split of a cell alone.
"""

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from gpbench.analysis import effects
from gpbench.data.builtin import friedman_effect

_Arrays = Mapping[str, ndarray]


def boundary_distance(run: _Arrays) -> float | None:
    """The median distance of inducing points to the decision boundary; None without points or without a boundary.

    The boundary are the midpoints between neighbours on the grid of different predicted classes.
    """
    if not {"kept_inducing", "kept_log_probs", "kept_grid"} <= run.keys() or run["kept_grid"].shape[1] != 2:
        return None
    side = round(len(run["kept_grid"]) ** 0.5)
    grid, classes = run["kept_grid"].reshape(side, side, 2), _classes(run).reshape(side, side)
    along, across = classes[1:] != classes[:-1], classes[:, 1:] != classes[:, :-1]
    middles = np.concatenate([(grid[1:] + grid[:-1])[along] / 2, (grid[:, 1:] + grid[:, :-1])[across] / 2])
    if not len(middles):
        return None
    return float(np.median(_distances(run["kept_inducing"], middles).min(axis=1)))


def inducing_distance(a: _Arrays, b: _Arrays) -> float | None:
    """The mean distance of inducing points to those of another run under the best matching, one to one."""
    from scipy.optimize import linear_sum_assignment

    if "kept_inducing" not in a or "kept_inducing" not in b or a["kept_inducing"].shape != b["kept_inducing"].shape:
        return None
    distances = _distances(a["kept_inducing"], b["kept_inducing"])
    return float(distances[linear_sum_assignment(distances)].mean())


def class_agreement(a: _Arrays, b: _Arrays) -> float | None:
    """The share of training rows at whose nearest points of the grid both runs predict one class."""
    if not _same_grid(a, b) or "kept_log_probs" not in a or "kept_log_probs" not in b:
        return None
    agree = _classes(a) == _classes(b)
    return float(np.mean([agree[_distances(row[None], a["kept_grid"]).argmin()] for row in a["kept_X"]]))


def std_correlation(a: _Arrays, b: _Arrays) -> float | None:
    """The correlation over the grid of the predictive standard deviations of two runs."""
    if not _same_grid(a, b) or "kept_var" not in a or "kept_var" not in b:
        return None
    return float(np.corrcoef(np.sqrt(a["kept_var"]), np.sqrt(b["kept_var"]))[0, 1])


def std_ratio(a: _Arrays, b: _Arrays) -> float | None:
    """The typical factor between predictive standard deviations, 1 or more, over the grid within the training inputs.

    It is the exponential of the mean of the absolute values of logarithms.
    """
    if not _same_grid(a, b) or "kept_var" not in a or "kept_var" not in b:
        return None
    grid, rows = a["kept_grid"], a["kept_X"]
    within = ((grid >= rows.min(axis=0)) & (grid <= rows.max(axis=0))).all(axis=1)
    return float(np.exp(np.mean(np.abs(np.log(a["kept_var"][within] / b["kept_var"][within])) / 2)))


def mean_distance(a: _Arrays, b: _Arrays) -> float | None:
    """The root mean square difference of predictive means over the grid, in standard deviations of the targets."""
    if not _same_grid(a, b) or "kept_mean" not in a or "kept_mean" not in b:
        return None
    return float(np.sqrt(np.mean((a["kept_mean"] - b["kept_mean"]) ** 2, dtype=float)))


def inactive_share(run: _Arrays) -> float | None:
    """The largest mean share of the predictor's variance of an effect that Friedman's function has not."""
    if "kept_effect1_inputs" not in run or "kept_shares" not in run:
        return None
    shares = []
    for size in (1, 2):
        for i, inputs in enumerate(run.get(f"kept_effect{size}_inputs", ())):
            x, _, _ = effects.original(run, size, i)
            if not friedman_effect(tuple(map(int, inputs)), x).any():
                shares.append(float(run["kept_shares"][:, int(run[f"kept_effect{size}_place"][i])].mean()))
    return max(shares, default=None)


def _effect(number: int) -> Callable[[_Arrays], float | None]:
    return lambda run: effects.errors(run, friedman_effect)[number] if "kept_effect1_inputs" in run else None


SUMMARIES: Mapping[str, Callable[[_Arrays], float | None]] = {
    "boundary_distance": boundary_distance,
    "effect_error": _effect(0),
    "effect_coverage": _effect(1),
    "inactive_share": inactive_share,
}
"""Numbers of one run, which a clause calls `kept.NAME`.  Two are of Friedman's function: the RMSE of effects, and the
share of grid points at which their 95 % bands cover the truth."""
COMPARISONS: Mapping[str, Callable[[_Arrays, _Arrays], float | None]] = {
    "inducing_distance": inducing_distance,
    "class_agreement": class_agreement,
    "std_correlation": std_correlation,
    "std_ratio": std_ratio,
    "mean_distance": mean_distance,
}
"""Numbers of two runs, of which a clause has a `comparison`."""


def _classes(run: _Arrays) -> Int[ndarray, " G"]:
    return run["kept_log_probs"].argmax(axis=1)


def _distances(a: Float[ndarray, "n D"], b: Float[ndarray, "m D"]) -> Float[ndarray, "n m"]:
    return np.sqrt(np.sum((a[:, None] - b[None]) ** 2, axis=-1, dtype=float))


def _same_grid(a: _Arrays, b: _Arrays) -> bool:
    return "kept_grid" in a and "kept_grid" in b and np.array_equal(a["kept_grid"], b["kept_grid"])
