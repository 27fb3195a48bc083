"""What a site shows: records in cells, experiments with what is recorded of them, cards and descriptions."""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell as FoundCell
from gpbench.papers import PAPERS, published
from gpbench.report import cells as statistics
from gpbench.report.cells import Cell, Entry, natural

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Planned:
    """An experiment in one preset: its cells with their records, or why they cannot be told."""

    experiment: Experiment
    preset: str
    cells: Sequence[FoundCell] = ()
    problem: str = ""

    @property
    def wanted(self) -> int:
        """Runs that the experiment is made of."""
        return sum(len(cell.splits) for cell in self.cells)

    @property
    def have(self) -> int:
        """Runs of it that are recorded."""
        return self.wanted - sum(len(cell.missing) for cell in self.cells)


@dataclass(frozen=True)
class Facts:
    """`records`: each run once.  `cards`, `methods`: data sets' cards and methods' descriptions, by name.  `trace`,
    `config`: from a record's id to its arrays and its configuration."""

    records: Sequence[dict]
    planned: Sequence[Planned]
    cards: Mapping[str, Mapping[str, Any]]
    methods: Mapping[str, str]
    trace: "Callable[[str], dict[str, np.ndarray]]"
    config: Callable[[str], dict]

    @cached_property
    def cells(self) -> list[Cell]:
        """Every cell, whichever presets asked for its runs."""
        return statistics.cells(self.records, presets_apart=False)

    @cached_property
    def entries(self) -> list[Entry]:
        """Every cell's metrics of its task, and error and seconds beside them."""
        made = statistics.entries(self.cells)
        for metric in ("error", "seconds"):
            made += [e for e in statistics.entries(self.cells, [metric]) if e.n_splits]
        return made

    @cached_property
    def page_of(self) -> dict[str, str]:
        """A record's id to the page of its cell."""
        return {record["id"]: cell_page(cell) for cell in self.cells for record in cell.records}

    @cached_property
    def datasets(self) -> list[str]:
        """Every data set that has a card or a record."""
        return sorted({*self.cards, *(cell.dataset for cell in self.cells)}, key=natural)

    @cached_property
    def method_names(self) -> list[str]:
        """Every method that has a configuration or a record."""
        return sorted({*self.methods, *(cell.method for cell in self.cells)}, key=natural)

    @cached_property
    def papers(self) -> dict[str, str]:
        """Every paper that has an experiment or published numbers, with its citation where that is known."""
        named = [planned.experiment.paper for planned in self.planned]
        printed = [row["source"] for row in published.rows_of("papers")]
        return {name: PAPERS.get(name, name) for name in dict.fromkeys([*PAPERS, *printed, *named]) if name}

    def presets(self, id: str) -> list[Planned]:
        """The presets of an experiment, those with records first and of these the full one; the quick one is left out
        where the full one has all of its records."""
        of = {planned.preset: planned for planned in self.planned if planned.experiment.id == id}
        full, quick = of["full"], of["quick"]
        return [full] if _ids(quick) <= _ids(full) else sorted([full, quick], key=lambda planned: not planned.have)


def cell_page(cell: Cell) -> str:
    """Where the page of a cell lies, from the site's root."""
    identity = statistics.key({**cell.records[0], "preset": None})
    return f"cell/{hashlib.sha256(repr(identity).encode()).hexdigest()[:12]}.html"


def page(kind: str, name: str) -> str:
    """Where the page of a data set, method, paper or experiment lies; a name that is no file name gets a digest."""
    safe = re.sub(r"[^\w./-]|\.\.|^[./]", "-", name)
    if kind != "experiment":
        safe = safe.replace("/", "-")
    if safe != name:
        safe += "-" + hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{kind}/{safe}.html"


def _ids(planned: Planned) -> set[str]:
    return {record["id"] for cell in planned.cells for record in cell.records}
