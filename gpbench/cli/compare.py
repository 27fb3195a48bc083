"""`gpbench compare`: paired differences between two methods, protocols, presets or commits."""

import argparse
from typing import Any

from gpbench.cli import output, selection
from gpbench.report.formats import FORMATS


def add_parser(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "compare",
        help="two methods, protocols, presets or commits, split by split",
        description="Paired differences A - B on every data set, over the splits that both have.",
        epilog="examples: gpbench compare sep svi --setting m=15% --out difference.png;"
        " gpbench compare commit:1a2b commit:3c4d --results before --results after",
    )
    what = "method:sep, protocol:clean, preset:full, precision:float32, commit:1a2b; the kind may be left out"
    parser.add_argument("a", metavar="A", help=what)
    parser.add_argument("b", metavar="B", help="the other one, of the same kind")
    parser.add_argument("--metric", metavar="NAME", help="default: nll, or rmse where there is none")
    selection.add_filters(parser)
    output.add_output(parser, FORMATS)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Run the verb; the exit code.  Raises ConfigError for sides that are unclear, or have no split in common."""
    from gpbench.report import compare

    records = selection.selected(selection.gathered(selection.stores(args.results)), args)
    a, b = compare.sides(args.a, args.b, records)
    # the same run of two commits lies in two folders: of either side the newest counts
    records = [record for side in (a, b) for record in selection.newest(r for r in records if side.has(r))]
    found, alone = compare.differences(a, b, records, selection.one_metric(args.metric, records))

    def picture() -> Any:
        from gpbench.report.figures.compare import draw

        return draw(a, b, found)

    return output.output(args, compare.sheet(a, b, found, alone), [compare.row(d) for d in found], picture)
