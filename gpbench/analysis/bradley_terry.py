"""Bradley-Terry scores of methods from their comparisons on data sets, with intervals that resample the data sets.

R. A. Bradley and M. E. Terry, Rank Analysis of Incomplete Block Designs, Biometrika 39 (1952): method i beats method k
with probability e^(s_i) / (e^(s_i) + e^(s_k)).  The scores maximise the concave likelihood, by Newton's method.  A tie
is half a win of either.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from gpbench.analysis.statistics import LEVEL, holm

PRIOR = 0.5
"""Data sets on which every pair ties besides, so that a method that always wins has a finite score."""
ELO = 400 / math.log(10)
"""Points of a unit of log odds: 400 points are odds of 10 to 1."""
DRAWS = 1000
"""Number of times that data sets, and splits within them, are drawn again."""
FEWEST = 6
"""Data sets from which on methods may differ significantly: of fewer, all of one sign have a p-value above 5 %."""

_SEED = 1952
_TOLERANCE, _MOST_ITERATIONS = 1e-9, 100
_DIGITS = 9  # decimal places of scores in log odds, to which Newton's method is exact
_LONGEST = 1.0  # longest step of Newton's method in log odds: from afar it overshoots


def outcomes(
    losses: Float[ndarray, "K D S"], has_run: Bool[ndarray, "K D S"], *, absolute: float = 0.0, relative: float = 0.0
) -> Float[ndarray, "D S K K"]:
    """The outcome of every comparison, by data set, split, first and second method: 1 where the first method wins, 0
    where it loses, 0.5 where they tie; NaN where one of them has no run, and on the diagonal.
    """
    first, second = losses[:, None], losses[None]
    with np.errstate(invalid="ignore"):
        margin = absolute + relative * np.abs(np.where(np.abs(first) < np.abs(second), first, second))
        is_tie = (first == second) | (np.abs(first - second) <= margin)
    results = np.where(is_tie, 0.5, first < second)
    results[~(has_run[:, None] & has_run[None])] = np.nan
    results[np.diag_indices(len(losses))] = np.nan
    return np.moveaxis(results, (0, 1), (2, 3))


def wins(results: Float[ndarray, "D S K K"]) -> Float[ndarray, "K K"]:
    """Numbers of data sets that the first method wins of the second; the splits of a data set share its weight of 1."""
    return np.nansum(_means(results), axis=0)


def resampled_wins(results: Float[ndarray, "D S K K"], draws: int = DRAWS) -> Float[ndarray, "B K K"]:
    """`wins` in many draws of as many data sets, and of splits within each, with replacement.  Results of the same data
    sets and splits, as of another metric, are drawn alike.
    """
    total = np.zeros((draws, *results.shape[2:]))
    for datasets, splits in _draws((~np.isnan(results)).any(axis=(2, 3)), draws):
        total += np.nan_to_num(_means(results[datasets, splits]))
    return total


def means(values: Float[ndarray, "K D S"]) -> Float[ndarray, " K"]:
    """Means over data sets of means over splits, without values that are NaN."""
    by_dataset = _means(np.moveaxis(values, 0, -1))
    return np.nansum(by_dataset, axis=0) / np.maximum((~np.isnan(by_dataset)).sum(axis=0), 1)


def resampled_means(values: Float[ndarray, "K D S"], draws: int = DRAWS) -> Float[ndarray, "B K"]:
    """`means` in the draws of `resampled_wins`."""
    total, number = np.zeros((2, draws, len(values)))
    by_split = np.moveaxis(values, 0, -1)
    for datasets, splits in _draws((~np.isnan(values)).sum(axis=0) > 1, draws):
        by_draw = _means(by_split[datasets, splits])
        total, number = total + np.nan_to_num(by_draw), number + ~np.isnan(by_draw)
    return total / np.maximum(number, 1)


def _draws(has_split: Bool[ndarray, "D S"], draws: int) -> Iterator[tuple[Int[ndarray, "B 1"], Int[ndarray, "B S"]]]:
    """Yields for each data set of every draw its number, and the numbers of its splits; a split may come again."""
    random = np.random.default_rng(_SEED)
    D, S = has_split.shape
    available = np.array([np.resize(np.flatnonzero(row), S) if row.any() else np.arange(S) for row in has_split])
    numbers = np.maximum(has_split.sum(axis=1), 1)
    for _ in range(D):
        datasets = random.integers(D, size=(draws, 1))
        positions = (random.random((draws, S)) * numbers[datasets]).astype(int)
        yield datasets, available[datasets, positions]


def _means(results: Float[ndarray, "N S ..."]) -> Float[ndarray, "N ..."]:
    """Means over the splits that have a value; NaN without any."""
    played = (~np.isnan(results)).sum(axis=1)
    return np.where(played, np.nansum(results, axis=1), np.nan) / np.maximum(played, 1)


def scores(won: Float[ndarray, "*B K K"]) -> Float[ndarray, "*B K"]:
    """The scores that maximise the likelihood, in log odds with mean 0."""
    total = _with_prior(won).sum(axis=-1)
    values = np.zeros(total.shape)
    for _ in range(_MOST_ITERATIONS):
        expected, curvature = _moments(won, values)
        change = np.linalg.solve(curvature, (total - expected)[..., None])[..., 0]
        values = values + np.clip(change, -_LONGEST, _LONGEST)
        if np.abs(change).max(initial=0.0) < _TOLERANCE:
            break
    # methods with the same results have the same score: rounding, which differs between machines, decides no order
    return np.round(values - values.mean(axis=-1, keepdims=True), _DIGITS) + 0.0


def _with_prior(won: Float[ndarray, "*B K K"]) -> Float[ndarray, "*B K K"]:
    return won + 0.5 * PRIOR * (1.0 - np.eye(won.shape[-1]))


def _moments(
    won: Float[ndarray, "*B K K"], values: Float[ndarray, "*B K"]
) -> tuple[Float[ndarray, "*B K"], Float[ndarray, "*B K K"]]:
    """The expected wins of scores, and minus the curvature of the log likelihood with 1 1^T, which keeps the mean."""
    played = _with_prior(won) + np.swapaxes(_with_prior(won), -1, -2)
    chance = 1.0 / (1.0 + np.exp(values[..., None, :] - values[..., :, None]))
    weight = played * chance * (1.0 - chance)
    laplacian = weight.sum(axis=-1)[..., None] * np.eye(won.shape[-1]) - weight
    return (played * chance).sum(axis=-1), laplacian + 1.0


def win_rates(won: Float[ndarray, "*B K K"]) -> Float[ndarray, "*B K"]:
    """The share of comparisons that each method wins, with every opponent of the same weight; 0.5 without any."""
    played = won + np.swapaxes(won, -1, -2)
    share = np.where(played > 0, won, 0.0) / np.where(played > 0, played, 1.0)
    opponents = (played > 0).sum(axis=-1)
    return np.where(opponents, share.sum(axis=-1), 0.5) / np.maximum(opponents, 1)


@dataclass(frozen=True)
class Estimates:
    """A number for each method, with what becomes of it in draws of the data sets."""

    values: Float[ndarray, " K"]
    draws: Float[ndarray, "B K"]
    common: Int[ndarray, "K K"]
    least: Float[ndarray, " K"] | float = 0.0
    unit: float = 0.0  # unit of the numbers, of a log odds; 0 for others

    @property
    def datasets(self) -> Int[ndarray, " K"]:
        return np.diag(self.common)

    @property
    def half_widths(self) -> Float[ndarray, " K"]:
        """Half the widths of the 95 % intervals, by the t distribution; infinite for methods with one data set."""
        from scipy.special import stdtrit

        n = np.maximum(self.datasets, 2)
        stderr = np.maximum(_inflation(n) * self.draws.std(axis=0, ddof=1), self.least)
        halves = stdtrit(n - 1, 1 - LEVEL / 2) * stderr
        return np.where(self.datasets > 1, halves, np.inf)

    def better(self, method: int | None = None) -> Bool[ndarray, "K K"]:
        """True for pairs of which the first is significantly larger, at 5 % after Holm's correction.  The standard
        error of a difference is that of the draws, and at least 2 / sqrt(n), that of the log odds of n comparisons
        between equals.
        """
        from scipy.special import stdtr

        K = len(self.values)
        table = np.zeros((K, K), dtype=bool)
        i, k, n = self._pairs(method)
        if not len(i):
            return table
        difference = self.values[i] - self.values[k]
        drawn = _inflation(n) * (self.draws[:, i] - self.draws[:, k]).std(axis=0, ddof=1)
        stderr = np.maximum(drawn, self._least_stderr(n))
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(difference == 0, 0.0, np.abs(difference) / stderr)
        is_clear = np.array(holm([*(2 * stdtr(n - 1, -t))])) < LEVEL
        table[i, k], table[k, i] = is_clear & (difference > 0), is_clear & (difference < 0)
        return table

    def place_interval(self, method: int) -> tuple[int, int]:
        """The ends of the 95 % interval of a method's place by these numbers, 1 for the largest.  It has the places
        that the tests of its differences leave, after Holm's correction: M. Mogstad, J. P. Romano, A. M. Shaikh and D.
        Wilhelm, Inference for Ranks, Review of Economic Studies 91 (2024).
        """
        better = self.better(method)
        return 1 + int(better[:, method].sum()), len(self.values) - int(better[method].sum())

    def least_difference(self, method: int | None = None) -> float:
        """The smallest difference that may be significant alone; infinite where none may be."""
        from scipy.special import stdtrit

        i, _, n = self._pairs(method)
        return float(np.min(stdtrit(n - 1, 1 - LEVEL / 2 / max(len(i), 1)) * self._least_stderr(n), initial=np.inf))

    def _pairs(self, method: int | None = None) -> Int[ndarray, "3 P"]:
        """The pairs of methods, or of one method with others, that have data sets enough, and the numbers of these."""
        K, n = len(self.values), self.common
        pairs = [(i, k, n[i, k]) for i in range(K) for k in range(i + 1, K) if method in (None, i, k)]
        return np.array([pair for pair in pairs if pair[2] >= FEWEST], dtype=int).reshape(-1, 3).T

    def _least_stderr(self, n: Int[ndarray, " P"]) -> Float[ndarray, " P"]:
        return np.asarray(2 * self.unit / np.sqrt(n))


def _inflation(datasets: Int[ndarray, " n"]) -> Float[ndarray, " n"]:
    """The root of n / (n - 1), by which draws of n data sets vary too little."""
    return np.asarray(np.sqrt(datasets / (datasets - 1.0)))


def estimates(results: Float[ndarray, "D S K K"], draws: int = DRAWS) -> tuple[Estimates, Estimates]:
    """The scores in Elo points around 1000, and the win rates, of methods by the outcomes of their comparisons."""
    played = (~np.isnan(results)).any(axis=1)
    common = played.sum(axis=0) + np.diag(played.any(axis=2).sum(axis=0))  # no method meets itself
    won, drawn = wins(results), resampled_wins(results, draws)
    values, rates = scores(won), win_rates(won)
    # standard errors by the curvature of the likelihood, which takes comparisons as independent
    stderrs = np.sqrt(np.diag(np.linalg.inv(_moments(won, values)[1])) - 1.0 / len(won) ** 2)
    points = Estimates(1000 + ELO * values, 1000 + ELO * scores(drawn), common, ELO * stderrs, ELO)
    # of a binomial share, with the same prior
    number = (won + won.T).sum(axis=1)
    smooth = (rates * number + 0.5 * PRIOR) / (number + PRIOR)
    least = np.sqrt(smooth * (1 - smooth) / (number + PRIOR))
    return points, Estimates(rates, win_rates(drawn), common, least)
