"""The input of the site: records, experiments with their recorded runs, cards and descriptions."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.analysis.cells import CellRuns, Entry, cell_key, entries, group_runs
from gpbench.analysis.grouping import gather
from gpbench.analysis.leaderboard import BoardRuns
from gpbench.analysis.printing import natural
from gpbench.analysis.reproduction import Reproduction, reproductions
from gpbench.claims.definition import Claim
from gpbench.claims.selection import ReadArrays
from gpbench.claims.verdicts import Verdict, judge
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.papers import PAPERS, published
from gpbench.records.record import Record

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment in one preset: its cells with their records, or the `problem` that keeps it from being planned."""

    experiment: Experiment
    preset: str
    cells: Sequence[Cell] = ()
    problem: str = ""

    @property
    def n_runs(self) -> int:
        return sum(len(cell.splits) for cell in self.cells)

    @property
    def n_recorded(self) -> int:
        return self.n_runs - sum(len(cell.missing) for cell in self.cells)


@dataclass(frozen=True)
class Facts:
    """The content of the site."""

    records: Sequence[Record]  # records of all runs, each once
    planned: Sequence[PlannedExperiment]  # all experiments in all presets
    cards: Mapping[str, Mapping[str, Any]]  # cards of data sets by name
    methods: Mapping[str, str]  # descriptions of methods by name
    verdicts: Mapping[str, Sequence[Verdict]]  # verdicts on claims by paper
    trace: "Callable[[str], dict[str, np.ndarray]]"  # function that maps the id of a record to its arrays
    config: Callable[[str], str]  # function that maps the id of a record to the text of its configuration
    figures: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    boards: Sequence[BoardRuns] = ()  # of the divisions that have runs
    shipped: Collection[tuple[str, str | None]] = ()  # ids and times of the runs that ship with gpbench
    folders: Sequence[Path] = ()  # the user's folders with cards
    docs: str = ""  # address of the documentation from the site's root; "" for no link

    @cached_property
    def cells(self) -> list[CellRuns]:
        """All cells; runs of several presets share a cell.  A label tells a cell from others of its data set."""
        groups = gather((record.dataset, record) for record in self.records)
        return [cell for name in sorted(groups, key=natural) for cell in group_runs(groups[name])]

    @cached_property
    def entries(self) -> list[Entry]:
        """Entries of all cells by their default metrics, then by error and seconds where they have these."""
        more = [entry for metric in ("error", "seconds") for entry in entries(self.cells, [metric]) if entry.n_splits]
        return entries(self.cells) + more

    @cached_property
    def page_of(self) -> dict[str, str]:
        """The page of each record's cell, by the record's id."""
        return {record.id: cell_page(cell) for cell in self.cells for record in cell.records}

    @cached_property
    def n_runs(self) -> dict[str, Counter[str]]:
        """Numbers of runs by value of each of the fields method, data set and status."""
        return {name: Counter(getattr(r, name) for r in self.records) for name in ("method", "dataset", "status")}

    @cached_property
    def datasets(self) -> list[str]:
        """Data sets with a card or a record."""
        return sorted({*self.cards, *(cell.dataset for cell in self.cells)}, key=natural)

    @cached_property
    def method_names(self) -> list[str]:
        """Methods with a configuration or a record."""
        return sorted({*self.methods, *(cell.method for cell in self.cells)}, key=natural)

    @cached_property
    def papers(self) -> dict[str, str]:
        """Citations of papers with experiments, claims or published numbers, by name; the name where there is none."""
        with_experiment = [planned.experiment.paper for planned in self.planned]
        sources = [row["source"] for row in published.rows_of("papers")]
        names = dict.fromkeys([*PAPERS, *sources, *with_experiment, *self.verdicts])
        return {name: PAPERS.get(name, name) for name in names if name}

    @cached_property
    def compared(self) -> list[Reproduction]:
        """Our numbers beside the printed ones, of each experiment in its `presets`."""
        ids = dict.fromkeys(planned.experiment.id for planned in self.planned)
        return reproductions((p.experiment, p.preset, p.cells) for id in ids for p in self.presets(id))

    def presets(self, id: str) -> list[PlannedExperiment]:
        """The presets of an experiment that have records of their own, those with records first, full before quick."""
        by_preset = {planned.preset: planned for planned in self.planned if planned.experiment.id == id}
        full, quick = by_preset["full"], by_preset["quick"]
        ids, of_quick = ({record.id for cell in planned.cells for record in cell.records} for planned in (full, quick))
        if of_quick <= ids:
            return [full]
        return sorted([full, quick], key=lambda planned: not planned.n_recorded)


def verdicts(
    claims: Sequence[Claim], planned: Sequence[PlannedExperiment], records: Sequence[Record], read: ReadArrays
) -> list[Verdict]:
    """The verdicts of `judge` on the claims of one file; none where no recorded run is of their experiments."""
    cells = {(p.experiment.id, p.preset): p.cells for p in planned}
    recorded = {id for (id, _), planned_cells in cells.items() if any(cell.records for cell in planned_cells)}
    of_any_runs = any(claim.clauses and not claim.experiments for claim in claims)
    if not of_any_runs and recorded.isdisjoint(id for claim in claims for id in claim.experiments):
        return []
    return judge(claims, records, lambda id, preset: cells.get((id, preset), ()), read=read)


def cell_page(cell: CellRuns) -> str:
    """The path of the page of a cell from the site's root."""
    identity = cell_key(cell.records[0])
    return f"cell/{hashlib.sha256(repr(identity).encode()).hexdigest()[:12]}.html"


@cache
def page(kind: str, name: str) -> str:
    """The path of the page of a data set, method, paper or experiment; names that are not file names get a digest."""
    safe = re.sub(r"[^\w./-]|\.\.|^[./]", "-", name)[:80]
    if kind != "experiment":
        safe = safe.replace("/", "-")
    if safe != name:
        safe += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{kind}/{safe}.html"
