"""Output of a verb's table and picture: to the terminal, to a file, or as JSON."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench.analysis import formats
from gpbench.analysis.formats import FORMATS, Sheet, chunks
from gpbench.errors import ConfigError, StorageError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = (".png", ".pdf", ".svg")


def add_output(parser: Any, formats: Iterable[str], picture: bool = True) -> None:
    """Adds --format, --out, --results and --json, for verbs that make a table, and most of them a picture."""
    parser.add_argument("--format", choices=formats, default="terminal", help="format of the table; default: terminal")
    parser.add_argument(
        "--out",
        type=Path,
        default=None,
        metavar="FILE",
        help="write a picture if FILE ends in .png, .pdf or .svg, otherwise the table"
        if picture
        else "write the table to this file",
    )
    parser.add_argument(
        "--results", type=Path, action="append", metavar="DIR", help="a results folder; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def write_output(
    args: argparse.Namespace, sheet: Sheet, data: Any, picture: "Callable[[], Figure] | None" = None
) -> int:
    """Prints or writes the table, or `data` as JSON; draws the picture if --out names one.  Returns the exit code.

    Raises ConfigError for a picture of what has none, StorageError for a file that cannot be written.
    """
    is_picture = args.out is not None and args.out.suffix in PICTURES
    if is_picture and not picture:
        raise ConfigError(f"--out {args.out}: there is no picture of this table; name a file with another ending")
    if is_picture and picture:
        from gpbench.report.figures import write

        drawn = picture()
        try:
            write(drawn, args.out)
        except OSError as error:
            raise unwritable(args.out, error) from error
    formats.print_json(data) if args.json else show(sheet, args.format, None if is_picture else args.out)
    return 0


def unwritable(out: Path, error: OSError) -> StorageError:
    """The error for a file of --out that could not be written."""
    return StorageError(f"cannot write {out}: {error.strerror or error}; name another file with --out")


def show(sheet: Sheet, format: str, out: Path | None = None) -> None:
    """Prints a sheet, on a terminal in tables that fit its width, or writes it to a file.  Raises StorageError."""
    if out:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(FORMATS[format](sheet) + "\n", encoding="utf-8")
        except OSError as error:
            raise unwritable(out, error) from error
    elif format == "terminal" and formats.width():
        print("\n".join(map(printable, sheet.heads)))
        for grid in sheet.grids:
            for part in chunks(grid, formats.width()):
                formats.print_table(part.header, part.rows, title=part.title)
        print("\n".join(map(printable, sheet.feet)))
    else:
        print(FORMATS[format](sheet))
