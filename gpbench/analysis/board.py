"""The rules of a board: which methods beat which over data sets, and how sure that is.

On a data set a method has the share of the other methods that it beats; data sets are the sample.  The variance of the
difference of two shares is moderated over all pairs (G. K. Smyth, Linear Models and Empirical Bayes Methods, SAGMB 3
(2004)): few data sets say little about the variance of one pair, and much about that of all."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from gpbench.analysis.statistics import LEVEL, average_ranks, benjamini_hochberg
from gpbench.data import cards
from gpbench.errors import ConfigError

FEWEST = 6
"""Data sets that two methods must share before a claim about them: of fewer, all of one sign have p above 5 %."""
_PRIOR_MOST = 3  # largest prior degrees of freedom, in data sets
_CLIP = 1.0  # gain beyond which it counts no more, in nats or of a log ratio; a lost run has lost as much
_DRAWS, _SEED = 200, 60  # number of times that a third of the data sets is left out, and the seed of the draws
_DIGITS = 12  # decimal places of variances: those of differences that are all equal are 0, and no rounding error


def outcomes(losses: Float[ndarray, "K D"], absolute: float, relative: float = 0.0) -> Float[ndarray, "K K D"]:
    """What i wins against k on each data set: 1, 1/2 for a tie or 0; NaN where one of them is NaN.  Losses that differ
    by at most `absolute`, or this share of the smaller one, tie; infinite ones are of lost runs."""
    i, k = losses[:, None], losses[None]
    with np.errstate(invalid="ignore"):  # infinity less infinity, a tie
        difference = k - i
        margin = np.maximum(absolute, relative * np.minimum(np.abs(i), np.abs(k)))
        won = np.where(i == k, 0.5, 0.5 + 0.5 * np.sign(difference) * (np.abs(difference) > margin))
    return np.where(np.isnan(i) | np.isnan(k), np.nan, won)


def mean(values: Float[ndarray, "..."], axis: int) -> Float[ndarray, "..."]:
    """Mean along an axis without values that are NaN; NaN of none."""
    count = (~np.isnan(values)).sum(axis)
    return np.where(count > 0, np.nansum(values, axis) / np.maximum(count, 1), np.nan)


def _variance(values: Float[ndarray, "*K D"]) -> tuple[Float[ndarray, "*K"], Int[ndarray, "*K"]]:
    """Sample variances over data sets, and the numbers of these, without values that are NaN."""
    n = (~np.isnan(values)).sum(-1)
    squares = np.nansum((values - mean(values, -1)[..., None]) ** 2, -1)
    return np.round(squares / np.maximum(n - 1, 1), _DIGITS), n


def of_families(values: Float[ndarray, "*K D"], families: Sequence[str]) -> Float[ndarray, "*K F"]:
    """Means over the data sets of each family, in the order in which families come."""
    members = np.array(families)
    return np.stack([mean(values[..., members == name], -1) for name in dict.fromkeys(families)], axis=-1)


def family_of(dataset: str) -> str:
    """The family of a data set, whose sets are of one generator and count as one; its name without a card."""
    try:
        return cards.read(dataset).get("family", dataset)
    except ConfigError:
        return dataset


@dataclass(frozen=True)
class Board:
    """K methods on D data sets by their outcomes against each other; NaN where two methods do not meet."""

    won: Float[ndarray, "K K D"]
    counts: Bool[ndarray, " K"] | bool = True
    """Whether a method is one of the others, of whom a share is.  One that is handed in is not, so that copies of it
    move no share."""

    @classmethod
    def of_values(cls, losses: Float[ndarray, "D K"], datasets: Sequence[str]) -> "Board":
        """The board of one loss on each row, the name of a data set and more words, over families of data sets."""
        families = [family_of(name.partition(" ")[0]) for name in datasets]
        return cls(of_families(outcomes(losses.T, 0.0), families))

    @cached_property
    def _is_other(self) -> Bool[ndarray, "K K"]:
        """Whether k is one of the others of i."""
        return ~np.eye(len(self.won), dtype=bool) & self.counts

    @cached_property
    def shares(self) -> Float[ndarray, "K D"]:
        """The share of the other methods that a method beats on a data set."""
        return mean(np.where(self._is_other[..., None], self.won, np.nan), 1)

    @cached_property
    def means(self) -> Float[ndarray, " K"]:
        """The mean share of each method over data sets."""
        return mean(self.shares, 1)

    @cached_property
    def stderrs(self) -> Float[ndarray, " K"]:
        """The standard error of each mean share by its own data sets; NaN of one."""
        variance, n = _variance(self.shares)
        return np.sqrt(np.where(n > 1, variance / np.maximum(n, 1), np.nan))

    @property
    def order(self) -> list[int]:
        """The methods by their mean shares, the largest first."""
        return [*map(int, np.argsort(-np.round(self.means, _DIGITS), kind="stable"))]

    @cached_property
    def _gaps(self) -> Float[ndarray, "K K D"]:
        return self.shares[:, None] - self.shares[None]

    @cached_property
    def common(self) -> Int[ndarray, "K K"]:
        """The number of data sets that two methods share."""
        return (~np.isnan(self._gaps)).sum(2)

    @cached_property
    def differences(self) -> Float[ndarray, "K K"]:
        """The mean over common data sets of the share of i less that of k."""
        return np.nan_to_num(mean(self._gaps, 2))

    @cached_property
    def _moderated(self) -> tuple[Float[ndarray, "K K"], Float[ndarray, "K K"]]:
        """The standard errors of the differences, and their degrees of freedom."""
        K, (variance, n) = len(self.won), _variance(self._gaps)
        n, (i, k) = np.maximum(n, 2.0), np.triu_indices(K, 1)
        is_tested = self.common[i, k] >= FEWEST
        d0, s0 = moments(variance[i, k][is_tested], n[i, k][is_tested] - 1, _PRIOR_MOST * self.shares.shape[1])
        degrees = d0 + n - 1
        variance = (d0 * s0 + (n - 1) * variance) / degrees
        return np.sqrt(variance / n), np.minimum(degrees, (K - 1) * (n - 1))

    def difference(self, i: int, k: int) -> "Interval":
        """The share of i less that of k, with the interval of this difference alone."""
        from scipy.special import stdtrit

        value, (stderr, degrees) = float(self.differences[i, k]), (table[i, k] for table in self._moderated)
        half = float(stdtrit(degrees, 1 - LEVEL / 2) * stderr) if self.common[i, k] >= FEWEST else np.inf
        return Interval(value, value - half, value + half)

    @cached_property
    def p(self) -> Float[ndarray, "K K"]:
        """One-sided p-values of "the share of i is above that of k"; 1 of pairs that share too few data sets."""
        from scipy.special import stdtr

        stderr, degrees = self._moderated
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where(self.differences == 0, 0.0, self.differences / stderr)
        # differences that are all equal have no variance to judge by; the sign test needs none
        p = np.where(np.isposinf(t), 0.5**self.common, stdtr(degrees, -t))
        return np.where(self.common >= FEWEST, p, 1.0)

    def decided(self, pairs: tuple[Int[ndarray, " P"], Int[ndarray, " P"]]) -> Bool[ndarray, "K K"]:
        """True where i is better than k: of these pairs, with a share of false claims of at most 5 % expected."""
        i, k = pairs
        adjusted = np.ones_like(self.p)
        two_sided = np.minimum(1.0, 2.0 * np.minimum(self.p, self.p.T)[i, k])
        adjusted[i, k] = adjusted[k, i] = benjamini_hochberg(two_sided.tolist())
        return (adjusted <= LEVEL) & (self.differences > 0)

    @cached_property
    def better(self) -> Bool[ndarray, "K K"]:
        """True where i is better than k, of all pairs."""
        return self.decided(np.triu_indices(len(self.won), 1))

    def with_method(self, k: int) -> Bool[ndarray, "K K"]:
        """True where i is better than another, of the pairs of one method alone."""
        others = np.delete(np.arange(len(self.won)), k)
        return self.decided((np.full(len(others), k), others))

    @cached_property
    def may_be_best(self) -> Bool[ndarray, " K"]:
        """The methods above which no other stands, at 5 % for all others of a method together."""
        above = self._is_other.T & (self.p <= LEVEL / max(self._is_other.sum(1).min(), 1))
        return np.asarray(~above.any(axis=0))


def moments(variances: Float[ndarray, " P"], degrees: Float[ndarray, " P"] | float, most: float) -> tuple[float, float]:
    """Prior degrees of freedom d0, at most `most`, and variance s0 of sample variances (Smyth 2004, section 6.2)."""
    from scipy.optimize import brentq
    from scipy.special import digamma, polygamma

    half = np.broadcast_to(degrees, variances.shape)[variances > 0] / 2
    e = np.log(variances[variances > 0]) - digamma(half) + np.log(half)
    if len(e) < 2:
        return 0.0, 0.0
    rest = float(e.var(ddof=1) - polygamma(1, half).mean())
    d0 = most  # or twice the x whose trigamma function is `rest`, which is above 1 / x
    if rest > polygamma(1, most / 2):
        d0 = 2.0 * brentq(lambda x: polygamma(1, x) - rest, 1.0 / rest, most / 2)
    return d0, float(np.exp(e.mean() + digamma(d0 / 2) - np.log(d0 / 2)))


class Interval(NamedTuple):
    """A number with the ends of its 95 % interval."""

    value: float
    low: float
    high: float


def chance_to_win(won: Float[ndarray, " D"]) -> Interval:
    """The chance to win against a reference on a new data set by the outcomes of D, with Jeffreys' interval."""
    from scipy.special import betaincinv

    D, w = len(won), float(won.sum())
    a, b = w + 0.5, D - w + 0.5
    return Interval(a / (D + 1), float(betaincinv(a, b, LEVEL / 2)), float(betaincinv(a, b, 1 - LEVEL / 2)))


def gains(losses: Float[ndarray, " D"], reference: Float[ndarray, " D"]) -> Float[ndarray, " D"]:
    """A reference's loss less that of a method, clipped; 0 where both runs are lost."""
    with np.errstate(invalid="ignore"):
        gap = np.where(losses == reference, 0.0, reference - losses)
    return np.clip(gap, -_CLIP, _CLIP)


def mean_gain(values: Float[ndarray, " D"]) -> Interval:
    """The mean gain over D data sets, and the t interval of these and of one gain and one loss of the most that counts:
    the data sets may lack a rare failure.  It is infinite for one."""
    from scipy.special import stdtrit

    D, more = len(values), np.append(values, (_CLIP, -_CLIP))
    if D < 2:
        return Interval(float(values.mean()), -np.inf, np.inf)
    half = float(stdtrit(D + 1, 1 - LEVEL / 2) * more.std(ddof=1) / np.sqrt(D + 2))
    return Interval(*map(float, (values.mean(), *np.clip((more.mean() - half, more.mean() + half), -_CLIP, _CLIP))))


def correlation(a: Float[ndarray, " K"], b: Float[ndarray, " K"]) -> float:
    """Spearman's rank correlation of two orders of methods; NaN where one ties all methods."""
    ranks = average_ranks(np.stack([a, b]))
    return float(np.corrcoef(ranks)[0, 1]) if ranks.std(axis=1).all() else np.nan


def stability(board: Board) -> tuple[list[float], list[float]]:
    """The rank correlations of a board's order with that without each data set, and without a third, often drawn."""
    random, D = np.random.default_rng(_SEED), board.shares.shape[1]
    lone = [np.delete(np.arange(D), d) for d in range(D)]
    thirds = [random.permutation(D)[: max(1, D - D // 3)] for _ in range(_DRAWS)]
    value = lambda some: correlation(board.means, mean(board.shares[:, some], 1))
    return [*map(value, lone)], [*map(value, thirds)]
