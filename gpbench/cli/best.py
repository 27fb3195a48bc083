"""`gpbench best`: which methods have the best scores on data of some task and size, and which differences are shown."""

import argparse
from typing import Any

from gpbench.analysis.kinds import TASKS
from gpbench.api import best_methods as answers
from gpbench.cli import options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "best",
        description="Which methods have the best scores on recorded data of some task and size, by held-out rows under"
        " one protocol, and which of the differences are shown by tests.",
        epilog="examples: gpbench best --task regression --rows 30k-60k; gpbench best --data boston --seconds 60",
    )
    parser.add_argument("--task", choices=TASKS, help="default: the task of --data")
    parser.add_argument("--rows", metavar="A-B", help="rows, as 30k-60k, 30k- or -60k; 50k is 25k to 100k")
    parser.add_argument("--inputs", metavar="A-B", help="numbers of inputs, written likewise; default: any")
    parser.add_argument(
        "--data",
        metavar="NAME|TABLE|CARD",
        help="a data set, or the path of its table or card: its task, and half to twice its rows",
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="only methods that train in S seconds on average")
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse for regression")
    parser.add_argument("--protocol", default="clean", metavar="NAME", help="protocol of the runs; default: clean")
    parser.add_argument("--all", action="store_true", help="show all methods instead of the first twelve")
    options.add_config_dir(parser, "dataset/ cards")
    options.add_output(parser, picture=False, json="the answer, and a row for each method and data set")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `gpbench.best` does."""
    table = answers.best(
        task=args.task,
        rows=args.rows,
        inputs=args.inputs,
        data=args.data,
        seconds=args.seconds,
        metric=args.metric,
        protocol=args.protocol,
        whole=args.all,
        config_dir=args.config_dir,
        results=options.results(args),
    )
    options.write_table(args, table)
    return 0
