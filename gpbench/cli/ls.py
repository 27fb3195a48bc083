"""`gpbench ls`: lists methods, data sets, protocols, experiments and recorded runs."""

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from gpbench.analysis import printing
from gpbench.api import listings
from gpbench.api.selection import names
from gpbench.cli import options
from gpbench.errors import ConfigError, nearest, printable
from gpbench.records import filters, open_one
from gpbench.records.record import Record

_FILTERS = ("dataset", "method", "protocol", "status")
_STATUSES = ("done", "diverged", "failed")


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "ls",
        description="List methods, data sets, protocols, experiments or recorded runs.",
        epilog="examples: gpbench ls datasets --suite board --task binary; gpbench ls runs --dataset pima --status"
        " diverged; gpbench ls runs --where 'seconds.train>60'",
    )
    parser.add_argument("kind", choices=listings.KINDS, help="what to list")
    options.add_config_dir(parser, "dataset/, method/, protocol/ files")
    parser.add_argument("--suite", help="only data sets of this suite: board or development")
    parser.add_argument("--task", help="only data sets of this task")
    options.add_fields(parser, _FILTERS)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="FIELD=A,B",
        help="only runs with these values of a field, or FIELD<NUMBER, FIELD>NUMBER, as in"
        " metrics.nll<0.4; may be repeated",
    )
    options.add_results(parser)
    options.add_json(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code: that of the first faulty card, which is named on stderr and left out.
    Raises ConfigError: A filter of runs, of anything else.
    """
    listings.check_selection(args.kind, suite=args.suite, task=args.task)
    fields = {name: value for name in _FILTERS if (value := getattr(args, name))}
    flags = [f"--{name} {value}" for name, value in fields.items()] + [f"--where {text}" for text in args.where]
    flags += [f"--results {name}" for name in args.results or ()] + ["--with-shipped"] * args.with_shipped
    if args.kind != "runs" and flags:
        raise ConfigError(f"{flags[0]} selects runs: write `gpbench ls runs {flags[0]}`, or leave it out")
    if args.kind == "runs":
        records = open_one(options.results(args)).all()
        _check_names(args, records)
        records = filters.matching(records, [*(f"{name}={value}" for name, value in fields.items()), *args.where])
        if args.json:
            printing.print_json([record.to_json() for record in records])
        else:
            print("\n".join(_run_lines(records, printing.width())))
        return 0
    items, faults = listings.entries(args.kind, args.config_dir, suite=args.suite, task=args.task)
    if args.json:
        printing.print_json(items)
    elif items:
        rows = [tuple("" if value is None else str(value) for value in item.values()) for item in items]
        printing.print_table(tuple(items[0]), rows)
    for fault in faults:
        print(f"gpbench: {printable(str(fault))}", file=sys.stderr)
    return faults[0].exit_code if faults else 0


def _check_names(args: argparse.Namespace, records: Sequence[Record]) -> None:
    """Raises ConfigError for a data set, a method, a protocol or a status that is none, and that no run has."""
    for group in _FILTERS:
        for name in names(getattr(args, group)):
            files = _STATUSES if group == "status" else listings.files_of(group, args.config_dir)
            known = {*files, *(str(getattr(record, group)) for record in records)}
            if name not in known:
                raise ConfigError(f"no run has {group} {name!r}; {nearest(name, known)}")


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
