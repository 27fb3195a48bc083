"""`gpbench verify`: whether recorded runs support what the papers assert."""

import argparse
from typing import Any

from gpbench.api import tables
from gpbench.cli import options


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "verify",
        description="A verdict on every claim of a paper: supported, contradicted, undecided, or not run.  Exit code 1"
        " where one is contradicted.",
        epilog="examples: gpbench verify sep; gpbench verify sep/c01 --json; gpbench verify sep/table1; gpbench verify"
        " mine --config-dir DIR",
    )
    parser.add_argument(
        "name",
        nargs="?",
        default="all",
        metavar="NAME",
        help="a paper, an experiment, a claim (sep/c01), or a file of yours; default: all",
    )
    parser.add_argument("--preset", choices=("quick", "full"), help="default: that of which more is recorded")
    parser.add_argument("--protocol", metavar="NAME", help="only runs under this protocol")
    options.add_config_dir(parser, "claims/ files")
    options.add_output(parser, picture=False)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code, 1 where a claim is contradicted.  Raises ConfigError."""
    table = tables.verify(
        args.name, preset=args.preset, protocol=args.protocol, config_dir=args.config_dir, results=options.results(args)
    )
    options.write_table(args, table)
    return int(any(row["verdict"] == "contradicted" for row in table.data))
