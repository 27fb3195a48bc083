"""Estimates of numbers: values with 95 % intervals and one-sided p-values against any bound."""

import bisect
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import correlation, fmean, median, stdev
from typing import TYPE_CHECKING

from gpbench.analysis.statistics import LEVEL, mean_stderr


class Estimate(ABC):
    """A number `value` that was estimated from `n` splits, data sets, points or trials."""

    if TYPE_CHECKING:

        @property
        def value(self) -> float: ...
        @property
        def n(self) -> int: ...

    @property
    @abstractmethod
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval; infinite where so few numbers allow no test."""

    def p_above(self, bound: float) -> float:
        """The p-value against the hypothesis that the true number is `bound` or less."""
        return self._tail(bound - self.value)

    def p_below(self, bound: float) -> float:
        """The p-value against the hypothesis that the true number is `bound` or more."""
        return self._tail(self.value - bound)

    def _tail(self, distance: float) -> float:
        """The probability that the estimate lies so far on one side of the true number, or further."""
        return float(distance >= 0)


@dataclass(frozen=True)
class Exact(Estimate):
    """A number without error, such as a count."""

    value: float
    n: int = 1

    @property
    def interval(self) -> tuple[float, float]:
        return self.value, self.value


@dataclass(frozen=True)
class Student(Estimate):
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
        half = math.inf if self.stderr is None else _quantile(self.df) * self.stderr
        return (-math.inf, math.inf) if math.isinf(half) else (self.value - half, self.value + half)

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        if not self.stderr:
            return 1.0 if self.stderr is None else super()._tail(distance)
        return float(stdtr(self.df, distance / self.stderr))


@dataclass(frozen=True)
class PairedSpread(Estimate):
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
        a, b = map(stdev, zip(*self.pairs))
        return math.log(a / b)

    @property
    def interval(self) -> tuple[float, float]:
        half = math.asinh(_quantile(self.n - 2) * self._scale)
        return self.value - half, self.value + half

    @cached_property
    def _scale(self) -> float:
        return math.sqrt(max(0.0, 1 - correlation(*zip(*self.pairs)) ** 2) / (self.n - 2))

    def _tail(self, distance: float) -> float:
        from scipy.special import stdtr

        if not self._scale:
            return super()._tail(distance)
        return float(stdtr(self.n - 2, math.sinh(distance) / self._scale))


@dataclass(frozen=True)
class SignedRank(Estimate):
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
        return self._p(sum(mean > bound for mean in self._means))

    def p_below(self, bound: float) -> float:
        return self._p(sum(mean < bound for mean in self._means))

    def _p(self, statistic: int) -> float:
        """P(W >= statistic) = P(W <= M - statistic) for M means."""
        return min(1.0, _signed_rank_cdf(self.n)[len(self._means) - statistic])

    @cached_property
    def _means(self) -> list[float]:
        return sorted((a + b) / 2 for i, a in enumerate(self.values) for b in self.values[i:])


@dataclass(frozen=True)
class Share(Estimate):
    """A share of trials, by the binomial distribution of as many independent trials as the clustered ones are worth.

    E. L. Korn and B. I. Graubard, Confidence Intervals for Proportions With Small Expected Number of Positive Counts
    Estimated From Survey Data, Survey Methodology 24 (1998): the number of trials is divided by the design effect, the
    variance of the share between clusters over that of independent trials.  Clusters of trials that are all alike are
    worth one trial each, and none is worth more than its trials.
    """

    clusters: Sequence[Sequence[bool]]

    @property
    def n(self) -> int:
        return sum(map(len, self.clusters))

    @property
    def value(self) -> float:
        return sum(map(sum, self.clusters)) / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of Clopper and Pearson."""
        from scipy.special import betaincinv

        k, n = self.value * self.worth, self.worth
        low = betaincinv(k, n - k + 1, LEVEL / 2) if k else 0.0
        high = betaincinv(k + 1, n - k, 1 - LEVEL / 2) if k < n else 1.0
        return float(low), float(high)

    @cached_property
    def worth(self) -> float:
        """The number of independent trials of the same variance, with t quantiles for the normal ones."""
        n, m, p = self.n, len(self.clusters), self.value
        if m < 2 or p in (0, 1):
            return float(m)
        # of a ratio of two sums over clusters, by linearisation: m / (m - 1) sum (y - p n_c)^2 / n^2
        residuals = math.fsum((sum(cluster) - p * len(cluster)) ** 2 for cluster in self.clusters)
        variance = m / (m - 1) * residuals / n**2
        worth = p * (1 - p) / variance if variance else math.inf
        return min(float(n), max(1.0, worth * (_quantile(n - 1) / _quantile(m - 1)) ** 2))

    def p_above(self, bound: float) -> float:
        from scipy.special import betainc

        k, n = self.value * self.worth, self.worth
        return float(betainc(k, n - k + 1, min(max(bound, 0.0), 1.0))) if k else 1.0

    def p_below(self, bound: float) -> float:
        from scipy.special import betaincc

        k, n = self.value * self.worth, self.worth
        return float(betaincc(k + 1, n - k, min(max(bound, 0.0), 1.0))) if k < n else 1.0


def clustered(values: Mapping[str, Sequence[float]]) -> Student | None:
    """The mean over clusters of their means, with its standard error between clusters; None without values.

    Values of one cluster, such as the outputs or splits of one data set, count once together, however they depend on
    one another.  A single cluster allows no test.
    """
    means = [fmean(cluster) for cluster in values.values() if cluster]
    return Student(*mean_stderr(means), max(1, len(means) - 1), len(means)) if means else None


def _quantile(df: float) -> float:
    """The quantile of Student's t distribution that an interval reaches to."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 1 - LEVEL / 2))


@cache
def _signed_rank_cdf(n: int) -> list[float]:
    """P(W <= w) for the sum W of a subset of 1 .. n, each included with probability one half."""
    counts = [1]
    for rank in range(1, n + 1):
        counts = [a + b for a, b in zip([*counts, *[0] * rank], [*[0] * rank, *counts])]
    return [total / 2**n for total in itertools.accumulate(counts)]
