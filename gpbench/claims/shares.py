"""The estimate of a share of clustered trials."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from gpbench.analysis.statistics import LEVEL


@dataclass(frozen=True)
class Share:
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
        from scipy.special import stdtrit

        n, m, p = self.n, len(self.clusters), self.value
        if m < 2 or p in (0, 1):
            return float(m)
        # of a ratio of two sums over clusters, by linearisation: m / (m - 1) sum (y - p n_c)^2 / n^2
        residuals = math.fsum((sum(cluster) - p * len(cluster)) ** 2 for cluster in self.clusters)
        variance = m / (m - 1) * residuals / n**2
        worth = p * (1 - p) / variance if variance else math.inf
        quantiles = float(stdtrit(n - 1, 1 - LEVEL / 2)) / float(stdtrit(m - 1, 1 - LEVEL / 2))
        return min(float(n), max(1.0, worth * quantiles**2))

    def p_above(self, bound: float) -> float:
        from scipy.special import betainc

        k, n = self.value * self.worth, self.worth
        return float(betainc(k, n - k + 1, min(max(bound, 0.0), 1.0))) if k else 1.0

    def p_below(self, bound: float) -> float:
        from scipy.special import betaincc

        k, n = self.value * self.worth, self.worth
        return float(betaincc(k + 1, n - k, min(max(bound, 0.0), 1.0))) if k < n else 1.0
