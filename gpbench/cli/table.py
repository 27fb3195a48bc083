"""`gpbench table`: recorded results beside the published ones."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench.cli import selection
from gpbench.cli.output import show
from gpbench.errors import ConfigError
from gpbench.papers import published
from gpbench.report import tables, text
from gpbench.report.cells import Entry, cells, entries
from gpbench.report.formats import FORMATS, MARKS


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "table",
        help="tables of recorded results beside the published ones",
        description="Mean and standard error over splits, beside the published values: of a paper's table, or of any"
        " recorded runs.",
        epilog="examples: gpbench table sep/table1; gpbench table --dataset pima,sonar --metric nll,seconds",
    )
    parser.add_argument("experiment", nargs="?", metavar="ID",
                        help="a paper's table (`gpbench ls experiments`), from the records that are there")  # fmt: skip
    parser.add_argument("--metric", metavar="A,B", help="metrics, or all; default nll, or rmse and test_ll")
    selection.add_filters(parser)
    parser.add_argument("--later", action="store_true", help="list what later papers print on the same data, too")
    parser.add_argument("--config-dir", action="append", default=[], type=Path, metavar="DIR",
                        help="a folder with your own experiment/ files")  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="terminal", help="default: terminal")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE", help="write to this file")
    parser.add_argument("--results", type=Path, default=None, metavar="DIR", help="the results folder")
    parser.add_argument("--json", action="store_true", help="print JSON: the rows of csv, and how each was made")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError if nothing is recorded that fits."""
    if args.experiment:
        return _of_experiment(args)
    records = selection.selected(selection.gathered(selection.stores(args.results and [args.results])), args)
    metrics = args.metric.split(",") if args.metric else ()
    made = entries(cells(records), metrics)
    selection.check_metrics(metrics, records)
    if not made:
        raise ConfigError("the runs that fit have none of these metrics; try --metric all")
    if args.json:
        text.as_json([tables.as_dict(entry) for entry in made])
    else:
        show(tables.sheet(made), args.format, args.out)
    if args.later and not args.json and args.format == "terminal":
        _print_later(made)
    return 0


def _of_experiment(args: argparse.Namespace) -> int:
    from gpbench.experiments import definition, plan
    from gpbench.report import experiment as reports

    given = [f"--{name}" for name in ("metric", "dataset", "method", "protocol", "precision", "setting", "later")
             if getattr(args, name)]  # fmt: skip
    if given:
        raise ConfigError(f"{', '.join(given)}: {args.experiment} says itself what is in its table; leave it out")
    experiment, found = plan.load(args.experiment, args.preset, args.config_dir, args.results)
    if not experiment.table:
        raise ConfigError(f"{experiment.id} is a figure: gpbench plot {experiment.id}")
    made = reports.table(experiment, args.preset or definition.PRESETS[0], found, MARKS[args.format])
    text.as_json(made.rows) if args.json else show(made, args.format, args.out)
    return 0


def _print_later(made: Sequence[Entry]) -> None:
    """What later papers print on the data sets and metrics of the table."""
    rows = [
        (dataset, metric, p.method, p.setting, text.number(p.value), text.number(p.err), p.source, p.note)
        for dataset, metric in dict.fromkeys((e.cell.dataset, e.metric) for e in made)
        for p in published.later(dataset, metric)
    ]
    print()
    text.table(("data set", "metric", "method", "setting", "value", "err", "source", "note"), rows, "later papers")
