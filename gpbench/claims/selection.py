"""Which claims a name means: those of a paper, of an experiment, or one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.claims import definition
from gpbench.claims.definition import Claim, Clause, Words
from gpbench.errors import ConfigError, nearest
from gpbench.experiments.status import Cell
from gpbench.records.record import Record


@dataclass(frozen=True)
class Selection:
    """All claims of a file, over which verdicts are corrected, and the ids of those that were asked for."""

    claims: Sequence[Claim]
    ids: frozenset[str]

    def has(self, claim: Claim) -> bool:
        """Whether this claim was asked for."""
        return claim.id in self.ids


def select_claims(name: str, config_dirs: Sequence[Path] = ()) -> list[Selection]:
    """The claims that "all", a paper, an experiment or a claim's name means.  Raises ConfigError for any other."""
    papers = definition.files(config_dirs)
    if not papers:
        raise ConfigError("there are no claims: put claims/NAME.yaml into a folder of --config-dir")
    wanted = list(papers) if name == "all" else [name.partition("/")[0]]
    if unknown := [paper for paper in wanted if paper not in papers]:
        raise ConfigError(f"no claims {unknown[0]!r}; {nearest(unknown[0], papers)}")
    selections = []
    for paper in wanted:
        claims = definition.read(paper, config_dirs)
        ids = {claim.id for claim in claims if name in ("all", paper, claim.name) or name in claim.experiments}
        selections.append(Selection(claims, frozenset(ids)))
    if not any(selection.ids for selection in selections):
        known = [claim.name for selection in selections for claim in selection.claims]
        known += [id for selection in selections for claim in selection.claims for id in claim.experiments]
        raise ConfigError(f"no claim and no experiment with claims {name!r}; {nearest(name, known)}")
    return selections


_FIELDS = ("dataset", "method", "setting", "protocol", "precision", "preset", "output")
ANY = ("any",)
"""Of a key whose every value is meant.  An empty text means runs that do not have the key."""


@dataclass(frozen=True)
class Runs:
    """A cell by its keys, as on a command line, with its recorded runs; `cell` is None where there are none.

    `missing` is how many splits of its plan are not recorded.
    """

    keys: Mapping[str, str]
    cell: CellRuns | None
    missing: int = 0
    _values: dict[str, dict[int, float]] = field(default_factory=dict, compare=False, repr=False)

    def values(self, metric: str) -> Mapping[int, float]:
        """The metric on each split, without diverged runs."""
        if metric not in self._values:
            self._values[metric] = by_split(self.cell, metric) if self.cell else {}
        return self._values[metric]

    @property
    def recorded(self) -> set[int]:
        """The splits that are recorded."""
        return {record.split for record in self.cell.records} if self.cell else set()

    @property
    def metrics(self) -> set[str]:
        """The metrics that any of its runs has."""
        return set().union(*(record.metrics for record in self.cell.records)) if self.cell else set()

    @property
    def machines(self) -> set[tuple[str, str]]:
        """Where they ran."""
        records = self.cell.records if self.cell else ()
        return {(str(record.device), str((record.host or {}).get("cores"))) for record in records}


def planned_runs(cells: Iterable[Cell]) -> dict[tuple[str, str], Runs]:
    """The cells of an experiment by identity and output, those that are equal once."""
    runs: dict[tuple[str, str], Runs] = {}
    for cell in cells:
        if (cell.id, cell.output) not in runs:
            grouped = group_runs(cell.records, by_preset=False)
            keys = {"method": cell.method, **cell.job, "dataset": cell.dataset, "output": cell.output}
            runs[cell.id, cell.output] = Runs(keys, grouped[0] if grouped else None, len(cell.missing))
    return runs


def recorded_runs(records: Iterable[Record]) -> list[Runs]:
    """Every recorded cell, by the fields of its records."""
    cells = group_runs(records)
    return [Runs({name: str(getattr(cell.records[0], name) or "") for name in _FIELDS}, cell) for cell in cells]


def select_runs(runs: Sequence[Runs], words: Words) -> list[Runs]:
    """Those of which every key has one of these values."""
    chosen = list(runs)
    for key, values in words.items():
        if values != ANY:
            chosen = [of for of in chosen if of.keys.get(key, "") in values]
    return chosen


def check_words(runs: Sequence[Runs], words: Words, place: str) -> None:
    """Raises ConfigError for a key or a value that none of them has, and where none has all of the values."""
    for key, values in words.items():
        known = {of.keys.get(key, "") for of in runs}
        if known == {""}:
            keys = {name for of in runs for name in of.keys}
            raise ConfigError(f"{place}: no run has the key {key!r}; {nearest(key, keys)}")
        if unknown := [value for value in values if value not in known and values != ANY]:
            raise ConfigError(f"{place}: no run has {key}={unknown[0]}; {nearest(unknown[0], known)}")
    if not select_runs(runs, words):
        raise ConfigError(f"{place}: no run has these values together")


def match(clause: Clause, a: Sequence[Runs], b: Sequence[Runs], place: str) -> list[tuple[Runs, list[Runs]]]:
    """Each run of `a` with those of `b` on the same data set and output, and with the same values of `each`.

    Raises ConfigError where several of `a` are alike, or several of `b` that the clause does not list.
    """
    firsts, seconds = group(a, clause.keys), group(b, (*clause.keys, *lists(clause)))
    for side, groups in (("a", firsts), ("b", seconds)):
        if crowd := next((of for of in groups.values() if len(of) > 1), None):
            apart = sorted(key for key in crowd[0].keys if len({of.keys.get(key) for of in crowd}) > 1)
            raise ConfigError(
                f"{place}: {side} has {len(crowd)} cells on {crowd[0].keys['dataset']}, which differ in"
                f" {', '.join(apart)}: give a value, or put the key in `each` or `pair`"
            )
    partners = group(b, clause.keys)
    return [(of[0], partners[key]) for key, of in firsts.items() if key in partners]


def lists(clause: Clause) -> list[str]:
    """The keys of which b has several values, each a rival; data sets and outputs are none."""
    several = [key for key, values in clause.sides["b"].items() if len(values) > 1 or values == ANY]
    return [key for key in several if key not in ("dataset", "output")]


def group(runs: Sequence[Runs], keys: Sequence[str]) -> dict[tuple[str, ...], list[Runs]]:
    """The runs by data set, output and these keys."""
    groups: dict[tuple[str, ...], list[Runs]] = {}
    for of in runs:
        groups.setdefault(tuple(of.keys.get(key, "") for key in ("dataset", "output", *keys)), []).append(of)
    return groups


def with_protocol(protocol: str | None, runs: Iterable[Runs]) -> list[Runs]:
    """Those with_protocol a protocol; all where it is None."""
    return [of for of in runs if protocol in (None, of.keys.get("protocol"))]
