"""`gpbench table`: tables of recorded results beside the published values."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench.analysis import formats, tables
from gpbench.analysis.cells import Entry, entries, group_runs
from gpbench.analysis.formats import FORMATS, MARKS
from gpbench.cli import selection
from gpbench.cli.output import show
from gpbench.errors import ConfigError
from gpbench.papers import published
from gpbench.records.stores import recorded


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "table",
        help="tables of recorded results beside the published values",
        description="Print means and standard errors over splits beside the published values, for a paper's table or"
        " for any recorded runs.",
        epilog="examples: gpbench table sep/table1; gpbench table --dataset pima,sonar --metric nll,seconds",
    )
    parser.add_argument(
        "experiment", nargs="?", metavar="ID", help="a paper's table (`gpbench ls experiments`); default: all runs"
    )
    parser.add_argument("--metric", metavar="A,B", help="metrics, or all; default: nll, or rmse,test_ll for regression")
    selection.add_filters(parser)
    parser.add_argument("--later", action="store_true", help="also list values of later papers on the same data")
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help="a folder with your own experiment/ files",
    )
    parser.add_argument("--format", choices=FORMATS, default="terminal", help="default: terminal")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="write to this file")
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON: the rows of the CSV with provenance")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError where no record matches, or nothing is recorded."""
    if args.experiment:
        return _of_experiment(args)
    records = selection.select(recorded([selection.open_one(args.results)]), args)
    metrics = args.metric.split(",") if args.metric else ()
    cells = entries(group_runs(records), metrics)
    selection.check_metrics(metrics, records)
    if not cells:
        raise ConfigError("the matching runs have none of these metrics; try --metric all")
    if args.json:
        formats.print_json([tables.as_dict(entry) for entry in cells])
    else:
        show(tables.sheet(cells), args.format, args.out)
    if args.later and not args.json and args.format == "terminal":
        _print_later(cells)
    return 0


def _of_experiment(args: argparse.Namespace) -> int:
    from gpbench.analysis import experiment as reports
    from gpbench.experiments import definition, plan
    from gpbench.experiments.status import require_recorded

    flags = [
        f"--{name}"
        for name in ("metric", "dataset", "method", "protocol", "precision", "setting", "later")
        if getattr(args, name)
    ]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: {args.experiment} says itself what is in its table; leave it out")
    experiment, cells = plan.load(args.experiment, args.preset, args.config_dir, selection.open_one(args.results))
    if not experiment.table:
        raise ConfigError(f"{experiment.id} is a figure: gpbench plot {experiment.id}")
    preset = args.preset or definition.PRESETS[0]
    require_recorded(experiment.id, preset, cells)
    sheet = reports.table(experiment, preset, cells, MARKS[args.format])
    formats.print_json(sheet.rows) if args.json else show(sheet, args.format, args.out)
    return 0


def _print_later(entries: Sequence[Entry]) -> None:
    """Prints what later papers publish on the data sets and metrics of the table."""
    rows = [
        (dataset, metric, p.method, p.setting, formats.number(p.value), formats.number(p.err), p.source, p.note)
        for dataset, metric in dict.fromkeys((e.cell.dataset, e.metric) for e in entries)
        for p in published.later(dataset, metric)
    ]
    print()
    header = ("data set", "metric", "method", "setting", "value", "err", "source", "note")
    formats.print_table(header, rows, "later papers")
