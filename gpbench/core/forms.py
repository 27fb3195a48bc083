"""Predictive distributions as other programs give them: samples, quantiles, or bins with probabilities.  NumPy only.
Each function has the arrays of `gpbench.scored.Scored` that its form determines, one value a row."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.scored import ENDS

FEWEST = 9  # levels of quantiles with a score: nine of a normal distribution give .261 in place of .269
FEWEST_SAMPLES = 39  # draws of a row: their range is the 95 % interval; the fair score of two far apart is 0
_Rows = Float[ndarray, " n"]


def samples(values: Float[ndarray, "n S"], y: _Rows) -> dict[str, _Rows]:
    """Of S draws: moments, and the fair score mean |x - y| - Σ (2 i - S - 1) x_(i) / (S (S - 1)), which has the
    expectation of that of the distribution for any S (Ferro 2014).  The rank of y among S + 1 exchangeable numbers is
    uniform: `below` and `cdf` are the ends of its step, and the interval is right for 39 draws or more.  They have no
    density."""
    x, count = np.sort(values, axis=1), values.shape[1]
    weights = (2.0 * np.arange(1, count + 1) - count - 1.0) / (count * (count - 1.0))
    ends = np.quantile(x, [*ENDS.values()], axis=1, method="weibull")
    return {
        "mean": x.mean(axis=1),
        "var": x.var(axis=1, ddof=1),
        "crps": np.abs(x - y[:, None]).mean(axis=1) - x @ weights,
        "below": np.sum(x < y[:, None], axis=1) / (count + 1.0),
        "cdf": (np.sum(x <= y[:, None], axis=1) + 1.0) / (count + 1.0),
        **dict(zip(ENDS, ends)),
    }


def quantiles(levels: Sequence[float], values: Float[ndarray, "n Q"], y: _Rows) -> dict[str, _Rows]:
    """Of quantiles at Q rising levels, which are sorted where they cross (Chernozhukov et al. 2010): with `FEWEST`
    levels or more, from 0.1 to 0.9 at least, the levels `below` and `cdf` between which y lies, and the score 2 ∫
    pinball loss dτ by the trapezium rule, 0 at τ = 0 and 1; the intervals whose levels are there.  They have
    neither moments nor a density."""
    tau, q = np.array(levels), np.sort(values, axis=1)
    arrays = {}
    if len(tau) >= FEWEST and tau[0] <= 0.1 and tau[-1] >= 0.9:
        below, upto = (np.sum(is_so, axis=1) for is_so in (q < y[:, None], q <= y[:, None]))
        ends = np.concatenate([[0.0], tau, [1.0]])
        loss = (np.where(y[:, None] <= q, 1.0, 0.0) - tau) * (q - y[:, None])
        crps = 2.0 * np.trapezoid(np.pad(loss, ((0, 0), (1, 1))), ends, axis=1)
        arrays = {"below": ends[below], "cdf": ends[upto + 1], "crps": crps}
    return arrays | {name: q[:, levels.index(p)] for name, p in ENDS.items() if {p, round(1.0 - p, 3)} <= {*levels}}


def bins(edges: Float[ndarray, "n E"], probs: Float[ndarray, "n B"], y: _Rows) -> dict[str, _Rows]:
    """Of B bins between B + 1 edges that do not fall, uniform within each: every array.  Outside the edges the density
    is 0, and the score grows by the distance (∫ F² below y and ∫ (1 - F)² above it, F linear in each bin)."""
    probs, widths = probs / probs.sum(axis=1, keepdims=True), np.maximum(np.diff(edges, axis=1), np.finfo(float).tiny)
    F = np.pad(np.cumsum(probs, axis=1), ((0, 0), (1, 0)))
    inside = np.clip(y, edges[:, 0], edges[:, -1])
    with np.errstate(over="ignore"):
        share = np.clip((inside[:, None] - edges[:, :-1]) / widths, 0.0, 1.0)  # of each bin below y
    at_y = F[:, :-1] + share * probs
    sides = (share, F[:, :-1], at_y), (1.0 - share, 1.0 - at_y, 1.0 - F[:, 1:])
    below, above = (np.sum(w * widths * (a**2 + a * b + b**2) / 3.0, axis=1) for w, a, b in sides)
    column = np.sum(share >= 1.0, axis=1).clip(0, probs.shape[1] - 1)[:, None]
    density = (np.take_along_axis(a, column, axis=1)[:, 0] for a in (probs, widths))
    with np.errstate(divide="ignore"):
        log_prob = np.where(inside == y, np.subtract(*map(np.log, density)), -np.inf)
    ends = [np.array([np.interp(p, *row) for row in zip(F, edges)]) for p in ENDS.values()]
    middle = edges[:, :-1] + 0.5 * widths
    mean = np.sum(probs * middle, axis=1)
    return {
        "log_prob": log_prob,
        "mean": mean,
        "var": np.sum(probs * ((middle - mean[:, None]) ** 2 + widths**2 / 12.0), axis=1),
        "crps": below + above + np.abs(y - inside),
        "cdf": np.sum(share * probs, axis=1),
        **dict(zip(ENDS, ends)),
    }


def bins_above(
    edges: Float[ndarray, "n E"], probs: Float[ndarray, "n B"], least: float
) -> tuple[Float[ndarray, "n F"], Float[ndarray, "n E"]]:
    """Edges and probabilities of the larger of a target and `least`: what is below is at that edge."""
    inner = np.clip(least, edges[:, :1], edges[:, -1:])
    split = np.sort(np.concatenate([edges, inner], axis=1), axis=1)
    F = np.pad(np.cumsum(probs, axis=1), ((0, 0), (1, 0)))
    parts = np.diff([np.interp(*row) for row in zip(split, edges, F)], axis=1)
    return np.maximum(split, least), parts
