"""Estimates of numbers with 95 % intervals and p-values; regions of numbers, and combined evidence for them."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import NamedTuple

from gpbench.analysis.statistics import LEVEL, mean_stderr

SIDE = LEVEL / 2
"""Level of each side of a verdict: as of a 95 % interval, one side of which lies beyond a bound."""
_NO_INTERVAL = (-math.inf, math.inf)


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated from `n` splits, data sets, points or trials."""

    value: float
    n: int
    interval: tuple[float, float]  # the 95 % confidence interval; infinite where so few numbers allow no test
    p_above: Callable[[float], float] = field(compare=False)  # p-value against a true number of a bound or less
    p_below: Callable[[float], float] = field(compare=False)  # p-value against a true number of a bound or more
    stderr: float | None = None  # the standard error of a mean; None allows no test, as for a single split
    sd: float | None = None  # standard deviation over splits
    ratio: float | None = None  # n_test / n_train of the correction
    data: object = None  # values that tell it from another estimate with the same fields
    source: str = ""  # "splits", "rows" (error over the test rows of one split), "sets", or ""


def _symmetric(value: float, n: int, half: float, tail: Callable[[float], float], **fields: object) -> Estimate:
    """An estimate with an interval of this half width; `tail` is the probability of a distance from the true number."""
    interval = _NO_INTERVAL if math.isinf(half) else (value - half, value + half)
    above, below = (lambda bound: tail(bound - value)), (lambda bound: tail(value - bound))
    return Estimate(value, n, interval, above, below, **fields)  # type: ignore[arg-type]


def exact(value: float, n: int = 1) -> Estimate:
    """A number without error, such as a count."""
    return _symmetric(value, n, 0.0, _step)


def _step(distance: float) -> float:
    return float(distance >= 0)


def student(
    value: float,
    stderr: float | None,
    df: float,
    n: int,
    sd: float | None = None,
    ratio: float | None = None,
    source: str = "splits",
) -> Estimate:
    """A mean with Student's t distribution; the normal one with infinite `df`."""
    from scipy.special import stdtr

    half, tail = math.inf, lambda distance: 1.0
    if stderr is not None:
        half, tail = _quantile(df) * stderr, _step
    if stderr:
        tail = lambda distance: float(stdtr(df, distance / stderr))
    return _symmetric(value, n, half, tail, stderr=stderr, sd=sd, ratio=ratio, source=source)


def mean(values: Sequence[float], ratio: float | None) -> Estimate | None:
    """The mean with its corrected standard error; without one where the numbers of rows are unknown.  It is infinite
    where a value is, as of a level that a run does not reach, and of infinities of both signs unknown."""
    if not values or math.isnan(sum(values)):
        return None
    n = len(values)
    centre, plain = (sum(values), None) if math.isinf(sum(values)) else mean_stderr(values)
    if plain is None or ratio is None:
        return student(centre, None, max(1, n - 1), n)
    return student(centre, plain * math.sqrt(1 + n * ratio), n - 1, n, plain * math.sqrt(n), ratio)


def clustered(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """The mean over clusters of their means, with its standard error between clusters; None without values.  However
    values of a cluster, as the outputs of a data set, depend on one another, they count once."""
    means = [fmean(cluster) for cluster in values.values() if cluster]
    return student(*mean_stderr(means), max(1, len(means) - 1), len(means), source="sets") if means else None


def share(clusters: Sequence[Sequence[bool]]) -> Estimate:
    """A share of trials with the interval of Clopper and Pearson, by the binomial distribution of `worth` trials."""
    from scipy.special import betainc, betaincc, betaincinv

    total, n = sum(map(len, clusters)), worth(clusters)
    p = sum(map(sum, clusters)) / total
    k = p * n
    low = float(betaincinv(k, n - k + 1, LEVEL / 2)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - LEVEL / 2)) if k < n else 1.0
    tail = lambda cdf, a, b, bound: float(cdf(a, b, min(max(bound, 0.0), 1.0))) if a and b else 1.0
    above, below = partial(tail, betainc, k, n - k + 1), partial(tail, betaincc, k + 1, n - k)
    return Estimate(p, total, (low, high), above, below, data=clusters)


def worth(clusters: Sequence[Sequence[bool]]) -> float:
    """The number of independent trials of the same variance as the clustered ones, those divided by the design effect:
    E. L. Korn and B. I. Graubard, Survey Methodology 24 (1998).  Clusters of trials that are all alike are worth one
    each."""
    n, m = sum(map(len, clusters)), len(clusters)
    p = sum(map(sum, clusters)) / n
    if m < 2 or p in (0, 1):
        return float(m)
    # of a ratio of two sums over clusters, by linearisation: m / (m - 1) sum (y - p n_c)^2 / n^2
    residuals = math.fsum((sum(cluster) - p * len(cluster)) ** 2 for cluster in clusters)
    variance = m / (m - 1) * residuals / n**2
    trials = p * (1 - p) / variance if variance else math.inf
    return min(float(n), max(1.0, trials * (_quantile(n - 1) / _quantile(m - 1)) ** 2))


def _quantile(df: float) -> float:
    """The quantile of Student's t distribution that an interval reaches to."""
    from scipy.special import stdtrit

    return float(stdtrit(df, 1 - LEVEL / 2))


class Evidence(NamedTuple):
    """Evidence that a statement holds."""

    supporting: float  # p-value against the hypothesis that it does not hold; a small one supports it
    contradicting: float  # p-value against the hypothesis that it holds; a small one contradicts it

    @property
    def p(self) -> float:
        """Two-sided p-value: below 0.05 where the 95 % interval lies in the region, or outside of it."""
        return min(1.0, 2 * min(self))


NONE = Evidence(1.0, 1.0)
"""Evidence of a term without runs."""

INSIDE, LEANS_IN, LEANS_OUT, OUTSIDE = range(4)
"""Positions of an estimate: its 95 % interval inside the region, its value inside alone, and the same outside."""


class Region(NamedTuple):
    """The numbers from `low` to `high`."""

    low: float
    high: float

    def evidence(self, estimate: Estimate) -> Evidence:
        """Evidence that the true number is inside: it must be beyond both ends, and lies outside beyond one of them."""
        inside, outside = [], []
        if not math.isinf(self.low):
            inside, outside = [estimate.p_above(self.low)], [estimate.p_below(self.low)]
        if not math.isinf(self.high):
            inside, outside = [*inside, estimate.p_below(self.high)], [*outside, estimate.p_above(self.high)]
        return Evidence(max(inside), min(outside))

    def position(self, estimate: Estimate) -> int:
        """The position of an estimate: INSIDE or OUTSIDE where its interval shows it, else by its value."""
        supporting, contradicting = self.evidence(estimate)
        if supporting <= SIDE:
            return INSIDE
        if contradicting <= SIDE:
            return OUTSIDE
        value = estimate.value  # infinite where a run does not reach a level
        above, below = (math.isinf(self.low) or value > self.low), (math.isinf(self.high) or value < self.high)
        return LEANS_IN if above and below else LEANS_OUT


def at_least(k: int, terms: Sequence[Evidence]) -> Evidence:
    """Evidence that k of the terms hold, or more, by Bonferroni's test of a partial conjunction: n - k + 1 times the
    k-th smallest p-value (Y. Benjamini and R. Heller, Biometrics 64 (2008), section 3).  It is contradicted by n - k +
    1 terms that do not hold."""
    if not (n := len(terms)):
        return NONE
    supporting, contradicting = (sorted(term[side] for term in terms) for side in (0, 1))
    return Evidence(min(1.0, (n - k + 1) * supporting[k - 1]), min(1.0, k * contradicting[n - k]))


def every(terms: Sequence[Evidence]) -> Evidence:
    """Evidence that all of the terms hold."""
    return at_least(len(terms), terms)
