"""Lists of what there is: the function behind the verb `ls`."""

import functools
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, plugins, schema
from gpbench.analysis import printing
from gpbench.analysis.grouping import gather
from gpbench.analysis.kinds import number_range
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.api.selection import Names, names
from gpbench.api.tables import Table
from gpbench.api.words import Folders, folders
from gpbench.arguments import checked
from gpbench.config.cards import CARD
from gpbench.errors import ConfigError, require, require_known
from gpbench.log import log, warn
from gpbench.records import filters
from gpbench.records.absences import absence
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.records.unions import Results, open_one

_KINDS = {"methods": "method", "datasets": "dataset", "protocols": "protocol", "experiments": "experiment", "runs": ""}
"""What there are lists of, with the folder of its files."""
_STATUSES = ("done", "diverged", "failed")
_FACTS = ("task", "rows", "inputs", "title")
_RUN_FIELDS = ("id", "status", "dataset", "method", "setting", "protocol", "split", "seed")
_FIRST = {"nll": 0, "rmse": 1, "test_ll": 2, "error": 3}  # metrics that come before the others
_SHORT_ID = 8  # digits of an id where the line is short; `gpbench show` takes the first digits of an id


class Listing(Table):
    """A list as a table, which is printed as aligned lines alone."""

    def __init__(self, kind: str, rows: Iterable[Mapping[str, Any]], store: Store | None = None, **options: Any):
        self._noun = {"datasets": "data set"}.get(kind, kind.removesuffix("s"))
        header = (*_RUN_FIELDS, "metrics", "train s", "created") if kind == "runs" else ()
        self._values: dict[str, list[Any]] = {name: [] for name in header}
        for row in rows:  # of which only the values stay
            for name, value in row.items():
                self._values.setdefault(name, []).append(value)
        self._columns = {
            name: tuple("" if value is None else str(value) for value in values)
            for name, values in self._values.items()
        }
        self._store = store
        super().__init__(None, records=None, **options)

    @functools.cached_property
    def records(self) -> tuple[Record, ...]:  # type: ignore[override]
        """The runs of the list, read again: the list of a hundred thousand keeps only what it prints."""
        ids = {*self._columns.get("id", ())}
        records = tuple(record for record in self._store.all() if record.id in ids) if self._store else ()
        if lost := len(ids) - len(records):
            warn(f"{lost} of the listed runs can no longer be read")
        return records

    @functools.cached_property
    def sheet(self) -> Sheet:  # type: ignore[override]
        rows = [dict(zip(self._values, values)) for values in zip(*self._values.values(), strict=True)]
        grids = [Grid("", (*self._columns,), (*zip(*self._columns.values()),), prose=True)] if rows else []
        return Sheet(title=printing.counted(len(rows), self._noun), grids=grids, rows=rows)

    @functools.cached_property
    def data(self) -> Any:  # type: ignore[override]
        return [record.to_json() for record in self.records] if self._noun == "run" else self.sheet.rows

    def lines(self) -> Iterator[str]:
        """The lines that are printed, one after another: together they take as much room as the runs."""
        columns, width = self._columns, printing.width()
        columns, below = _fitted(columns, width) if "id" in columns else (columns, [])
        if columns:
            yield from printing.aligned([*columns], zip(*columns.values()), width)
            yield from below


@checked
def ls(
    kind: str,
    *,
    config_dir: Folders = (),
    dataset: Names = None,
    method: Names = None,
    protocol: Names = None,
    status: Names = None,
    suite: str | None = None,
    task: str | None = None,
    rows: str | int | None = None,
    conditions: str | Sequence[str] = (),
    results: Results = None,
) -> Listing:
    """List methods, data sets, protocols, experiments or recorded runs.

        gpbench.ls("methods").frame

    Args:
        kind: methods, datasets, protocols, experiments or runs
        config_dir: a folder with your own dataset/, method/, protocol/ files
        suite: only data sets of this suite, board or development
        task: only data sets of this task
        rows (A-B): only data sets of so many rows, as 30k-60k, 30k- or -60k; 50k is 25k to 100k
        conditions (FIELD=A,B): only runs with these values of a field, or FIELD<NUMBER, FIELD>NUMBER, as in
            metrics.nll<0.4; may be repeated
        dataset, method, protocol, status, results: as for `table`, of runs alone

    Returns:
        A table with a row for each; its `exit_code` is that of a faulty card, which is left out and named on stderr.

    examples:
      gpbench ls datasets --suite board --task binary --rows -5k
      gpbench ls runs --dataset pima --status diverged
      gpbench ls runs --where 'seconds.train>60'
    """
    require_known(kind, _KINDS, f"no list of {kind!r}")
    facts = {key: value for key, value in {"suite": suite, "task": task}.items() if value is not None}
    for key, value in {"rows": rows, **facts}.items():
        line = f"{key} {value} selects data sets: leave it out for {kind}"
        require(kind == "datasets" or value is None, line, ConfigError)
    for key, value in facts.items():
        schema.parse(CARD.keys[key].range).check(key, value)
    fewest, most = number_range(rows, "rows")
    values = {"dataset": dataset, "method": method, "protocol": protocol, "status": status}
    fields = {name: names(value) for name, value in values.items() if value}
    config_dirs = folders(config_dir)
    if kind == "runs":
        conditions = [conditions] if isinstance(conditions, str) else conditions
        return _runs(open_one(results), fields, conditions, config_dirs, results)
    require(not results, f"{kind} are in no results folder: leave it out, or list the runs", ConfigError)
    for flag in [*fields, *(["where"] if conditions else [])]:
        raise ConfigError(f"--{flag} selects runs: leave it out for {kind}, or list the runs")
    if kind != "datasets":
        return Listing(kind, [*descriptions(_KINDS[kind], config_dirs)])
    from gpbench.data import cards

    known, faults = cards.readable(config_dirs)
    fit = (name for name, card in known.items() if facts.items() <= card.items())
    sized = (name for name in fit if rows is None or fewest <= (known[name].get("rows") or -1) <= most)
    selected = sorted(sized, key=printing.natural)
    for fault in faults:
        log.error(fault)
    lines = [{"name": name} | {key: known[name].get(key) for key in _FACTS} for name in selected]
    return Listing(kind, lines, exit_code=faults[0].exit_code if faults else 0)


def descriptions(group: str, config_dirs: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The name of each file of a group, and the description in its first comment line."""
    files = _files(group, config_dirs)
    for name in sorted(files, key=printing.natural):
        with open(files[name], encoding="utf-8", errors="replace") as lines:
            comments = (line for line in lines if line.startswith("#") and not line.startswith("# @package"))
            yield {"name": name, "description": next(comments, "").lstrip("# ").strip()}


def _files(group: str, config_dirs: Sequence[Path]) -> Mapping[str, Path]:
    """The files of a group by name: gpbench's, those of these folders and of installed packages."""
    return paths.yaml_files(group, plugins.folders(config_dirs))


def _runs(
    store: Store, fields: Mapping[str, list[str]], conditions: Sequence[str], folders: Sequence[Path], results: Results
) -> Listing:
    """The runs with these values, and of these conditions."""
    records = store.all()
    for group, values in fields.items():
        files = _STATUSES if group == "status" else _files(group, folders)
        known = {*files, *(str(getattr(record, group)) for record in records)}
        for name in values:
            require_known(name, known, f"no run has {group} {name!r}")
    equal = [f"{name}={','.join(values)}" for name, values in fields.items()]
    records = filters.matching(records, [*equal, *conditions])
    sets = gather((record.dataset, record.split_set) for record in records)
    several = {name for name, own in sets.items() if len({*own}) > 1}
    records.reverse()
    rows = (_row(records.pop(), several) for _ in range(len(records)))  # each makes room for its row
    return Listing("runs", rows, store, results=results)


def _row(record: Record, several: Collection[str]) -> dict[str, str]:
    """The cells of a run; of `several` data sets there are runs on several split sets."""
    ordered = sorted(record.metrics, key=lambda name: _FIRST.get(name, len(_FIRST)))
    metrics = [f"{name} {absence(record, name) or printing.number(record.metrics[name])}" for name in ordered]
    row = {name: str(getattr(record, name)) for name in _RUN_FIELDS}
    if record.dataset in several and f"set={record.split_set}" not in row["setting"]:
        row["split"] += f" of {record.split_set}"
    created = (record.created or "")[:16].replace("T", " ")
    seconds = printing.number(record.seconds.get("train"))
    return {**row, "metrics": ", ".join(metrics), "train s": seconds, "created": created}


def _fitted(columns: dict[str, tuple[str, ...]], width: int | None) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The columns of runs that fit the width, and the lines below them, which name what all runs share."""

    def fits() -> bool:
        return width is None or sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items()) <= width + 2

    if fits():
        return columns, []
    columns = {**columns, "id": tuple(text[:_SHORT_ID] for text in columns["id"])}
    shared = {name: cells[0] for name, cells in columns.items() if name != "id" and len({*cells}) == 1 < len(cells)}
    columns = {name: cells for name, cells in columns.items() if name not in shared}
    for n_metrics, last in ((2, "created"), (1, "seed")):
        if not fits() and "metrics" in columns:
            columns["metrics"] = tuple(", ".join(text.split(", ")[:n_metrics]) for text in columns["metrics"])
        if not fits():
            columns.pop(last, None)
    below = ", ".join(f"{name} {text}".rstrip() for name, text in shared.items() if text)
    return columns, ["", *textwrap.wrap(f"all runs: {below}", width or 80)] if below else []
