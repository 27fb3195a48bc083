"""Selection of claims by a name, and of the cells that a clause of a claim is about."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.claims import definition, quantities
from gpbench.claims.clauses import Clause, Words
from gpbench.claims.definition import Claim
from gpbench.claims.quantities import Arrays
from gpbench.errors import ConfigError, nearest
from gpbench.experiments.status import Cell
from gpbench.records.arrays import share_seconds
from gpbench.records.record import Record
from gpbench.records.store import unlimited

_FIELDS = ("dataset", "method", "setting", "protocol", "precision", "preset", "output")
ANY = ("any",)
"""Values of a key that may have any value.  An empty text stands for cells without the key."""


@dataclass(frozen=True)
class _Selection:
    """Claims of a file, of which some are selected."""

    claims: Sequence[Claim]  # all claims of the file, over which verdicts are corrected
    ids: frozenset[str]  # ids of the selected claims

    def includes(self, claim: Claim) -> bool:
        """Returns whether the claim is selected."""
        return claim.id in self.ids


def select_claims(name: str, config_dirs: Sequence[Path] = ()) -> list[_Selection]:
    """Selects claims by name.  Returns A selection for each file.  Raises ConfigError: there are no claims of that
    name.
    """
    papers = definition.files(config_dirs)
    if not papers:
        raise ConfigError("there are no claims: put claims/NAME.yaml into a folder of --config-dir")
    requested = list(papers) if name == "all" else [name.partition("/")[0]]
    if unknown := [paper for paper in requested if paper not in papers]:
        raise ConfigError(f"no claims {unknown[0]!r}; {nearest(unknown[0], papers)}")
    selections = []
    for paper in requested:
        claims = definition.read(paper, config_dirs)
        ids = {claim.id for claim in claims if name in ("all", paper, claim.name) or name in claim.experiments}
        selections.append(_Selection(claims, frozenset(ids)))
    if not any(selection.ids for selection in selections):
        known = [claim.name for selection in selections for claim in selection.claims]
        known += [id for selection in selections for claim in selection.claims for id in claim.experiments]
        raise ConfigError(f"no claim and no experiment with claims {name!r}; {nearest(name, dict.fromkeys(known))}")
    return selections


ReadArrays = Callable[[str], Arrays]
"""Reads the trace and the kept arrays of a run by its id; empty where it has none."""


def no_arrays(id: str) -> Arrays:
    """The arrays where none are at hand."""
    return {}


@dataclass(frozen=True)
class KeyedCell:
    """A cell by its keys, as on a command line."""

    keys: Mapping[str, str]  # values by key
    runs: CellRuns | None  # its recorded runs; None without any
    missing: int = 0  # number of planned splits that are not recorded
    read: ReadArrays = no_arrays  # function that reads the trace and kept arrays of a run by its id

    def values(self, metric: str) -> Mapping[int, float]:
        """The metric by split, averaged over seeds, without diverged runs and those that have none."""
        if not (self.runs and (read := quantities.reader(metric))):
            return by_split(self.runs, metric) if self.runs else {}
        if metric not in self.runs.known:
            values: dict[int, list[float]] = {}
            for record in self.records:
                if not record.diverged and (value := read(share_seconds(record, self.read(record.id)))) is not None:
                    values.setdefault(record.split, []).append(value)
            self.runs.known[metric] = {split: fmean(seeds) for split, seeds in values.items()}
        return self.runs.known[metric]

    def arrays(self, split: int) -> Arrays:
        """The trace and the kept arrays of a split; empty where it has none."""
        return next((self.read(record.id) for record in self.records if record.split == split), {})

    @property
    def records(self) -> Sequence[Record]:
        """Records of the runs."""
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


def planned_cells(cells: Iterable[Cell], read: ReadArrays = no_arrays) -> dict[tuple[str, str], KeyedCell]:
    """The cells of an experiment by identity and output, equal ones once."""
    keyed: dict[tuple[str, str], KeyedCell] = {}
    for cell in cells:
        if (cell.id, cell.output) not in keyed:
            grouped = group_runs(cell.records)
            keys = {"method": cell.method, **cell.job, "dataset": cell.dataset, "output": cell.output}
            keyed[cell.id, cell.output] = KeyedCell(keys, grouped[0] if grouped else None, len(cell.missing), read)
    return keyed


def recorded_cells(records: Iterable[Record], read: ReadArrays = no_arrays) -> list[KeyedCell]:
    """All recorded cells, without runs within a budget; their keys are fields of their records."""
    cells = group_runs(unlimited([*records]))
    keys = [{name: str(getattr(runs.records[0], name) or "") for name in _FIELDS} for runs in cells]
    return [KeyedCell(key, runs, read=read) for key, runs in zip(keys, cells)]


def select_cells(cells: Sequence[KeyedCell], words: Words) -> list[KeyedCell]:
    """The cells of which every key has one of the values that `words` gives it."""
    requested = {key: values for key, values in words.items() if values != ANY}
    for key, values in requested.items():
        cells = [cell for cell in cells if cell.keys.get(key, "") in values]
    return list(cells)


def check_words(cells: Sequence[KeyedCell], words: Words, values_of: Callable[[str], set[str]], name: str) -> None:
    """Checks that `words` select some of the cells.  Raises ConfigError: no cell has a key or a value, or none has all
    of the values.
    """
    for key, values in words.items():
        known = values_of(key)
        if known == {""}:
            keys = {name for cell in cells for name in cell.keys}
            raise ConfigError(f"{name}: no run has the key {key!r}; {nearest(key, keys)}")
        if unknown := [value for value in values if value not in known and values != ANY]:
            raise ConfigError(f"{name}: no run has {key}={unknown[0]}; {nearest(unknown[0], known)}")
    if not select_cells(cells, words):
        raise ConfigError(f"{name}: no run has these values together")


def match(
    clause: Clause, a: Sequence[KeyedCell], b: Sequence[KeyedCell], name: str
) -> list[tuple[KeyedCell, list[KeyedCell]]]:
    """Each cell of `a` with those of `b` on the same data set and output, with the same values of the clause's keys.
    Raises ConfigError: several cells of `a` are alike, or several of `b` that the clause does not list.
    """
    firsts, seconds = group(a, clause.keys), group(b, (*clause.keys, *listed_keys(clause)))
    for side, groups in (("a", firsts), ("b", seconds)):
        if crowd := next((cells for cells in groups.values() if len(cells) > 1), None):
            raise crowded(crowd, side, name)
    partners = group(b, clause.keys)
    return [(cells[0], partners[key]) for key, cells in firsts.items() if key in partners]


def crowded(cells: Sequence[KeyedCell], side: str, name: str) -> ConfigError:
    """The error of a side that has several cells where one number is asked for; names what sets them apart."""
    values = {key: sorted({cell.keys.get(key) or '""' for cell in cells}) for key in sorted(cells[0].keys)}
    differing = [f"{key} ({', '.join(several)})" for key, several in values.items() if len(several) > 1]
    return ConfigError(
        f"{name}: {side} has {len(cells)} cells on {cells[0].keys['dataset']}, which differ in"
        f" {', '.join(differing)}: give a value, or put the key in `each` or `pair`"
    )


def listed_keys(clause: Clause) -> list[str]:
    """The keys, besides data set and output, for which b has several values, each of which is a rival."""
    several = [key for key, values in clause.sides["b"].items() if len(values) > 1 or values == ANY]
    return [key for key in several if key not in ("dataset", "output")]


def rival_keys(clause: Clause) -> list[str]:
    """The keys that tell rivals apart."""
    return list(dict.fromkeys(["method", *listed_keys(clause)]))


def group(cells: Sequence[KeyedCell], keys: Sequence[str]) -> dict[tuple[str, ...], list[KeyedCell]]:
    """The cells by data set, output and these keys."""
    groups: dict[tuple[str, ...], list[KeyedCell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell.keys.get(key, "") for key in ("dataset", "output", *keys)), []).append(cell)
    return groups
