"""From p-values of parts to those of a whole, under any dependence between the parts.

A part has two p-values: against the hypothesis that it does not hold (a small one supports it), and against the one
that it holds (a small one contradicts it).
"""

from collections.abc import Sequence
from typing import NamedTuple

from gpbench.analysis.statistics import LEVEL


class Evidence(NamedTuple):
    """The p-values against "it does not hold" and against "it holds"."""

    supporting: float
    contradicting: float

    @property
    def p(self) -> float:
        """Of the likelier verdict, two-sided: below 0.05 where a 95 % interval lies in the region, or outside it."""
        return min(1.0, 2.0 * min(self))

    @property
    def verdict(self) -> str:
        """What the evidence is for if it is significant."""
        return "supported" if self.supporting < self.contradicting else "contradicted"


NONE = Evidence(1.0, 1.0)
"""Of a part that was not run."""


def at_least(k: int, parts: Sequence[Evidence]) -> Evidence:
    """That k of these parts hold, or more: Bonferroni's test of a partial conjunction.

    Y. Benjamini and R. Heller, Screening for Partial Conjunction Hypotheses, Biometrics 64 (2008), section 3: n - k + 1
    times the k-th smallest p-value.  It is contradicted by n - k + 1 parts that do not hold.
    """
    n = len(parts)
    for_, against = sorted(part.supporting for part in parts), sorted(part.contradicting for part in parts)
    return Evidence(min(1.0, (n - k + 1) * for_[k - 1]), min(1.0, k * against[n - k]))


def every(parts: Sequence[Evidence]) -> Evidence:
    """That all of these parts hold."""
    return at_least(len(parts), parts)


def some(parts: Sequence[Evidence]) -> Evidence:
    """That one of these parts holds, or more."""
    return at_least(1, parts)


def verdicts(evidence: Sequence[Evidence], level: float = LEVEL) -> list[str]:
    """Supported, contradicted or undecided, with Holm's correction over all of these claims."""
    results, order = ["undecided"] * len(evidence), sorted(range(len(evidence)), key=lambda k: evidence[k].p)
    for step, k in enumerate(order):
        if evidence[k].p > level / (len(evidence) - step):
            break
        results[k] = evidence[k].verdict
    return results
