"""`gpbench ls`: lists methods, data sets, protocols, experiments and recorded runs."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gpbench.analysis import printing
from gpbench.api import listings
from gpbench.api.selection import Names, names
from gpbench.cli.output import Answer, Named
from gpbench.errors import ConfigError, printable, require_known
from gpbench.records import filters, open_one
from gpbench.records.record import Record
from gpbench.records.unions import SHIPPED

_STATUSES = ("done", "diverged", "failed")


def ls(
    kind: Literal["methods", "datasets", "protocols", "experiments", "runs"],
    *,
    config_dir: Sequence[Path] = (),
    dataset: Names = None,
    method: Names = None,
    protocol: Names = None,
    status: Names = None,
    suite: str | None = None,
    task: str | None = None,
    conditions: Sequence[str] = (),
    results: Named = None,
) -> Answer:
    """List methods, data sets, protocols, experiments or recorded runs.

    Args:
        kind: what to list
        config_dir: a folder with your own dataset/, method/, protocol/ files
        suite: only data sets of this suite, board or development
        task: only data sets of this task
        conditions (FIELD=A,B): only runs with these values of a field, or FIELD<NUMBER, FIELD>NUMBER, as in
            metrics.nll<0.4; may be repeated

    examples:
      gpbench ls datasets --suite board --task binary
      gpbench ls runs --dataset pima --status diverged
      gpbench ls runs --where 'seconds.train>60'
    """
    listings.check_selection(kind, suite=suite, task=task)
    filters_ = {"dataset": dataset, "method": method, "protocol": protocol, "status": status}
    fields = {name: value for name, value in filters_.items() if value}
    flags = [f"--{name} {value}" for name, value in fields.items()] + [f"--where {text}" for text in conditions]
    flags += ["--with-shipped"] if SHIPPED in (results or ()) else [f"--results {name}" for name in results or ()]
    if kind != "runs" and flags:
        raise ConfigError(f"{flags[0]} selects runs: write `gpbench ls runs {flags[0]}`, or leave it out")
    if kind == "runs":
        records = open_one(results).all()
        for group, value in fields.items():
            files = _STATUSES if group == "status" else listings.files_of(group, config_dir)
            known = {*files, *(str(getattr(record, group)) for record in records)}
            for name in names(value):
                require_known(name, known, f"no run has {group} {name!r}")
        records = filters.matching(records, [*(f"{name}={value}" for name, value in fields.items()), *conditions])
        lines = _run_lines(records, printing.width())
        return Answer([record.to_json() for record in records], "\n".join(lines))
    items, faults = listings.entries(kind, config_dir, suite=suite, task=task)
    rows = [tuple("" if value is None else str(value) for value in item.values()) for item in items]
    lines = printing.aligned(tuple(items[0]), rows, printing.width()) if items else []
    for fault in faults:  # of the first faulty card is the exit code
        print(f"gpbench: {printable(str(fault))}", file=sys.stderr)
    return Answer(items, "\n".join(lines), faults[0].exit_code if faults else 0)


def _run_lines(records: Sequence[Record], width: int | None) -> list[str]:
    """The lines of a table of runs; what does not fit the width is left out, from `created` to the further metrics.

    Fields that all runs share are then said once, below the table.
    """
    sets: dict[str, set[str | None]] = {}
    for record in records:
        sets.setdefault(record.dataset, set()).add(record.split_set)
    rows = [listings.run_row(record, len(sets[record.dataset]) > 1) for record in records]
    columns: dict[str, tuple[str, ...]] = {
        name: tuple(row[c] for row in rows) for c, name in enumerate(listings.RUN_HEADER)
    }
    shared: dict[str, str] = {}

    def fits() -> bool:
        total = sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items())
        return width is None or total - 2 <= width

    if not fits():
        columns["id"] = tuple(text[:_SHORT_ID] for text in columns["id"])
        shared = {name: cells[0] for name, cells in columns.items() if len({*cells}) == 1 and len(cells) > 1}
        shared = {name: text for name, text in shared.items() if name != "id"}
        columns = {name: cells for name, cells in columns.items() if name not in shared}
    for n_metrics in (2, 1):
        if not fits() and "metrics" in columns:
            columns["metrics"] = tuple(", ".join(text.split(", ")[:n_metrics]) for text in columns["metrics"])
        if not fits():
            columns.pop("created" if n_metrics == 2 else "seed", None)
    below = ", ".join(f"{name} {text}".rstrip() for name, text in shared.items() if text)
    lines = printing.aligned([*columns], [*zip(*columns.values())], width)
    return lines + [""] * bool(below) + textwrap.wrap(f"all runs: {below}", width or 80) * bool(below)


_SHORT_ID = 8
"""Digits of an id where the line is short; `gpbench show` takes the first digits of an id."""
