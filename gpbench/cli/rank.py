"""`gpbench rank`: average ranks of methods over data sets, and which methods are significantly different."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpbench.analysis.formats import FORMATS, Grid, Sheet
from gpbench.analysis.provenance import provenance_lines
from gpbench.cli import output, selection
from gpbench.records.record import Record

if TYPE_CHECKING:
    from gpbench.analysis.ranks import Ranking


def add_parser(subparsers: Any) -> None:
    """Adds the verb to the parser."""
    parser = subparsers.add_parser(
        "rank",
        help="average ranks of methods over data sets, as table and diagram",
        description="Average ranks of methods over data sets, with Friedman's test and the critical difference of"
        " Nemenyi's (Demšar 2006), as a table and as a diagram.",
        epilog="example: gpbench rank --method sep,svi,gfitc --setting m=15% --out ranks.pdf",
    )
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse for regression")
    selection.add_filters(parser)
    parser.add_argument(
        "--test",
        choices=("nemenyi", "wilcoxon"),
        default="nemenyi",
        help="nemenyi (default), or wilcoxon with Holm's correction",
    )
    output.add_output(parser, FORMATS)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Runs the verb and returns the exit code.  Raises ConfigError for fewer than two methods or data sets."""
    from gpbench.analysis.cells import group_runs
    from gpbench.analysis.ranks import ranking
    from gpbench.records.stores import latest, recorded

    records = latest(recorded(selection.open_stores(args.results)))
    records = selection.select(records, args)
    ranks = ranking(group_runs(records, by_preset=False), selection.one_metric(args.metric, records), args.test)

    def picture() -> Any:
        from gpbench.report.figures.comparisons import draw_ranking

        return draw_ranking(ranks)

    return output.write_output(args, sheet(ranks, records), vars(ranks), picture)


def sheet(ranking: "Ranking", records: Sequence[Record]) -> Sheet:
    """The ranking as a table, with the last method below each that is not significantly different from it."""
    from gpbench.analysis.cells import imported_note
    from gpbench.analysis.ranks import ranking_notes

    methods, groups = ranking.methods, ranking.groups
    reach = [
        methods[max((last for first, last in groups if first <= k <= last), default=k)] for k in range(len(methods))
    ]
    lines = list(zip(methods, ranking.average, reach))
    grid = Grid(
        f"average rank, {ranking.metric}",
        ("method", "average rank", "no significant difference down to"),
        tuple((method, f"{average:.3f}", last if last != method else "") for method, average, last in lines),
    )
    rows = [
        {"method": method, "average_rank": average, "no_significant_difference_to": last}
        for method, average, last in lines
    ]
    feet = [*ranking_notes(ranking), *filter(None, [imported_note(records)])]
    return Sheet(heads=provenance_lines(records), grids=[grid], feet=feet, rows=rows)
