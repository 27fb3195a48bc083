"""Verdicts on claims: supported, contradicted, undecided, or not run."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gpbench.claims import estimates, predicates
from gpbench.claims.definition import Claim, Clause
from gpbench.claims.estimates import Evidence
from gpbench.claims.predicates import Number
from gpbench.claims.selection import Runs, check_words, planned_runs, recorded_runs, select_runs, with_protocol
from gpbench.errors import ConfigError, nearest
from gpbench.experiments.definition import PRESETS
from gpbench.experiments.status import Cell
from gpbench.metrics import METRICS
from gpbench.records.record import Record

Planned = Callable[[str, str], Iterable[Cell]]
"""The cells of an experiment in a preset."""

VERDICTS = ("supported", "contradicted", "undecided", "not run")


@dataclass(frozen=True)
class Judged:
    """A clause with its numbers, and what they are evidence of."""

    clause: Clause
    numbers: Sequence[Number]
    evidence: Evidence

    @property
    def inside(self) -> int:
        """How many of the numbers lie in the region, whatever their errors."""
        low, high = self.clause.region
        return sum(low <= number.estimate.value <= high for number in self.numbers if number.estimate)

    @property
    def missing(self) -> int:
        """How many numbers have no runs."""
        return sum(number.estimate is None for number in self.numbers)


@dataclass(frozen=True)
class Verdict:
    """A claim with its verdict; `why` says why it was not run.

    `coverage` is the share of the planned runs that are recorded; None where the preset plans no such runs.
    """

    claim: Claim
    verdict: str
    preset: str = ""
    clauses: Sequence[Judged] = ()
    evidence: Evidence = estimates.NONE
    why: str = ""
    coverage: float | None = 0.0


def judge(
    claims: Sequence[Claim],
    records: Sequence[Record],
    planned: Planned,
    *,
    preset: str | None = None,
    protocol: str | None = None,
) -> list[Verdict]:
    """A verdict on each claim, with Holm's correction over those that could be judged.

    `planned` has the cells of an experiment in a preset, with their records.  Without a preset each claim has that of
    which a larger share is recorded, "full" where both have as much.
    Raises ConfigError for a claim that names unknown experiments, methods, data sets or metrics.
    """

    @cache
    def everything() -> list[Runs]:
        return recorded_runs(records)

    @cache
    def of_experiment(id: str, preset: str) -> Mapping[tuple[str, str], Runs]:
        return planned_runs(planned(id, preset))

    @cache
    def candidates(experiments: Sequence[str], preset: str) -> list[Runs]:
        runs: dict[tuple[str, str], Runs] = {}
        for id in experiments:  # a cell of several experiments has the keys of the first
            for key, of in of_experiment(id, preset).items():
                runs.setdefault(key, of)
        return list(runs.values())

    def one(claim: Claim) -> Verdict:
        if claim.reason:
            return Verdict(claim, "not run", why=claim.reason)
        runs = {name: candidates(claim.experiments, name) for name in PRESETS}
        if not claim.experiments:
            runs = {preset or "": everything()}
        _check(claim, [of for cells in runs.values() for of in cells])
        tried = {name: with_protocol(protocol, cells) for name, cells in runs.items() if preset in (None, name)}
        found = [_judge(claim, cells, name) for name, cells in tried.items()]
        best = max(found, key=_preference)
        return best if best.verdict != "not run" or best.why else replace(best, why=_command(claim, found))

    judged = [one(claim) for claim in claims]
    run = [k for k, verdict in enumerate(judged) if verdict.verdict != "not run"]
    for k, word in zip(run, estimates.verdicts([judged[k].evidence for k in run])):
        judged[k] = replace(judged[k], verdict=word)
    return judged


def _check(claim: Claim, runs: Sequence[Runs]) -> None:
    """Raises ConfigError for keys and values that no preset has; a size that one of them lacks is no error."""
    for k, clause in enumerate(claim.clauses, 1):
        for words in clause.sides.values() if runs else ():
            check_words(runs, words, f"{claim.name}, clause {k}")


def _judge(claim: Claim, runs: Sequence[Runs], preset: str) -> Verdict:
    """The evidence on a claim, as "undecided" before the correction; or "not run", with the reason."""
    selected = [{side: select_runs(runs, words) for side, words in clause.sides.items()} for clause in claim.clauses]
    if not all(of for sides in selected for of in sides.values()):
        return Verdict(claim, "not run", preset, why="no such runs are planned or recorded", coverage=None)
    not_run = Verdict(claim, "not run", preset, coverage=_coverage(selected))
    clauses: list[Judged] = []
    for k, (clause, sides) in enumerate(zip(claim.clauses, selected), 1):
        place = f"{claim.name}, clause {k}"
        numbers = predicates.numbers(clause, sides, place)
        recorded = [of for side in sides.values() for of in side if of.cell]
        known = {"seconds", "objective", "step_memory_mb"}.union(*(of.metrics for of in recorded))
        clauses.append(Judged(clause, numbers, _evidence(clause, numbers, place)))
        if recorded and clause.metric not in known:
            if clause.metric in METRICS:
                why = f"the runs were recorded without {clause.metric}{_again(claim, preset)}"
                return replace(not_run, clauses=clauses, why=why)
            raise ConfigError(f"{place}: no run has the metric {clause.metric!r}; {nearest(clause.metric, known)}")
        if clause.metric == "seconds" and len({machine for of in recorded for machine in of.machines}) > 1:
            why = f"seconds are of several machines{_again(claim, preset)}"
            return replace(not_run, clauses=clauses, why=why)
    if all(judged.missing == len(judged.numbers) for judged in clauses):
        return replace(not_run, clauses=clauses)
    evidence = (estimates.some if claim.any else estimates.every)([judged.evidence for judged in clauses])
    return replace(not_run, verdict="undecided", clauses=clauses, evidence=evidence)


def _evidence(clause: Clause, numbers: Sequence[Number], place: str) -> Evidence:
    """All rivals of a place, then `least` places of each value of `each`, then all of these values."""
    places: dict[tuple[str, ...], list[Evidence]] = {}
    for number in numbers:
        places.setdefault(number.place, []).append(_of_number(clause, number))
    groups: dict[tuple[str, ...], list[Evidence]] = {}
    for key, rivals in places.items():
        groups.setdefault(key[2 : 2 + len(clause.each)], []).append(estimates.every(rivals))
    return estimates.every([estimates.at_least(_least(clause, len(parts), place), parts) for parts in groups.values()])


def _least(clause: Clause, n: int, place: str) -> int:
    if clause.least is None:
        return n
    k = math.ceil(clause.least * n - 1e-9) if clause.least < 1 else int(clause.least)
    if k > n:
        raise ConfigError(f"{place}: least: {k} of {n} numbers; choose no more")
    return k


def _of_number(clause: Clause, number: Number) -> Evidence:
    if number.estimate is None:
        return estimates.NONE
    return Evidence(clause.region.p_inside(number.estimate), clause.region.p_outside(number.estimate))


def _coverage(selected: Sequence[Mapping[str, Sequence[Runs]]]) -> float:
    """The share of the planned runs of all clauses that are recorded."""
    of = [of for sides in selected for side in sides.values() for of in side]
    recorded = sum(len(cell.recorded) for cell in of)
    return recorded / max(1, recorded + sum(cell.missing for cell in of))


def _preference(verdict: Verdict) -> tuple[bool, bool, float, bool]:
    """Which preset is judged: one that plans the runs, with numbers, with more of its runs; the full one of equals.

    The quick one where neither has any runs.
    """
    share = verdict.coverage or 0.0
    return verdict.coverage is not None, verdict.verdict != "not run", share, share > 0 and verdict.preset == "full"


def _command(claim: Claim, tried: Sequence[Verdict]) -> str:
    """What makes the runs, with the preset where only one has them."""
    if not claim.experiments:
        return "no such runs are recorded: gpbench run"
    presets = [verdict.preset for verdict in tried if verdict.coverage is not None]
    option = f" --preset {presets[0]}" if presets == ["full"] else " [--preset full]" if len(presets) > 1 else ""
    return "; ".join(f"gpbench reproduce {id}{option}" for id in claim.experiments)


def _again(claim: Claim, preset: str) -> str:
    """What makes recorded runs anew."""
    option = "" if preset == PRESETS[0] else f" --preset {preset}"
    return "".join(f"; gpbench reproduce {id}{option} run.again=true" for id in claim.experiments)


def count(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """How many claims have each verdict."""
    return {word: sum(v.verdict == word for v in verdicts) for word in VERDICTS}
