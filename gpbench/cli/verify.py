"""`gpbench verify`: whether what the papers assert holds by recorded runs."""

import argparse
from typing import Any

from gpbench.api import tables
from gpbench.cli import options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "verify",
        description="A grade for every claim of a paper: proved, holds, mostly holds, leans for, mixed, leans against,"
        " fails, refuted, not run or not here.  Exit code 1 where one fails or is refuted.",
        epilog="examples: gpbench verify sep; gpbench verify sep/c01 --why; gpbench verify sep/table1; gpbench verify"
        " mine --config-dir DIR",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="all",
        metavar="NAME",
        help="a paper, an experiment, a claim (sep/c01), or a file of yours; default: all",
    )
    parser.add_argument("--preset", choices=("quick", "full"), help="default: both, the full one where it has a number")
    parser.add_argument("--protocol", metavar="NAME", help="only runs under this protocol")
    parser.add_argument("--why", action="store_true", help="every clause, interval and p-value")
    options.add_config_dir(parser, "claims/ files")
    options.add_output(parser, picture=False, crate=False)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code, 1 where a claim fails or is refuted.  Raises ConfigError."""
    table = tables.verify(
        args.name,
        preset=args.preset,
        protocol=args.protocol,
        details=args.why,
        config_dir=args.config_dir,
        results=options.results(args),
    )
    options.write_table(args, table)
    return int(any(row["verdict"] in ("fails", "refuted") for row in table.data))
