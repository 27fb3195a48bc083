"""Reproductions: recorded numbers beside printed ones, in the papers' tables; and their counts by paper."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis.agreement import exclusion, outcome
from gpbench.analysis.cells import Entry
from gpbench.errors import GpbenchError
from gpbench.experiments import definition, plan
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.papers.published import Published
from gpbench.records.record import Record

_OUTCOMES = ("equal", "better", "worse")  # outcomes beside a target, in the order in which they are shown

_PlannedCells = tuple[Experiment, str, Sequence[Cell]]
"""An experiment, a preset, and the preset's cells with their records."""


@dataclass(frozen=True)
class Reproduction:
    """A recorded number beside a printed one, at its place in an experiment's table."""

    experiment: str  # id of the experiment
    preset: str  # preset of its runs
    block: str
    row: str
    column: str
    entry: Entry  # the entry: our mean and standard error, the published value, and their difference
    published: Published  # the published value

    @property
    def paper(self) -> str:
        return self.published.source

    @property
    def number(self) -> tuple:
        """The printed number, whatever tables of ours have it."""
        cell, printed = self.entry.cell, self.published
        source = (printed.source, printed.table, printed.value)
        return (*source, cell.dataset, cell.output, cell.method, printed.setting, self.entry.metric)

    @property
    def exclusion(self) -> str:
        return exclusion(self.entry) or ("our runs are of the quick preset" if self.preset == "quick" else "")

    @property
    def outcome(self) -> str:
        word = outcome(self.entry)
        return "different" if self.exclusion and word in ("better", "worse") else word

    @property
    def location(self) -> str:
        """The place of the number in words, as in "sep/table1, pima, sep-15%: nll"."""
        return f"{', '.join(filter(None, [self.experiment, self.row, self.column]))}: {self.entry.metric}"


def reproductions(planned: Iterable[_PlannedCells]) -> list[Reproduction]:
    """Every recorded entry with a published value, in the tables of these experiments.  A published number counts once:
    at its place in the first table that has it.
    """
    by_number: dict[tuple, Reproduction] = {}
    for experiment, preset, cells in planned:
        if not any(cell.records for cell in cells) or (experiment.table or {}).get("kind", "values") != "values":
            continue
        for block in experiment_tables.table_blocks(experiment, cells) if experiment.table else ():
            for row, entries in block.rows.items():
                for column, entry in entries.items():
                    if (printed := entry.published) and entry.mean is not None:
                        reproduction = Reproduction(experiment.id, preset, block.title, row, column, entry, printed)
                        by_number.setdefault(reproduction.number, reproduction)
    return [*by_number.values()]


def load_reproductions(records: Sequence[Record], config_dirs: Sequence[Path] = ()) -> list[Reproduction]:
    """The reproductions of all experiments, each in its `recorded_presets`."""
    by_id = {record.id: record for record in records}
    planner = plan.Planner(config_dirs)
    experiments = [definition.read(id, config_dirs) for id in definition.names(config_dirs)]
    return reproductions(planned for e in experiments for planned in recorded_presets(e, by_id, planner, config_dirs))


def recorded_presets(
    experiment: Experiment, by_id: Mapping[str, Record], planner: plan.Planner, config_dirs: Sequence[Path] = ()
) -> list[_PlannedCells]:
    """The full preset of an experiment, and then the quick one, each where it has runs that none before it has.  Quick
    runs that the full preset has too, such as the first 5 of 20 splits, are runs of the full preset.
    """
    planned: list[_PlannedCells] = []
    known: set[str] = set()
    for preset in reversed(definition.PRESETS):
        try:
            cells = plan.plan(experiment, preset, config_dirs, by_id, planner)
        except GpbenchError:  # its data are not at hand, or the preset is not defined
            continue
        ids = {record.id for cell in cells for record in cell.records}
        if ids - known:
            planned.append((experiment, preset, cells))
        known |= ids
    return planned


@dataclass(frozen=True)
class PaperSummary:
    """Counts of one paper: its numbers with ours beside them, targets by outcome, and claims by verdict."""

    paper: str
    numbers: int  # number of printed numbers with one of ours beside them
    outcomes: Mapping[str, int]  # number of targets by outcome, equal, better, worse
    claims: Mapping[str, int] = field(default_factory=dict)  # number of claims by verdict; empty where none was judged

    @property
    def targets(self) -> int:
        return sum(self.outcomes.values())

    @property
    def met(self) -> int:
        return self.targets - self.outcomes["worse"]


def summaries(
    compared: Sequence[Reproduction], claims: Mapping[str, Mapping[str, int]] | None = None
) -> list[PaperSummary]:
    """Counts by paper, in the order of the reproductions; papers with claims only come last."""
    claims = claims or {}
    papers = dict.fromkeys([*(ours.paper for ours in compared), *claims])
    numbers = {paper: [ours for ours in compared if ours.paper == paper] for paper in papers}
    targets = {paper: [c.outcome for c in own if not c.exclusion] for paper, own in numbers.items()}
    outcomes = {paper: {name: words.count(name) for name in _OUTCOMES} for paper, words in targets.items()}
    return [PaperSummary(paper, len(numbers[paper]), outcomes[paper], claims.get(paper, {})) for paper in papers]
