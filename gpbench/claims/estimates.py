"""Estimates of numbers: values with 95 % intervals and one-sided p-values against any bound."""

import bisect
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import correlation, fmean, median, stdev
from typing import Protocol, runtime_checkable

from gpbench.analysis.statistics import LEVEL, mean_stderr


@runtime_checkable
class Estimate(Protocol):
    """A number `value` that was estimated from `n` splits, data sets, points or trials."""

    @property
    def value(self) -> float: ...
    @property
    def n(self) -> int: ...
    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval; infinite where so few numbers allow no test."""

    def p_above(self, bound: float) -> float:
        """The p-value against the hypothesis that the true number is `bound` or less."""

    def p_below(self, bound: float) -> float:
        """The p-value against the hypothesis that the true number is `bound` or more."""


@dataclass(frozen=True)
class Student:
    """A mean with Student's t distribution; the normal one with infinite `df`."""

    value: float  # the mean
    stderr: float | None  # its standard error; None allows no test, as for a single split
    df: float  # degrees of freedom
    n: int  # number of values
    sd: float | None = None
    ratio: float | None = None
    of_rows: bool = False  # whether the error is that over the test rows of a single split

    @property
    def interval(self) -> tuple[float, float]:
        from scipy.special import stdtrit

        if self.stderr is None:
            return -math.inf, math.inf
        half = float(stdtrit(self.df, 1 - LEVEL / 2)) * self.stderr
        return self.value - half, self.value + half

    def p_above(self, bound: float) -> float:
        return self._tail(bound - self.value)

    def p_below(self, bound: float) -> float:
        return self._tail(self.value - bound)

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        if self.stderr is None:
            return 1.0
        if self.stderr == 0:
            return float(distance >= 0)
        return float(stdtr(self.df, distance / self.stderr))


@dataclass(frozen=True)
class SignedRank:
    """The centre of values, one for each data set, by Wilcoxon's signed-rank test.

    The statistic is the number of means of pairs, of a value with itself too, on one side of the bound.
    """

    values: Sequence[float]

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def value(self) -> float:
        """The Hodges-Lehmann estimate: the median of the means of all pairs."""
        return median(self._means)

    @property
    def interval(self) -> tuple[float, float]:
        """The range of those means of pairs that the test does not reject."""
        k = bisect.bisect_right(_signed_rank_cdf(self.n), LEVEL / 2) - 1
        return (-math.inf, math.inf) if k < 0 else (self._means[k], self._means[-1 - k])

    def p_above(self, bound: float) -> float:
        return self._tail(sum(mean > bound for mean in self._means))

    def p_below(self, bound: float) -> float:
        return self._tail(sum(mean < bound for mean in self._means))

    def _tail(self, statistic: int) -> float:
        """P(W >= statistic) = P(W <= M - statistic) for M means."""
        return min(1.0, _signed_rank_cdf(self.n)[len(self._means) - statistic])

    @cached_property
    def _means(self) -> list[float]:
        return sorted((a + b) / 2 for i, a in enumerate(self.values) for b in self.values[i:])


@cache
def _signed_rank_cdf(n: int) -> list[float]:
    """P(W <= w) for the sum W of a subset of 1 .. n, each included with probability one half."""
    counts = [1]
    for rank in range(1, n + 1):
        counts = [a + b for a, b in zip([*counts, *[0] * rank], [*[0] * rank, *counts])]
    return [total / 2**n for total in itertools.accumulate(counts)]


@dataclass(frozen=True)
class PairedSpread:
    """The logarithm of the ratio of two standard deviations of paired values, by the test of Pitman and Morgan.

    E. J. G. Pitman, A Note on Normal Correlation, Biometrika 31 (1939): with r the correlation of the pairs and w the
    logarithm less its hypothetical value, sinh(w) sqrt((n - 2) / (1 - r²)) has Student's t distribution with n - 2
    degrees of freedom.
    """

    pairs: Sequence[tuple[float, float]]  # values of both sides, as of the outputs of a data set; three pairs or more

    @property
    def n(self) -> int:
        return len(self.pairs)

    @property
    def value(self) -> float:
        return math.log(stdev(a for a, _ in self.pairs) / stdev(b for _, b in self.pairs))

    @property
    def interval(self) -> tuple[float, float]:
        from scipy.special import stdtrit

        half = math.asinh(float(stdtrit(self.n - 2, 1 - LEVEL / 2)) * self._scale)
        return self.value - half, self.value + half

    @cached_property
    def _scale(self) -> float:
        r = correlation(*zip(*self.pairs))
        return math.sqrt(max(0.0, 1 - r**2) / (self.n - 2))

    def p_above(self, bound: float) -> float:
        return self._tail(bound - self.value)

    def p_below(self, bound: float) -> float:
        return self._tail(self.value - bound)

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        return float(stdtr(self.n - 2, math.sinh(distance) / self._scale)) if self._scale else float(distance >= 0)


@dataclass(frozen=True)
class Exact:
    """A number without error, such as a count."""

    value: float
    n: int = 1

    @property
    def interval(self) -> tuple[float, float]:
        return self.value, self.value

    def p_above(self, bound: float) -> float:
        return float(self.value <= bound)

    def p_below(self, bound: float) -> float:
        return float(self.value >= bound)


def clustered(values: Mapping[str, Sequence[float]]) -> Student | None:
    """The mean over clusters of their means, with its standard error between clusters.

    Values of one cluster, such as the outputs or splits of one data set, count once together, however they depend on
    one another.  A single cluster allows no test.  Returns the mean; None without values.
    """
    means = [fmean(cluster) for cluster in values.values() if cluster]
    if not means:
        return None
    mean, stderr = mean_stderr(means)
    return Student(mean, stderr, max(1, len(means) - 1), len(means))
