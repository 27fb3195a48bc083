"""Regions in which claims say that numbers lie, and evidence that they do.

Evidence on terms is combined to evidence on a whole under any dependence between the terms.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from gpbench.analysis.statistics import LEVEL
from gpbench.claims.estimates import Estimate

SIDE = LEVEL / 2
"""Level of each side of a verdict: as of a 95 % interval, one side of which lies beyond a bound."""


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

    def __str__(self) -> str:
        if math.isinf(self.low) or math.isinf(self.high):
            return f"< {self.high:.4g}" if math.isinf(self.low) else f"> {self.low:.4g}"
        return f"in [{self.low:.4g}, {self.high:.4g}]"


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
    return at_least(len(terms), terms) if terms else NONE
