"""Where a verb's table and picture go: the terminal, a file, or JSON."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.report import text
from gpbench.report.formats import FORMATS, Sheet, chunks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")


def add_output(parser: Any, formats: Iterable[str]) -> None:
    """Add --format, --out, --results and --json of verbs that make a table and a picture."""
    parser.add_argument("--format", choices=formats, default="terminal", help="of the table; default: terminal")
    parser.add_argument("--out", type=Path, default=None, metavar="FILE",
                        help="a picture where FILE ends in .png, .pdf or .svg; else the table")  # fmt: skip
    parser.add_argument("--results", type=Path, action="append", metavar="DIR",
                        help="the results folder; may be repeated")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def output(args: argparse.Namespace, sheet: Sheet, told: Any, picture: Callable[[], "Figure"]) -> int:
    """Prints or writes the table, and draws the picture if --out asks for one; the exit code."""
    drawn = args.out is not None and args.out.suffix in PICTURES
    if drawn:
        from gpbench.report.figures import write

        write(picture(), args.out)
    text.as_json(told) if args.json else show(sheet, args.format, None if drawn else args.out)
    return 0


def show(sheet: Sheet, format: str, out: Path | None = None) -> None:
    """A sheet on the terminal, as wide as that is, or as plain text into a file or pipe."""
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(FORMATS[format](sheet) + "\n", encoding="utf-8")
    elif format == "terminal" and text.width():
        print("\n".join(sheet.heads))
        for grid in sheet.grids:
            for part in chunks(grid, text.width()):
                text.table(part.header, part.rows, title=part.title)
        print("\n".join(sheet.feet))
    else:
        print(FORMATS[format](sheet))
