"""What the start page says first: our values beside the published ones, and the best method of each data set."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpbench.analysis.cells import Entry
from gpbench.metrics import better

AGREES = 2.0
"""Joint standard errors within which our value and the published one agree."""


@dataclass(frozen=True)
class Agreement:
    """How many of our values of one paper agree with the published ones, are better, or are worse."""

    paper: str
    agree: int
    better: int
    worse: int

    @property
    def n(self) -> int:
        """How many values can be compared."""
        return self.agree + self.better + self.worse


def agreements(entries: Sequence[Entry]) -> list[Agreement]:
    """A count for each paper, over published values that are targets and differences with a standard error."""
    counts: dict[str, list[int]] = {}
    for entry in entries:
        if (
            entry.published
            and entry.published.is_target
            and entry.delta_se is not None
            and (way := better(entry.metric))
        ):
            gain = entry.delta_se if way == "higher" else -entry.delta_se
            of = counts.setdefault(entry.published.source, [0, 0, 0])
            of[0 if abs(gain) <= AGREES else 1 if gain > 0 else 2] += 1
    return [Agreement(paper, *of) for paper, of in counts.items()]


def best(marked: Sequence[Entry]) -> list[Entry]:
    """The entries that are marked as the best of their data set, split set and metric, without those of seconds."""
    return [entry for entry in marked if entry.mark == "best"]
