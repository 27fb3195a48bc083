"""Reproductions: recorded numbers beside printed ones, in the papers' tables; and counts of targets."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpbench.analysis import experiment as experiment_tables
from gpbench.analysis.agreement import exclusion, headline, outcome, rivals_meet
from gpbench.analysis.cells import Entry
from gpbench.analysis.grouping import gather
from gpbench.errors import GpbenchError
from gpbench.experiments import definition, plan
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.papers.published import Published
from gpbench.records.record import Record

_PlannedCells = tuple[Experiment, str, Sequence[Cell]]
"""An experiment, a preset, and the preset's cells with their records."""


@dataclass(frozen=True)
class Reproduction:
    """A recorded number beside a printed one, at its place in an experiment's table."""

    experiment: str  # id of the experiment
    preset: str  # preset of its runs
    row: str
    column: str
    entry: Entry  # the entry: our mean and standard error, the published value, and their difference
    published: Published  # the published value
    rivals: Sequence[bool] = ()  # whether each other value of the table on the same rows meets the published one

    @property
    def paper(self) -> str:
        return self.published.source

    @property
    def number(self) -> tuple:
        """The printed number, whatever tables of ours have it."""
        cell, printed = self.entry.cell, self.published
        own = (cell.dataset, cell.output, cell.method, printed.setting, self.entry.metric)
        return (printed.source, printed.table, printed.value, *own)

    @property
    def exclusion(self) -> str:
        return exclusion(self.entry) or ("our runs are of the quick preset" if self.preset == "quick" else "")

    @property
    def outcome(self) -> str:
        word = outcome(self.entry)
        return "different" if self.exclusion and word in ("better", "worse") else word

    @property
    def informative(self) -> bool:
        """True for a target that some rivals of the table could meet, and none does."""
        return not self.exclusion and not max(self.rivals, default=True)


def reproductions(planned: Iterable[_PlannedCells]) -> list[Reproduction]:
    """Every recorded entry with a published value, each number once: in the first table that has it."""
    places = [
        (experiment.id, preset, row, column, entry)
        for experiment, preset, cells in planned
        if (experiment.table or {"kind": ""}).get("kind", "values") == "values" and any(cell.records for cell in cells)
        for block in experiment_tables.table_blocks(experiment, cells)
        for row, entries in block.rows.items()
        for column, entry in entries.items()
    ]
    every = gather((id, entry) for id, *_, entry in places)  # of all presets
    by_number: dict[tuple, Reproduction] = {}
    for id, preset, row, column, entry in places:
        if (printed := entry.published) and entry.mean is not None:
            meet = () if exclusion(entry) else rivals_meet(entry, every[id])
            ours = Reproduction(id, preset, row, column, entry, printed, meet)
            by_number.setdefault(ours.number, ours)
    return [*by_number.values()]


def load_reproductions(records: Sequence[Record], config_dirs: Sequence[Path] = ()) -> list[Reproduction]:
    """The reproductions of all experiments, each in its `recorded_presets`."""
    by_id = {record.id: record for record in records}
    planner = plan.Planner(config_dirs)
    experiments = [definition.read(id, config_dirs) for id in definition.names(config_dirs)]
    return reproductions(planned for e in experiments for planned in recorded_presets(e, by_id, planner))


def recorded_presets(experiment: Experiment, by_id: Mapping[str, Record], planner: plan.Planner) -> list[_PlannedCells]:
    """The full preset of an experiment, and then the quick one, each where it has runs that none before it has."""
    planned: list[_PlannedCells] = []
    known: set[str] = set()
    for preset in reversed(definition.PRESETS):
        try:
            cells = plan.plan(experiment, preset, planner, by_id)
        except GpbenchError:  # its data are not at hand, or the preset is not defined
            continue
        ids = {record.id for cell in cells for record in cell.records}
        if ids - known:
            planned.append((experiment, preset, cells))
        known |= ids
    return planned


def outcomes(compared: Iterable[Reproduction]) -> Counter[str]:
    """The numbers of targets by outcome."""
    return Counter(ours.outcome for ours in compared if not ours.exclusion)


def total(compared: Sequence[Reproduction]) -> str:
    """The targets of these numbers in words (`headline`)."""
    return headline(outcomes(compared), sum(ours.informative for ours in compared))
