"""`gpbench compare`: paired differences between two methods, protocols, presets, precisions or commits."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpbench.analysis.formats import FORMATS
from gpbench.cli import output, selection

if TYPE_CHECKING:
    from gpbench.analysis.cells import CellRuns
    from gpbench.analysis.differences import Difference, Side
    from gpbench.records.store import Store


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "compare",
        help="two methods, protocols, presets or commits, split by split",
        description="Paired differences A - B on every data set, over the splits that both have.",
        epilog="examples: gpbench compare sep svi --setting m=15% --out difference.png;"
        " gpbench compare commit:1a2b commit:3c4d --results before --results after",
    )
    add_sides(parser)
    output.add_output(parser, FORMATS)
    parser.set_defaults(func=run)


def add_sides(parser: Any) -> None:
    """Adds A, B, --metric and the filters of records."""
    sides = "method:sep, protocol:clean, preset:full, precision:float32 or commit:1a2b; the kind is optional"
    parser.add_argument("a", metavar="A", help=sides)
    parser.add_argument("b", metavar="B", help="another one of the same kind")
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse for regression, where both have it")
    selection.add_filters(parser)


def read_differences(
    args: argparse.Namespace, stores: "Sequence[Store]"
) -> "tuple[Side, Side, list[Difference], list[CellRuns]]":
    """Both sides, their differences on every data set, and the cells without a partner.

    Raises ConfigError for ambiguous sides, or without a common split.
    """
    from gpbench.analysis import differences
    from gpbench.records.stores import latest, recorded

    records = selection.select(recorded(stores), args)
    a, b = differences.parse_sides(args.a, args.b, records)
    # two commits have the same runs in two folders: the latest of each side counts
    records = [record for side in (a, b) for record in latest(r for r in records if side.has(r))]
    metric = selection.one_metric(args.metric, records, differences.shared_metrics(a, b, records))
    return a, b, *differences.paired_differences(a, b, records, metric)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError as `read_differences` does."""
    from gpbench.analysis import differences, row_differences

    stores = selection.open_stores(args.results)
    a, b, pairs, unmatched = read_differences(args, stores)

    def picture() -> Any:
        from gpbench.report.figures.comparisons import draw_differences

        return draw_differences(a, b, pairs)

    sheet = differences.sheet(a, b, pairs, unmatched)
    sheet = replace(sheet, feet=[*sheet.feet, *row_differences.lines(pairs, selection.predictions_of(stores))])
    return output.write_output(args, sheet, sheet.rows, picture)
