"""`gpbench power`: what the recorded splits of two methods, protocols, presets, precisions or commits can show."""

import argparse
from typing import Any

from gpbench.analysis.formats import FORMATS
from gpbench.cli import compare, output, selection


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "power",
        help="which difference recorded splits can show, and how many the observed one needs",
        description="For every data set, from the splits that both sides have: the smallest difference A - B that so"
        " many splits show, and the number of splits that the observed one needs, at 5 % and 80 % power.",
        epilog="example: gpbench power sep svi --setting m=15%",
    )
    compare.add_sides(parser)
    output.add_output(parser, FORMATS, picture=False)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `compare` does, and where no test is possible."""
    from gpbench.analysis import power

    a, b, differences, _ = compare.read_differences(args, selection.open_stores(args.results))
    sheet = power.sheet(a, b, differences)
    return output.write_output(args, sheet, sheet.rows)
