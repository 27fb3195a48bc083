"""`gpbench power`: which difference the recorded splits of two methods, protocols or presets can show."""

import argparse
from typing import Any

from gpbench.api import comparisons
from gpbench.cli import compare, options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "power",
        description="For every data set, from the splits that both sides have: the smallest difference A - B that so"
        " many splits show, and the number of splits that the observed one needs, at 5 % and 80 % power.",
        epilog="example: gpbench power sep svi --setting m=15%",
    )
    compare.add_sides(parser)
    options.add_output(parser, picture=False)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `gpbench.power` does."""
    table = comparisons.power(
        args.a, args.b, metric=args.metric, results=options.results(args), **options.filters(args)
    )
    options.write_table(args, table)
    return 0
