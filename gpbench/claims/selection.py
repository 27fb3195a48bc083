"""Selection of claims by a name, and of the cells that a clause of a claim is about."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.analysis.grouping import gather
from gpbench.claims import definition
from gpbench.claims.definition import Claim, Clause, Words
from gpbench.claims.estimates import Estimate
from gpbench.claims.quantities import Arrays, Quantity
from gpbench.errors import ConfigError, nearest
from gpbench.experiments.plan import Cell
from gpbench.records.arrays import share_seconds
from gpbench.records.record import Record

_FIELDS = ("dataset", "method", "setting", "protocol", "precision", "preset", "output")
ANY = ("any",)
"""Values of a key that may have any value.  An empty text stands for cells without the key."""


class _Selection(NamedTuple):
    """All claims of a file, over which verdicts are corrected, and the ids of those that are selected."""

    claims: Sequence[Claim]
    ids: frozenset[str]


def select_claims(name: str, config_dirs: Sequence[Path] = ()) -> list[_Selection]:
    """The claims of a name, by file: a paper, an experiment, a claim or "all".  Raises ConfigError: there are none."""
    papers = definition.files(config_dirs)
    if not papers:
        raise ConfigError("there are no claims: put claims/NAME.yaml into a folder of --config-dir")
    selections = []
    for paper in papers if name == "all" else [name.partition("/")[0]]:
        claims = definition.read(paper, config_dirs)
        ids = {claim.id for claim in claims if name in ("all", paper, claim.name, *claim.experiments)}
        selections.append(_Selection(claims, frozenset(ids)))
    if not any(selection.ids for selection in selections):
        known = [claim.name for selection in selections for claim in selection.claims]
        known += [id for selection in selections for claim in selection.claims for id in claim.experiments]
        raise ConfigError(f"no claim and no experiment with claims {name!r}; {nearest(name, dict.fromkeys(known))}")
    return selections


Key = tuple[str, ...]
"""Data set, output, and values of the keys of a clause."""
ReadArrays = Callable[[str], Arrays]
"""Reads the trace and the kept arrays of a run by its id; empty where it has none."""


@dataclass(frozen=True)
class KeyedCell:
    """A cell by its keys, as on a command line."""

    keys: Mapping[str, str]  # values by key
    runs: CellRuns | None  # its recorded runs; None without any
    missing: int = 0  # number of planned splits that are not recorded
    read: ReadArrays = lambda id: {}

    def values(self, quantity: Quantity) -> Mapping[int, float]:
        """The quantity by split, averaged over seeds, without diverged runs and those that have none."""
        if self.runs is None:
            return {}
        if not quantity.is_of_arrays:
            return by_split(self.runs, quantity.metric)
        of_arrays = lambda record: quantity.value(share_seconds(record, self.read(record.id)))
        return by_split(self.runs, str(quantity), of_arrays)

    def arrays(self, split: int) -> Arrays:
        """The trace and the kept arrays of a split; empty where it has none."""
        return next((self.read(record.id) for record in self.records if record.split == split), {})

    @property
    def records(self) -> Sequence[Record]:
        return self.runs.records if self.runs else ()

    @property
    def recorded(self) -> set[int]:
        """Recorded splits."""
        return {record.split for record in self.records}

    @property
    def metrics(self) -> set[str]:
        """Metrics that any of the runs has, and diagnostics, as `diagnostics.NAME`."""
        diagnostics = {f"diagnostics.{name}" for record in self.records for name in record.diagnostics or ()}
        return diagnostics.union(*(record.metrics for record in self.records))


def planned_cells(cells: Iterable[Cell], read: ReadArrays) -> dict[tuple[str, str], KeyedCell]:
    """The cells of an experiment by identity and output, equal ones once."""
    keyed: dict[tuple[str, str], KeyedCell] = {}
    for (id, output), (cell, *_) in gather(((cell.id, cell.output), cell) for cell in cells).items():
        keys = {"method": cell.method, **cell.job, "dataset": cell.dataset, "output": output}
        keyed[id, output] = KeyedCell(keys, next(iter(group_runs(cell.records)), None), len(cell.missing), read)
    return keyed


def recorded_cells(records: Iterable[Record], read: ReadArrays) -> list[KeyedCell]:
    """All recorded cells; their keys are fields of their records."""
    cells = group_runs([*records])
    keys = [{name: str(getattr(runs.records[0], name) or "") for name in _FIELDS} for runs in cells]
    return [KeyedCell(key, runs, read=read) for key, runs in zip(keys, cells)]


def select_cells(cells: Sequence[KeyedCell], words: Words) -> list[KeyedCell]:
    """The cells of which every key has one of the values that `words` gives it."""
    requested = {key: values for key, values in words.items() if values != ANY}
    return [cell for cell in cells if all(cell.keys.get(key, "") in values for key, values in requested.items())]


def check_words(cells: Sequence[KeyedCell], words: Words, values_of: Callable[[str], set[str]], name: str) -> None:
    """Raises ConfigError where no cell has a key or a value of `words`, or none has all of the values."""
    problem = "" if select_cells(cells, words) else "these values together"
    for key, values in reversed([*words.items()]):
        known = values_of(key)
        if unknown := [value for value in values if value not in known and values != ANY]:
            problem = f"{key}={unknown[0]}; {nearest(unknown[0], known)}"
        if known == {""}:
            problem = f"the key {key!r}; {nearest(key, {name for cell in cells for name in cell.keys})}"
    if problem:
        raise ConfigError(f"{name}: no run has {problem}")


def crowded(cells: Sequence[KeyedCell], side: str, name: str) -> ConfigError:
    """The error of a side that has several cells where one number is asked for; names what sets them apart."""
    values = {key: sorted({cell.keys.get(key) or '""' for cell in cells}) for key in sorted(cells[0].keys)}
    differing = ", ".join(f"{key} ({', '.join(several)})" for key, several in values.items() if len(several) > 1)
    several = f"{len(cells)} cells on {cells[0].keys['dataset']}, which differ in {differing}"
    return ConfigError(f"{name}: {side} has {several}: give a value, or put the key in `each` or `pair`")


def listed_keys(clause: Clause) -> list[str]:
    """The keys, besides data set and output, for which b has several values, each of which is a rival."""
    several = [key for key, values in clause.sides["b"].items() if len(values) > 1 or values == ANY]
    return [key for key in several if key not in ("dataset", "output")]


def group(cells: Sequence[KeyedCell], keys: Sequence[str]) -> dict[Key, list[KeyedCell]]:
    """The cells by data set, output and these keys."""
    return gather((tuple(cell.keys.get(key, "") for key in ("dataset", "output", *keys)), cell) for cell in cells)


@dataclass(frozen=True)
class Number:
    """An estimate with the cells that it is from."""

    key: Key
    estimate: Estimate | None  # None where runs are missing
    rival: str = ""  # name of the rival b, where a clause lists several
    cells: tuple[CellRuns, ...] = ()  # cells that the number is estimated from, but of those over all data sets
    preset: str = ""  # preset of the runs

    @property
    def location(self) -> str:
        """Data set and output."""
        return " ".join(filter(None, self.key[:2]))

    @property
    def machines(self) -> int:
        """Number of different machines of the runs."""
        return len({machine(record) for cell in self.cells for record in cell.records})

    @property
    def name(self) -> str:
        """Data set, output, values of keys and rival, as far as there are any."""
        return " ".join(filter(None, [*self.key, self.rival]))


def machine(record: Record) -> tuple[str | None, int | None]:
    """The device and the number of cores, on which seconds depend."""
    return record.device, (record.host or {}).get("cores")
