"""Bradley-Terry scores of methods from their comparisons on data sets, with intervals that resample the data sets.

R. A. Bradley and M. E. Terry, Rank Analysis of Incomplete Block Designs, Biometrika 39 (1952): method i beats method k
with probability e^(s_i) / (e^(s_i) + e^(s_k)).  The scores maximise the likelihood by the iteration of D. R. Hunter, MM
Algorithms for Generalized Bradley-Terry Models, Annals of Statistics 32 (2004), equation 3.  Ties are half a win of both.
"""

import math
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
_TOLERANCE, _MOST_ITERATIONS = 1e-6, 10_000


def outcomes(
    losses: Float[ndarray, "K D S"], has_run: Bool[ndarray, "K D S"], *, absolute: float = 0.0, relative: float = 0.0
) -> Float[ndarray, "D S K K"]:
    """The outcome of every comparison: 1 where the first method wins, 0 where it loses, 0.5 where they tie.

    Args:
        losses: Losses by method, data set and split, infinite where a run has no predictions.
        has_run: Which runs there are.
        absolute: Largest difference of losses that is a tie.
        relative: The same as a share of the smaller loss.

    Returns:
        Outcomes by data set, split, first and second method; NaN where one of them has no run, and on the diagonal.
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
    """`wins` in many draws of as many data sets, and of splits within each, with replacement.

    Results of the same data sets and splits, as of another metric, are drawn alike.
    """
    random = np.random.default_rng(_SEED)
    D, S, K, _ = results.shape
    splits = [np.flatnonzero(~np.isnan(result).all(axis=(1, 2))) for result in results]
    splits = [known if len(known) else np.arange(S) for known in splits]
    available = np.array([np.resize(known, S) for known in splits])
    numbers = np.array([len(known) for known in splits])
    total = np.zeros((draws, K, K))
    for _ in range(D):
        chosen = random.integers(D, size=(draws, 1))
        picked = (random.random((draws, S)) * numbers[chosen]).astype(int)
        total += np.nan_to_num(_means(results[chosen, available[chosen, picked]]))
    return total


def _means(results: Float[ndarray, "N S K K"]) -> Float[ndarray, "N K K"]:
    """Means over the splits that both methods have; NaN without any."""
    played = (~np.isnan(results)).sum(axis=1)
    return np.where(played, np.nansum(results, axis=1), np.nan) / np.maximum(played, 1)


def scores(won: Float[ndarray, "*B K K"]) -> Float[ndarray, "*B K"]:
    """The scores that maximise the likelihood, in log odds with mean 0.

    Args:
        won: Numbers of data sets that the first method wins of the second.
    """
    won = won + 0.5 * PRIOR * (1.0 - np.eye(won.shape[-1]))
    played, total = won + np.swapaxes(won, -1, -2), won.sum(axis=-1)
    strength = np.ones(total.shape)
    for _ in range(_MOST_ITERATIONS):
        # p_i = w_i / sum_k n_ik / (p_i + p_k)
        after = total / (played / (strength[..., :, None] + strength[..., None, :])).sum(axis=-1)
        after /= np.exp(np.log(after).mean(axis=-1, keepdims=True))
        change = float(np.abs(np.log(after / strength)).max(initial=0.0))
        strength = after
        if change < _TOLERANCE:
            break
    return np.log(strength)


def win_rates(won: Float[ndarray, "*B K K"]) -> Float[ndarray, "*B K"]:
    """The share of comparisons that each method wins, with every opponent of the same weight; 0.5 without any."""
    played = won + np.swapaxes(won, -1, -2)
    share = np.where(played > 0, won, 0.0) / np.where(played > 0, played, 1.0)
    opponents = (played > 0).sum(axis=-1)
    return np.where(opponents, share.sum(axis=-1), 0.5) / np.maximum(opponents, 1)


@dataclass(frozen=True)
class Estimates:
    """A number for each method, with what becomes of it in draws of the data sets.

    Args:
        values: The numbers.
        draws: The numbers in each draw.
        datasets: Number of data sets of each method, from which the degrees of freedom follow.
    """

    values: Float[ndarray, " K"]
    draws: Float[ndarray, "B K"]
    datasets: Int[ndarray, " K"]

    @property
    def half_widths(self) -> Float[ndarray, " K"]:
        """Half the widths of the 95 % intervals, by the t distribution; infinite for methods with one data set."""
        from scipy.special import stdtrit

        quantiles = stdtrit(np.maximum(self.datasets - 1, 1), 1 - LEVEL / 2)
        return quantiles * _inflation(self.datasets) * self.draws.std(axis=0, ddof=1)

    def better(self, one: int | None = None) -> Bool[ndarray, "K K"]:
        """Which methods have significantly larger numbers than which, at 5 % after Holm's correction.

        Args:
            one: Number of a method whose comparisons alone are made; None for all pairs.
        """
        from scipy.special import stdtr

        K = len(self.values)
        table = np.zeros((K, K), dtype=bool)
        n = np.minimum(self.datasets[:, None], self.datasets)
        pairs = [(i, k) for i in range(K) for k in range(i + 1, K) if one in (None, i, k) and n[i, k] >= FEWEST]
        if not pairs:
            return table
        i, k = np.array(pairs).T
        difference = self.values[i] - self.values[k]
        stderr = _inflation(n[i, k]) * (self.draws[:, i] - self.draws[:, k]).std(axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(difference == 0, 0.0, np.abs(difference) / stderr)
        is_clear = np.array(holm([*(2 * stdtr(n[i, k] - 1, -t))])) < LEVEL
        table[i, k], table[k, i] = is_clear & (difference > 0), is_clear & (difference < 0)
        return table


def _inflation(datasets: Int[ndarray, " n"]) -> Float[ndarray, " n"]:
    """The root of n / (n - 1), by which draws of n data sets vary too little; infinite for one."""
    with np.errstate(divide="ignore"):
        return np.sqrt(datasets / (datasets - 1.0))


def estimates(results: Float[ndarray, "D S K K"], draws: int = DRAWS) -> tuple[Estimates, Estimates]:
    """The scores in Elo points around 1000, and the win rates, of methods by the outcomes of their comparisons."""
    datasets = (~np.isnan(results)).any(axis=(1, 3)).sum(axis=0)
    won, drawn = wins(results), resampled_wins(results, draws)
    points = Estimates(1000 + ELO * scores(won), 1000 + ELO * scores(drawn), datasets)
    return points, Estimates(win_rates(won), win_rates(drawn), datasets)
