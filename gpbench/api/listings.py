"""Lists of what there is: the function behind the verb `ls`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, plugins, schema
from gpbench.analysis import printing
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.api.tables import Table
from gpbench.api.words import Folders, folders
from gpbench.arguments import checked
from gpbench.config.card_keys import CARD
from gpbench.errors import ConfigError, require_known
from gpbench.records.absences import absence
from gpbench.records.record import Record
from gpbench.records.unions import Results, open_one

KINDS = {"methods": "method", "datasets": "dataset", "protocols": "protocol", "experiments": "experiment", "runs": ""}
"""What there are lists of, with the folder of its files."""


@checked
def ls(
    kind: str, *, config_dir: Folders = (), results: Results = None, suite: str | None = None, task: str | None = None
) -> Table:
    """Lists methods, data sets, protocols, experiments or recorded runs, a row for each.

        gpbench.ls("methods").frame

    Args:
        kind: "methods", "datasets", "protocols", "experiments" or "runs".
        config_dir: folders with files of yours.
        results: where the runs are, for "runs" alone: the results folder, a file that `gpbench collect` made,
            "shipped", or several; by default the results folder, or the runs that ship with gpbench where it has none.
        suite, task: of data sets, only those of this suite, "board" or "development", and of this task.
    """
    require_known(kind, KINDS, f"no list of {kind!r}")
    check_selection(kind, suite=suite, task=task)
    if kind == "runs":
        records = open_one(results).all()
        rows = [dict(zip(RUN_HEADER, run_row(record))) for record in records]
        return _table(kind, rows, records=records, results=results)
    if results is not None:
        raise ConfigError(f"--results selects runs: leave it out for {kind}")
    items, faults = entries(kind, folders(config_dir), suite=suite, task=task)
    if faults:
        raise faults[0]
    return _table(kind, items)


def _table(kind: str, rows: Sequence[Mapping[str, Any]], **options: Any) -> Table:
    header = (*dict.fromkeys(key for row in rows for key in row),)
    cells = tuple(tuple("" if value is None else str(value) for value in row.values()) for row in rows)
    title = printing.counted(len(rows), {"datasets": "data set"}.get(kind, kind.removesuffix("s")))
    return Table(Sheet(title=title, grids=[Grid("", header, cells, prose=True)] * bool(rows), rows=rows), **options)


def check_selection(kind: str, **values: str | None) -> None:
    """Checks the suite and the task of a list of data sets.  Raises ConfigError: an unknown one, or another list."""
    for key, value in values.items():
        if value is not None and kind != "datasets":
            raise ConfigError(f"{key} {value} selects data sets: leave it out for {kind}")
        if value is not None:
            schema.parse(CARD.keys[key].range).check(key, value)


def entries(
    kind: str, config_dirs: Sequence[Path], **values: str | None
) -> tuple[list[dict[str, Any]], list[ConfigError]]:
    """The rows of a list but that of runs, of cards with these values; and the errors of faulty cards, left out."""
    if kind != "datasets":
        return [*descriptions(KINDS[kind], config_dirs)], []
    from gpbench.data import cards

    known, faults = cards.readable(config_dirs)
    fields = ("task", "rows", "inputs", "title")
    facts = {key: value for key, value in values.items() if value is not None}.items()
    ordered = sorted((name for name, card in known.items() if facts <= card.items()), key=printing.natural)
    return [{"name": name} | {key: known[name].get(key) for key in fields} for name in ordered], faults


def descriptions(group: str, config_dirs: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """{name, description} of each file of a group, the description from its first comment line.

    Of files with the same name, that of gpbench counts.
    """
    files = files_of(group, config_dirs)
    for name in sorted(files, key=printing.natural):
        yield {"name": name, "description": _first_comment(files[name])}


def files_of(group: str, config_dirs: Sequence[Path]) -> Mapping[str, Path]:
    """The files of a group by name: gpbench's, those of these folders and of installed packages."""
    return paths.yaml_files(group, (*config_dirs, *plugins.folders()))


def _first_comment(path: Path) -> str:
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("#") and not line.startswith("# @package"):
                return line.lstrip("# ").strip()
    return ""


_FIRST = ("nll", "rmse", "test_ll", "error")
"""Metrics that come before the others."""
_RUN_FIELDS = ("id", "status", "dataset", "method", "setting", "protocol", "split", "seed")
RUN_HEADER = (*_RUN_FIELDS, "metrics", "train s", "created")
"""Names of the cells of a run."""


def run_row(record: Record, has_sets: bool = False) -> tuple[str, ...]:
    """The cells of a run; `has_sets` says that runs of its data set are on several split sets."""
    names = sorted(record.metrics, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    metrics = ", ".join(f"{name} {absence(record, name) or printing.number(record.metrics[name])}" for name in names)
    created = (record.created or "")[:16].replace("T", " ")
    fields = {name: str(getattr(record, name)) for name in _RUN_FIELDS}
    if has_sets and f"set={record.split_set}" not in fields["setting"]:
        fields["split"] += f" of {record.split_set}"
    return (*fields.values(), metrics, printing.number(record.seconds.get("train")), created)
