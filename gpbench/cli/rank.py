"""`gpbench rank`: average ranks of methods over data sets, and which methods are significantly different."""

import argparse
from typing import Any

from gpbench.api import comparisons
from gpbench.cli import options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "rank",
        description="Average ranks of methods over data sets, with Friedman's test and the critical difference of"
        " Nemenyi's (Demšar 2006), as a table and as a diagram.",
        epilog="example: gpbench rank --method sep,svi,gfitc --setting m=15% --out ranks.pdf",
    )
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse for regression")
    options.add_filters(parser)
    parser.add_argument(
        "--test",
        choices=("nemenyi", "wilcoxon"),
        default="nemenyi",
        help="nemenyi (default), or wilcoxon with Holm's correction",
    )
    parser.add_argument(
        "--all-settings", action="store_true", help="rank every setting of a method; default: one, by a stated rule"
    )
    options.add_output(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `gpbench.rank` does."""
    table = comparisons.rank(
        metric=args.metric,
        test=args.test,
        all_settings=args.all_settings,
        results=options.results(args),
        **options.filters(args),
    )
    options.write_table(args, table)
    return 0
