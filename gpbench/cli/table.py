"""`gpbench table`: tables of recorded results beside the published values."""

import argparse
from typing import Any

from gpbench.analysis import printing
from gpbench.api import tables
from gpbench.api.tables import Table
from gpbench.cli import options
from gpbench.errors import ConfigError
from gpbench.papers import published


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "table",
        description="Print means and standard errors over splits beside the published values, for a paper's table or"
        " for any recorded runs.",
        epilog="examples: gpbench table sep/table1; gpbench table --dataset pima,sonar --metric nll,seconds",
    )
    parser.add_argument(
        "experiment", nargs="?", metavar="ID", help="a paper's table (`gpbench ls experiments`); default: all runs"
    )
    parser.add_argument("--metric", metavar="A,B", help="metrics, or all; default: nll, or rmse,test_ll for regression")
    options.add_filters(parser)
    parser.add_argument("--later", action="store_true", help="also list values of later papers on the same data")
    parser.add_argument("--missing", action="store_true", help="list the runs of ID that are not recorded")
    options.add_config_dir(parser, "experiment/ files")
    options.add_output(parser, picture=False, json="the rows of the CSV with provenance")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError where no record matches, or nothing is recorded."""
    if args.experiment and args.later:
        raise ConfigError(f"--later: {args.experiment} says itself what is in its table; leave it out")
    if args.later and (args.json or args.format not in (None, "terminal")):
        option = "--json" if args.json else f"--format {args.format}"
        raise ConfigError(f"--later: values of later papers are listed on the terminal; leave out {option}")
    table = tables.table(
        args.experiment,
        metric=args.metric,
        missing=args.missing,
        config_dir=args.config_dir,
        results=options.results(args),
        **options.filters(args),
    )
    options.write_table(args, table)
    if args.later:
        _print_later(table)
    return 0


def _print_later(table: Table) -> None:
    """Prints what later papers publish on the data sets and metrics of the table."""
    rows = [
        (dataset, metric, p.method, p.setting, printing.number(p.value), printing.number(p.err), p.source, p.note)
        for dataset, metric in dict.fromkeys((row["dataset"], row["metric"]) for row in table.data)
        for p in published.later(dataset, metric)
    ]
    print()
    header = ("data set", "metric", "method", "setting", "value", "err", "source", "note")
    printing.print_table(header, rows, "later papers")
