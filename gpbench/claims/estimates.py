"""Estimates with one-sided p-values against any bound, regions, and evidence that estimates lie in regions.

Evidence on terms is combined to evidence on a whole under any dependence between the terms.
"""

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from statistics import median
from typing import NamedTuple, Protocol, runtime_checkable

from gpbench.analysis.statistics import LEVEL


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
    """A mean with Student's t distribution; the normal one with infinite `df`.

    Args:
        value: The mean.
        stderr: Its standard error; None allows no test, as for a single split.
        df: Degrees of freedom.
        n: Number of values.
        sd, ratio: Standard deviation over splits, and their n_test / n_train (`gpbench.analysis.statistics`).
    """

    value: float
    stderr: float | None
    df: float
    n: int
    sd: float | None = None
    ratio: float | None = None

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
class Share:
    """A share of trials, by the binomial distribution."""

    successes: int
    n: int

    @property
    def value(self) -> float:
        return self.successes / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of Clopper and Pearson."""
        from scipy.special import betaincinv

        k, n = self.successes, self.n
        low = betaincinv(k, n - k + 1, LEVEL / 2) if k else 0.0
        high = betaincinv(k + 1, n - k, 1 - LEVEL / 2) if k < n else 1.0
        return float(low), float(high)

    def p_above(self, bound: float) -> float:
        return 1.0 if self.successes == 0 else self._cdf(self.n - self.successes, 1 - bound)

    def p_below(self, bound: float) -> float:
        return self._cdf(self.successes, bound)

    def _cdf(self, successes: int, share: float) -> float:
        from scipy.special import bdtr

        return float(bdtr(successes, self.n, min(max(share, 0.0), 1.0)))


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


class Evidence(NamedTuple):
    """Evidence that a statement holds.

    Args:
        supporting: p-value against the hypothesis that it does not hold; a small one supports it.
        contradicting: p-value against the hypothesis that it holds; a small one contradicts it.
    """

    supporting: float
    contradicting: float

    @property
    def p(self) -> float:
        """Two-sided p-value: below 0.05 where the 95 % interval lies in the region, or outside of it."""
        return min(1.0, 2.0 * min(self))

    @property
    def verdict(self) -> str:
        """The verdict, if the evidence is significant."""
        return "supported" if self.supporting < self.contradicting else "contradicted"


class Region(NamedTuple):
    """The numbers from `low` to `high`."""

    low: float
    high: float

    def evidence(self, estimate: Estimate) -> Evidence:
        """Evidence that the true number is inside: two one-sided tests of being outside, two of being inside."""
        inside, outside = [], []
        if not math.isinf(self.low):
            inside, outside = [estimate.p_above(self.low)], [estimate.p_below(self.low)]
        if not math.isinf(self.high):
            inside, outside = [*inside, estimate.p_below(self.high)], [*outside, estimate.p_above(self.high)]
        return Evidence(max(inside), min(1.0, len(outside) * min(outside)))

    def __str__(self) -> str:
        if math.isinf(self.low) or math.isinf(self.high):
            return f"< {self.high:.4g}" if math.isinf(self.low) else f"> {self.low:.4g}"
        return f"in [{self.low:.4g}, {self.high:.4g}]"


NONE = Evidence(1.0, 1.0)
"""Evidence of a term without runs."""


def at_least(k: int, terms: Sequence[Evidence]) -> Evidence:
    """Evidence that k of the terms hold, or more: Bonferroni's test of a partial conjunction.

    Y. Benjamini and R. Heller, Screening for Partial Conjunction Hypotheses, Biometrics 64 (2008), section 3: n - k + 1
    times the k-th smallest p-value.  It is contradicted by n - k + 1 terms that do not hold.
    """
    n = len(terms)
    supporting, contradicting = (sorted(term[side] for term in terms) for side in (0, 1))
    return Evidence(min(1.0, (n - k + 1) * supporting[k - 1]), min(1.0, k * contradicting[n - k]))


def every(terms: Sequence[Evidence]) -> Evidence:
    """Evidence that all of the terms hold."""
    return at_least(len(terms), terms)


def verdicts(evidence: Sequence[Evidence], level: float = LEVEL) -> list[str]:
    """The verdicts on statements, "supported", "contradicted" or "undecided", with Holm's correction over all."""
    results, order = ["undecided"] * len(evidence), sorted(range(len(evidence)), key=lambda k: evidence[k].p)
    for step, k in enumerate(order):
        if evidence[k].p > level / (len(evidence) - step):
            break
        results[k] = evidence[k].verdict
    return results
