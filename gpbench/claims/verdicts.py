"""Verdicts on claims: the grade of each, from recorded runs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gpbench.analysis.statistics import benjamini_hochberg
from gpbench.claims import numbers, selection
from gpbench.claims.definition import Claim, Clause
from gpbench.claims.estimates import NONE, SIDE, Evidence, at_least
from gpbench.claims.grades import SCALE, Judged
from gpbench.claims.selection import Key, KeyedCell, Number, ReadArrays, select_cells
from gpbench.errors import require_known
from gpbench.experiments.definition import PRESETS
from gpbench.experiments.plan import Cell
from gpbench.metrics import METRICS
from gpbench.own_metrics import COUNTED
from gpbench.records.record import Record

_Planned = Callable[[str, str], Iterable[Cell]]
"""Maps the id of an experiment and a preset to its planned cells with their records."""

_WORDS = [grade.word for grade in SCALE]


@dataclass(frozen=True)
class Verdict:
    """A claim with its grade."""

    claim: Claim
    word: str  # word of the grade (`gpbench.claims.grades.SCALE`)
    clauses: Sequence[Judged] = ()  # its clauses with their numbers
    decisive: int | None = None  # place of the clause whose grade the claim has; None where it has no runs
    evidence: Evidence = NONE  # evidence for the whole claim
    q: float = 1.0
    reason: str = ""  # reason for which the claim has no runs or is not here, or the tests that prove or refute it

    @property
    def decider(self) -> Judged | None:
        """The clause whose grade the claim has."""
        return None if self.decisive is None else self.clauses[self.decisive]

    @property
    def preset(self) -> str:
        """Presets of the runs, joined by "+"; "" without experiments."""
        presets = {number.preset for judged in self.clauses for number in judged.numbers if number.estimate}
        return "+".join(preset for preset in PRESETS if preset in presets)


def judge(
    claims: Sequence[Claim],
    records: Sequence[Record],
    planned: _Planned,
    *,
    preset: str | None = None,
    protocol: str | None = None,
    read: ReadArrays = lambda id: {},
) -> list[Verdict]:
    """Grades claims, by runs of the full preset, or of the quick one where these alone have a number or an error."""

    @cache
    def all_cells() -> list[KeyedCell]:
        return selection.recorded_cells([record for record in records if preset in (None, record.preset)], read)

    @cache
    def experiment_cells(id: str, preset: str) -> Mapping[tuple[str, str], KeyedCell]:
        return selection.planned_cells(planned(id, preset), read)

    def verdict_on(claim: Claim) -> Verdict:
        if claim.tests:
            return Verdict(claim, claim.shows, reason=", ".join(claim.tests))
        if not claim.clauses:
            return Verdict(claim, "not here" if claim.elsewhere else "not run", reason=claim.elsewhere or claim.reason)
        by_preset = {} if claim.experiments else {preset or "": all_cells()}
        for name in PRESETS if claim.experiments else ():
            cells: dict[tuple[str, str], KeyedCell] = {}
            for key, cell in (item for id in claim.experiments for item in experiment_cells(id, name).items()):
                cells.setdefault(key, cell)  # a cell of several experiments has the keys of the first
            by_preset[name] = [*cells.values()]
        every = [cell for cells in by_preset.values() for cell in cells]
        values = cache(lambda key: {cell.keys.get(key, "") for cell in every})
        for k, clause in enumerate(claim.clauses if every else (), 1):  # one preset may lack some keys and values
            other = clause if isinstance(clause.control, str) else clause.control
            for words in (*clause.sides.values(), *other.sides.values(), dict.fromkeys(clause.keys, selection.ANY)):
                selection.check_words(every, words, values, f"{claim.name}, clause {k}")
        of_protocol = lambda cell: protocol in (None, cell.keys.get("protocol"))
        return _verdict(claim, {k: [*filter(of_protocol, v)] for k, v in by_preset.items() if preset in (None, k)})

    judged = [verdict_on(claim) for claim in claims]
    tested = [k for k, verdict in enumerate(judged) if verdict.decisive is not None]
    for k, q in zip(tested, benjamini_hochberg([judged[k].evidence.p for k in tested])):
        judged[k] = replace(judged[k], q=q)
    return judged


def _verdict(claim: Claim, cells: Mapping[str, Sequence[KeyedCell]]) -> Verdict:
    """The verdict by the cells of each preset: that of the worst clause, or of the best where any is enough."""
    clauses = [_judged(claim, clause, cells, f"{claim.name}, clause {k}") for k, clause in enumerate(claim.clauses, 1)]
    n, any_ = len(clauses), claim.any
    # a union of n tests has n chances to err
    words = [clause.grade(SIDE / n if any_ else SIDE, SIDE if any_ else SIDE / n) for clause in clauses]
    known = [k for k, word in enumerate(words) if word != "not run"]
    if not known:
        reason = next((judged.reason for judged in clauses if judged.reason), "") or _command(claim, cells)
        word = "not here" if claim.elsewhere else "not run"
        return Verdict(claim, word, clauses, reason=claim.elsewhere or reason)
    decisive = (min if any_ else max)(known, key=lambda k: _WORDS.index(words[k]))
    word = words[decisive]
    if len(known) < n and not any_ and _WORDS.index(word) < _WORDS.index("leans for"):
        word = "leans for"  # a clause without runs may fail
    evidence = at_least(1 if any_ else n, [judged.evidence for judged in clauses])
    return Verdict(claim, word, clauses, decisive, evidence)


def _judged(claim: Claim, clause: Clause, by_preset: Mapping[str, Sequence[KeyedCell]], name: str) -> Judged:
    """The clause with the best recorded number for each of its keys; missing ones by the preset with most runs."""
    # one with an estimate, then with an error, then of the full preset
    has_error = lambda number: bool(number.estimate) and number.estimate.interval[0] > -math.inf
    preference = lambda number: (bool(number.estimate), has_error(number), number.preset == PRESETS[-1])
    best: dict[tuple[Key, str], Number] = {}
    is_of_arrays = clause.kind == "comparison" or clause.metric.is_of_arrays
    reasons, planned, shares = [], {}, {}
    for preset, cells in by_preset.items():
        sides = {side: select_cells(cells, words) for side, words in clause.sides.items()}
        if not all(sides.values()):
            continue
        reason = _unfit(clause, sides, name)
        fresh = [] if reason else numbers.numbers(clause, sides, name)
        if fresh and is_of_arrays and not any(number.estimate for number in fresh):
            reason = "the runs have no trace or kept array that shows it"
        reasons += [reason + _again(claim, preset)] if reason else []
        for number in fresh:
            if clause.metric.is_of_seconds and number.machines > 1 and not number.estimate:
                reasons.append(f"seconds are of several machines{_again(claim, preset)}")
            number, key = replace(number, preset=preset), (number.key, number.rival)
            other = best.setdefault(key, number)
            if number.estimate != other.estimate:  # runs that both presets have are the quick one's
                best[key] = max(other, number, key=preference)
        planned[preset] = {(number.key, number.rival) for number in fresh}
        of_clause = [cell for side in sides.values() for cell in side]
        recorded = sum(len(cell.recorded) for cell in of_clause)
        shares[preset] = recorded / max(1, recorded + sum(cell.missing for cell in of_clause))
    main = max(shares, key=lambda preset: (shares[preset], preset == PRESETS[-1]), default="")
    known = [number for key, number in best.items() if number.estimate or key in planned[main]]
    reason = reasons[0] if reasons else "" if shares else "no such runs are planned or recorded"
    control = None if isinstance(clause.control, str) else _judged(claim, clause.control, by_preset, f"{name}, control")
    return Judged(clause, known, name, reason, control)


def _unfit(clause: Clause, sides: Mapping[str, Sequence[KeyedCell]], name: str) -> str:
    """The reason for which recorded runs cannot judge the clause; "" where they can.  Raises ConfigError."""
    recorded = [cell for side in sides.values() for cell in side if cell.runs]
    metric = "" if clause.kind == "comparison" else clause.metric.recorded
    always = {"seconds", "objective", *COUNTED}
    if not recorded or not metric or metric in always or any(metric in cell.metrics for cell in recorded):
        return ""
    if metric not in METRICS:
        known = always.union(*(cell.metrics for cell in recorded))
        require_known(metric, known, f"{name}: no run has the metric {metric!r}")
    return f"the runs were recorded without {metric}"


def _command(claim: Claim, by_preset: Mapping[str, Sequence[KeyedCell]]) -> str:
    """The command that makes the runs, with the preset where only one has them."""
    if not claim.experiments:
        return "no such runs are recorded: gpbench run"
    presets = [
        preset
        for preset, cells in by_preset.items()
        if all(select_cells(cells, words) for clause in claim.clauses for words in clause.sides.values())
    ]
    option = f" --preset {presets[0]}" if presets == ["full"] else " [--preset full]" if len(presets) > 1 else ""
    return "; ".join(f"gpbench reproduce {id}{option}" for id in claim.experiments)


def _again(claim: Claim, preset: str) -> str:
    """The command that makes recorded runs anew."""
    option = "" if preset == PRESETS[0] else f" --preset {preset}"
    return "".join(f"; gpbench reproduce {id}{option} run.again=true" for id in claim.experiments)


def count(verdicts: Sequence[Verdict]) -> Mapping[str, int]:
    """The number of claims with each grade, in the order of the scale."""
    return {grade.word: sum(v.word == grade.word for v in verdicts) for grade in SCALE}
