"""Grades of clauses and their scale: how many numbers lie where a clause says, and for how many the errors show it.

A *cell* of a clause is a number.  Where a clause has a quota (`least`) and several rivals, a cell is the numbers
against all of them, and lies where the worst of them lies.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpbench.analysis.grouping import gather
from gpbench.claims import estimates
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import INSIDE, NONE, SIDE, Estimate, Evidence
from gpbench.claims.selection import Number
from gpbench.errors import ConfigError


class _Grade(NamedTuple):
    """A word of the scale of grades, and how it is drawn."""

    word: str  # the grade
    tone: str  # name of its style on the site: "good", "bad", "open" or "none"
    colour: str  # its colour in pictures and on badges, under white text
    meaning: str  # what it says of a clause


SCALE = (
    _Grade("proved", "good", "#1f5137", "tests of gpbench prove it"),
    _Grade("holds", "good", "#2c6e49", "as many cells as it asks for are shown to lie where it says"),
    _Grade(
        "mostly holds",
        "good",
        "#557a2b",
        "four fifths of these lie there, no more are shown to lie elsewhere than it spares and a tenth of these, and"
        " half, or their mean, to lie there",
    ),
    _Grade("leans for", "open", "#8a6d1f", "four fifths lie there, but errors are unknown or too large to show it"),
    _Grade("mixed", "open", "#8a5a1f", "the cells disagree"),
    _Grade("leans against", "open", "#8f5220", "a fifth or fewer lie there, but errors are unknown or too large"),
    _Grade(
        "fails",
        "bad",
        "#a8471c",
        "more than half are shown to lie elsewhere, or a fifth or fewer lie there and too many are shown not to",
    ),
    _Grade("refuted", "bad", "#7c3010", "tests of gpbench refute it"),
    _Grade("not run", "none", "#6b7280", "no runs are recorded"),
    _Grade("not here", "none", "#6b7280", "the runs need another machine, or data that need a download"),
)
"""The scale of grades, from best to worst, in the order in which counts are shown."""


def badge_grade(words: Sequence[str]) -> _Grade:
    """The grade whose colour a badge of claims has: green only where all that was judged at least mostly holds."""
    judged = [grade for grade in SCALE if grade.word in words and grade.tone != "none"]
    return next((grade for tone in ("bad", "open", "good") for grade in judged if grade.tone == tone), SCALE[-1])


_MOST, _FEW, _TENTH, _HALF = 0.8, 0.2, 0.1, 0.5
"""Shares of the quota: that mostly holds, that fails, that may be shown outside, and that must be shown inside."""


class Counts(NamedTuple):
    """Numbers of cells by position (`gpbench.claims.estimates`), and of those without runs."""

    inside: int
    leaning_in: int
    leaning_out: int
    outside: int
    missing: int

    @property
    def known(self) -> int:
        """Number of cells with runs."""
        return sum(self) - self.missing

    @property
    def claimed(self) -> int:
        """Number of cells whose values lie in the region, whatever their errors."""
        return self.inside + self.leaning_in


class _Group(NamedTuple):
    """Cells that are judged together."""

    least: int  # how many of the cells must lie in the region
    cells: Sequence[Sequence[Number]]
    positions: Sequence[int]  # positions of the cells with runs

    @property
    def quota(self) -> int:
        """How many of the cells with runs must lie in the region."""
        return min(self.least, len(self.positions))


@dataclass(frozen=True)
class Judged:
    """A clause with its numbers."""

    clause: Clause
    numbers: Sequence[Number]  # its numbers; without estimates where runs are missing
    name: str = ""  # name of the clause, for messages
    reason: str = ""  # reason for which it has no estimates

    @cached_property
    def groups(self) -> list[_Group]:
        """The cells of each value of `each`."""
        numbers = enumerate(self.numbers)
        cells = gather((k if self.clause.least is None else number.key, number) for k, number in numbers)
        by_value = gather((rivals[0].key[2 : 2 + len(self.clause.each)], rivals) for rivals in cells.values())
        groups, least, position = [], self.clause.least, self.clause.region.position
        for group in by_value.values():
            n = len(group)
            k = n if least is None else math.ceil(least * n - 1e-9) if least < 1 else int(least)
            if k > n:
                raise ConfigError(f"{self.name}: least: {k} of {n} numbers; choose no more")
            known = [[number.estimate for number in rivals if number.estimate] for rivals in group]
            groups.append(_Group(k, group, [max(map(position, some)) for some in known if some]))
        return groups

    @cached_property
    def evidence(self) -> Evidence:
        """Evidence for the clause: against all rivals, for the quota of cells, and for every value of `each`."""
        evidence = lambda number: self.clause.region.evidence(number.estimate) if number.estimate else NONE
        by_cell = lambda group: [estimates.every([*map(evidence, rivals)]) for rivals in group.cells]
        return estimates.every([estimates.at_least(group.least, by_cell(group)) for group in self.groups])

    @cached_property
    def counts(self) -> Counts:
        """The numbers of cells by position."""
        positions = [position for group in self.groups for position in group.positions]
        n = sum(len(group.cells) for group in self.groups)
        inside, leaning_in, leaning_out, outside = (positions.count(k) for k in range(4))
        return Counts(inside, leaning_in, leaning_out, outside, n - len(positions))

    @property
    def quota(self) -> int:
        """The number of cells with runs that must lie in the region."""
        return sum(group.quota for group in self.groups)

    @cached_property
    def effect(self) -> Estimate | None:
        """The mean over data sets of their numbers, with an error between data sets; a single number as it is."""
        known = [(number.key[0], number.estimate) for number in self.numbers if number.estimate]
        by_set = gather((name, estimate.value) for name, estimate in known)
        return known[0][1] if len(known) == 1 else estimates.clustered(by_set)

    def grade(self, level: float = SIDE, level_against: float = SIDE) -> str:
        """The grade of the clause (`SCALE`); "not run" without estimates."""
        counts, quota = self.counts, self.quota
        if not counts.known:
            return "not run"
        if self.evidence.supporting <= level:
            return "holds"

        def share(last: int) -> float:
            """The share of the quota that is met by the cells of positions up to this one."""
            met = (min(group.quota, sum(k <= last for k in group.positions)) for group in self.groups)
            return sum(met) / max(1, quota)

        claimed, certain = share(estimates.LEANS_IN), share(INSIDE)
        spare, mean = counts.known - quota, None
        if self.effect and counts.known > 1 and quota > _HALF * counts.known:  # the mean says nothing of a few of many
            mean = self.clause.region.position(self.effect)
        if claimed >= _MOST and counts.outside <= spare + _TENTH * quota:
            return "mostly holds" if certain >= _HALF or mean == INSIDE else "leans for"
        if counts.outside > max(spare, _HALF * counts.known):
            return "fails"
        if claimed <= _FEW:
            excluded = self.evidence.contradicting <= level_against or mean == estimates.OUTSIDE
            return "fails" if excluded else "leans against"
        return "mixed"

    @property
    def one_split(self) -> bool:
        """Whether numbers are of single splits: without an error, or with that over test rows given the model."""
        known = [number.estimate for number in self.numbers if number.estimate and self.clause.kind != "rank"]
        return any(estimate.n == 1 and estimate.source in ("splits", "rows") for estimate in known)
