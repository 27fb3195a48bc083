"""`gpbench rank`: average ranks of methods over data sets, and which of them are not told apart."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gpbench.cli import output, selection
from gpbench.report.formats import FORMATS, Grid, Sheet
from gpbench.report.tables import runs_line

if TYPE_CHECKING:
    from gpbench.report.ranks import Ranking


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "rank",
        help="average ranks of methods over data sets, as table and diagram",
        description="Average ranks of methods over data sets, with Friedman's test and the critical difference of"
        " Nemenyi's (Demšar 2006), as a table and as a diagram.",
        epilog="example: gpbench rank --method sep,svi,gfitc --setting m=15% --out ranks.pdf",
    )
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse where there is none")
    selection.add_filters(parser)
    parser.add_argument("--test", choices=("nemenyi", "wilcoxon"), default="nemenyi",
                        help="nemenyi (default), or wilcoxon with Holm's correction")  # fmt: skip
    output.add_output(parser, FORMATS)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError for fewer than two methods or data sets."""
    from gpbench.report.cells import cells
    from gpbench.report.ranks import ranking

    records = selection.selected(selection.newest(selection.gathered(selection.stores(args.results))), args)
    made = ranking(cells(records, presets_apart=False), selection.one_metric(args.metric, records), args.test)

    def picture() -> Any:
        from gpbench.report.figures.ranks import draw

        return draw(made)

    return output.output(args, sheet(made, records), vars(made), picture)


def sheet(made: "Ranking", records: Iterable[dict]) -> Sheet:
    """The ranking as a table: with each method the last one below it that is not told from it."""
    from gpbench.report.ranks import told

    reach = {name: made.methods[max((last for first, last in made.groups if first <= k <= last), default=k)]
             for k, name in enumerate(made.methods)}  # fmt: skip
    rows = [{"method": m, "average_rank": a, "not_told_from": reach[m]} for m, a in zip(made.methods, made.average)]
    grid = Grid(
        f"average rank, {made.metric}",
        ("method", "average rank", "not told apart down to"),
        tuple((m, f"{a:.3f}", reach[m] if reach[m] != m else "") for m, a in zip(made.methods, made.average)),
    )
    return Sheet(heads=runs_line(records), grids=[grid], feet=told(made), rows=rows)
