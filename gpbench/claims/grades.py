"""Grades of clauses and their scale.  A *cell* of a clause is a number; with a quota (`least`) the numbers against all
rivals, of which the worst counts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
        "mostly holds", "good", "#557a2b", "four fifths do, few are shown not to, and half, or the mean, are shown to"
    ),
    _Grade("leans for", "open", "#8a6d1f", "four fifths lie there, but errors and a control do not show it"),
    _Grade("mixed", "open", "#8a5a1f", "the cells disagree, a margin of ours decides, or chance would do as well"),
    _Grade("leans against", "open", "#8f5220", "a fifth or fewer lie there, but errors and a control do not show it"),
    _Grade(
        "fails", "bad", "#a8471c", "more than half are shown to lie elsewhere, or nearly all do and some are shown to"
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


_PLACES = {grade.word: k - 4 for k, grade in enumerate(SCALE)}  # around "mixed": below 0 for a claim, above 0 against
_WEAKER = {"holds": "leans for", "mostly holds": "leans for", "fails": "leans against"}
_MOST, _FEW, _TENTH, _HALF = 0.8, 0.2, 0.1, 0.5
"""Shares of the quota: that mostly holds, that fails, that may be shown outside, and that must be shown inside."""
_ERROR = 0.317  # two-sided p-value of one standard error, within which a single number leans to neither side


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
    control: "Judged | None" = None  # the same about runs that must not lie there

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
        """The grade of the clause (`SCALE`); "not run" without estimates.  Of half, of once and of
        twice a margin of ours it is the mildest, and mixed where these turn it.  It leans at most where it rests on
        one split, or where no control comes out on its other side."""
        words = [self._grade(level, level_against), *(varied._grade(level, level_against) for varied in self._varied)]
        places = [_PLACES[word] for word in words]
        if min(places) * max(places) <= 0 or self._is_chance:
            return "mixed"
        word = min(words, key=lambda word: abs(_PLACES[word]))
        is_weak = self.control_fault or (self.one_split and not self.clause.split_ratio)
        return _WEAKER.get(word, word) if is_weak else word

    @property
    def caveat(self) -> str:
        """Why the grade is not that of the clause's own margin."""
        half, twice = [varied._grade() for varied in self._varied] or ("mixed", "mixed")
        reasons = {
            f"{half} with half of our margin, {twice} with twice": _PLACES[half] * _PLACES[twice] <= 0
            and half != twice,
            "no more than chance": self._is_chance,
            self.control_fault: self._grade() in _WEAKER,
        }
        texts = [reason for reason, applies in reasons.items() if reason and applies]
        return "; ".join(texts) or ("the cells disagree" if self.grade() == "mixed" else "")

    @property
    def control_fault(self) -> str:
        """Why nothing shows that the clause can come out on its other side; "" where a control does."""
        if self.control is None or not self.control.counts.known:
            words = self.clause.control
            return "" if isinstance(words, str) and words and not words.startswith("none") else "no control"
        side, other = _PLACES[self._grade()], _PLACES[self.control.grade()]
        if not other:
            return "its control is mixed"
        return "" if side * other <= 0 else "its control lies there too" if side < 0 else "nor does its control"

    @property
    def _is_chance(self) -> bool:
        """Whether a single number is within one standard error of an end, or the best of many are there by chance."""
        known = [number.estimate for number in self.numbers if number.estimate]
        if len(known) == 1:
            return known[0].interval[0] > -math.inf and self.clause.region.evidence(known[0]).p > _ERROR
        has_error = any(estimate.interval[0] > -math.inf for estimate in known)
        return has_error and self.quota <= _HALF * self.counts.known and self.evidence.p > _ERROR

    @property
    def _varied(self) -> "Sequence[Judged]":
        """The clause with half and with twice its margin, where this is ours."""
        factors = () if self.clause.margin_from is None else (0.5, 2.0)
        return [replace(self, clause=self.clause.with_margin(factor)) for factor in factors]

    def _grade(self, level: float = SIDE, level_against: float = SIDE) -> str:
        """The grade at the clause's own margin, by all errors that are known."""
        counts, quota = self.counts, self.quota
        if not counts.known:
            return "not run"
        if self.evidence.supporting <= level:
            return "holds"
        met = lambda last: sum(min(group.quota, sum(k <= last for k in group.positions)) for group in self.groups)
        claimed = met(estimates.LEANS_IN) / max(1, quota)
        certain = met(INSIDE) / max(1, sum(group.least for group in self.groups))  # of all that it asks for, run or not
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
        known = (number.estimate for number in self.numbers if number.estimate)
        return any(estimate.n == 1 and estimate.source in ("splits", "rows") for estimate in known)
