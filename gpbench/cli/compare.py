"""`gpbench compare`: paired differences between two methods, protocols, presets, precisions or commits."""

import argparse
from typing import Any

from gpbench.api import comparisons
from gpbench.cli import options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "compare",
        description="Paired differences A - B on every data set, over the splits that both have.",
        epilog="examples: gpbench compare sep svi --setting m=15% --out difference.png;"
        " gpbench compare commit:1a2b commit:3c4d --results before --results after",
    )
    add_sides(parser)
    options.add_output(parser)
    parser.set_defaults(func=run)


def add_sides(parser: Any) -> None:
    """Adds A, B, --metric and the filters of records."""
    sides = "method:sep, protocol:clean, preset:full, precision:float32 or commit:1a2b; the kind is optional"
    parser.add_argument("a", metavar="A", help=sides)
    parser.add_argument("b", metavar="B", help="another one of the same kind")
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse for regression, where both have it")
    options.add_filters(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `gpbench.compare` does."""
    table = comparisons.compare(
        args.a, args.b, metric=args.metric, results=options.results(args), **options.filters(args)
    )
    options.write_table(args, table)
    return 0
