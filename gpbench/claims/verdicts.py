"""Verdicts on claims: supported, contradicted, undecided, or not run."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gpbench.claims import estimates, predicates
from gpbench.claims.definition import Claim, Clause
from gpbench.claims.estimates import Evidence
from gpbench.claims.predicates import Number
from gpbench.claims.scale import SCALE
from gpbench.claims.selection import KeyedCell, check_words, planned_cells, recorded_cells, select_cells
from gpbench.errors import ConfigError, nearest
from gpbench.experiments.definition import PRESETS
from gpbench.experiments.status import Cell
from gpbench.metrics import METRICS
from gpbench.own_metrics import COUNTED
from gpbench.records.record import Record

_Planned = Callable[[str, str], Iterable[Cell]]
"""Maps the id of an experiment and a preset to its planned cells with their records."""


@dataclass(frozen=True)
class Judged:
    """A clause with its numbers, and the evidence that they are."""

    clause: Clause
    numbers: Sequence[Number]
    evidence: Evidence

    @property
    def inside(self) -> int:
        """Number of estimates that lie in the region, whatever their errors."""
        low, high = self.clause.region
        return sum(low <= number.estimate.value <= high for number in self.numbers if number.estimate)

    @property
    def missing(self) -> int:
        """Number of numbers without runs."""
        return sum(number.estimate is None for number in self.numbers)


@dataclass(frozen=True)
class Verdict:
    """A claim with its verdict.

    Args:
        claim: The claim.
        verdict: A word of SCALE.
        preset: Preset of the runs; "" without experiments.
        clauses: Its clauses with their numbers.
        evidence: Evidence for the whole claim.
        reason: Reason for which the claim was not run or is not here, or the tests that prove or refute it.
        coverage: Share of the planned runs that are recorded; None where the preset plans no such runs.
    """

    claim: Claim
    verdict: str
    preset: str = ""
    clauses: Sequence[Judged] = ()
    evidence: Evidence = estimates.NONE
    reason: str = ""
    coverage: float | None = 0.0


def judge(
    claims: Sequence[Claim],
    records: Sequence[Record],
    planned: _Planned,
    *,
    preset: str | None = None,
    protocol: str | None = None,
) -> list[Verdict]:
    """Judges claims: supported, contradicted, undecided or not run, with Holm's correction over those that were run.

    Args:
        claims: Claims of one file.
        records: Recorded runs, for claims without experiments.
        planned: Function that returns the cells of an experiment in a preset, with their records.
        preset: Preset to judge; by default for each claim that of which a larger share is recorded, "full" of equals.
        protocol: Only runs under this protocol; None for all.

    Raises:
        ConfigError: A claim names unknown experiments, methods, data sets or metrics.
    """

    @cache
    def all_cells() -> list[KeyedCell]:
        return recorded_cells(records)

    @cache
    def experiment_cells(id: str, preset: str) -> Mapping[tuple[str, str], KeyedCell]:
        return planned_cells(planned(id, preset))

    @cache
    def candidates(experiments: Sequence[str], preset: str) -> list[KeyedCell]:
        cells: dict[tuple[str, str], KeyedCell] = {}
        for id in experiments:
            for key, cell in experiment_cells(id, preset).items():
                cells.setdefault(key, cell)  # a cell of several experiments has the keys of the first
        return list(cells.values())

    def verdict_on(claim: Claim) -> Verdict:
        if claim.tests:
            return Verdict(claim, "proved" if claim.proves else "refuted", reason=", ".join(claim.tests))
        if not claim.clauses:
            return Verdict(claim, "not here" if claim.elsewhere else "not run", reason=claim.elsewhere or claim.reason)
        by_preset = {name: candidates(claim.experiments, name) for name in PRESETS}
        if not claim.experiments:
            by_preset = {preset or "": all_cells()}
        _check(claim, [cell for cells in by_preset.values() for cell in cells])
        compared = {
            name: [cell for cell in cells if protocol in (None, cell.keys.get("protocol"))]
            for name, cells in by_preset.items()
            if preset in (None, name)
        }
        verdicts = [_judge(claim, cells, name) for name, cells in compared.items()]
        best = max(verdicts, key=_preference)
        if best.verdict == "not run" and claim.elsewhere:
            return replace(best, verdict="not here", reason=claim.elsewhere)
        if best.verdict != "not run" or best.reason:
            return best
        return replace(best, reason=_command(claim, verdicts))

    judged = [verdict_on(claim) for claim in claims]
    run = [k for k, verdict in enumerate(judged) if verdict.verdict == "undecided"]
    for k, word in zip(run, estimates.verdicts([judged[k].evidence for k in run])):
        judged[k] = replace(judged[k], verdict=word)
    return judged


def _check(claim: Claim, cells: Sequence[KeyedCell]) -> None:
    """Checks that some preset has the keys and values of a claim; one preset may lack some of them."""
    for k, clause in enumerate(claim.clauses, 1):
        for words in clause.sides.values() if cells else ():
            check_words(cells, words, f"{claim.name}, clause {k}")


def _judge(claim: Claim, cells: Sequence[KeyedCell], preset: str) -> Verdict:
    """The evidence on a claim, "undecided" before the correction; or "not run", with the reason where there is one."""
    selected = [{side: select_cells(cells, words) for side, words in clause.sides.items()} for clause in claim.clauses]
    if not all(side for sides in selected for side in sides.values()):
        return Verdict(claim, "not run", preset, reason="no such runs are planned or recorded", coverage=None)
    not_run = Verdict(claim, "not run", preset, coverage=_coverage(selected))
    clauses: list[Judged] = []
    for k, (clause, sides) in enumerate(zip(claim.clauses, selected), 1):
        name = f"{claim.name}, clause {k}"
        numbers = predicates.numbers(clause, sides, name)
        recorded = [cell for side in sides.values() for cell in side if cell.runs]
        known = {"seconds", "objective", *COUNTED}.union(*(cell.metrics for cell in recorded))
        clauses.append(Judged(clause, numbers, _evidence(clause, numbers, name)))
        if recorded and clause.metric not in known:
            if clause.metric in METRICS:
                reason = f"the runs were recorded without {clause.metric}{_again(claim, preset)}"
                return replace(not_run, clauses=clauses, reason=reason)
            raise ConfigError(f"{name}: no run has the metric {clause.metric!r}; {nearest(clause.metric, known)}")
        if clause.metric == "seconds" and len({machine for cell in recorded for machine in cell.machines}) > 1:
            reason = f"seconds are of several machines{_again(claim, preset)}"
            return replace(not_run, clauses=clauses, reason=reason)
    if all(judged.missing == len(judged.numbers) for judged in clauses):
        return replace(not_run, clauses=clauses)
    evidence = estimates.at_least(1 if claim.any else len(clauses), [judged.evidence for judged in clauses])
    return replace(not_run, verdict="undecided", clauses=clauses, evidence=evidence)


def _evidence(clause: Clause, numbers: Sequence[Number], name: str) -> Evidence:
    """Evidence for a clause: against all rivals, for `least` keys of each value of `each`, and all these values."""
    by_key: dict[tuple[str, ...], list[Evidence]] = {}
    for number in numbers:
        evidence = clause.region.evidence(number.estimate) if number.estimate else estimates.NONE
        by_key.setdefault(number.key, []).append(evidence)
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for key, rivals in by_key.items():
        groups.setdefault(key[2 : 2 + len(clause.each)], []).append(estimates.every(rivals))
    return estimates.every([estimates.at_least(_least(clause, len(terms), name), terms) for terms in groups.values()])


def _least(clause: Clause, n: int, name: str) -> int:
    """The least number of n terms that must hold."""
    if clause.least is None:
        return n
    k = math.ceil(clause.least * n - 1e-9) if clause.least < 1 else int(clause.least)
    if k > n:
        raise ConfigError(f"{name}: least: {k} of {n} numbers; choose no more")
    return k


def _coverage(selected: Sequence[Mapping[str, Sequence[KeyedCell]]]) -> float:
    """The share of the planned runs of all clauses that are recorded."""
    cells = [cell for sides in selected for side in sides.values() for cell in side]
    recorded = sum(len(cell.recorded) for cell in cells)
    return recorded / max(1, recorded + sum(cell.missing for cell in cells))


def _preference(verdict: Verdict) -> tuple[bool, bool, float, bool]:
    """The order in which presets are preferred.

    A preset that plans the runs comes before one that does not, then one with numbers, then the larger share of
    recorded runs, then the full preset, if it has runs.
    """
    share = verdict.coverage or 0.0
    return verdict.coverage is not None, verdict.verdict != "not run", share, share > 0 and verdict.preset == "full"


def _command(claim: Claim, verdicts: Sequence[Verdict]) -> str:
    """The command that makes the runs, with the preset where only one has them."""
    if not claim.experiments:
        return "no such runs are recorded: gpbench run"
    presets = [verdict.preset for verdict in verdicts if verdict.coverage is not None]
    option = f" --preset {presets[0]}" if presets == ["full"] else " [--preset full]" if len(presets) > 1 else ""
    return "; ".join(f"gpbench reproduce {id}{option}" for id in claim.experiments)


def _again(claim: Claim, preset: str) -> str:
    """The command that makes recorded runs anew."""
    option = "" if preset == PRESETS[0] else f" --preset {preset}"
    return "".join(f"; gpbench reproduce {id}{option} run.again=true" for id in claim.experiments)


def count(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """The number of claims with each verdict, in the order of SCALE.

    Args:
        verdicts: The verdicts.
    """
    return {grade.word: sum(v.verdict == grade.word for v in verdicts) for grade in SCALE}
