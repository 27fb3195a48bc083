"""Formats of tables: the writer of each, and the ending of a file that names it."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpbench.analysis.sheets import Grid, Sheet, Text, text_of
from gpbench.analysis.writers.html import as_html
from gpbench.analysis.writers.latex import as_latex
from gpbench.analysis.writers.markdown import as_markdown
from gpbench.analysis.writers.terminal import as_text
from gpbench.errors import ConfigError, printable


def rows_as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """One line per row, numbers to 8 digits; a value that does not apply is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return out.getvalue().rstrip("\n")


def _plain(value: object) -> str:
    """The cell of a CSV file.  A text that a spreadsheet would take for a formula has an apostrophe before it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)
    try:
        float(value)
    except ValueError:
        is_formula = value.startswith(("=", "+", "-", "@"))
    else:
        is_formula = False
    return ("'" if is_formula else "") + printable(value)


FORMATS: Mapping[str, Callable[[Sheet], str]] = {
    "terminal": as_text,
    "csv": lambda sheet: rows_as_csv(sheet.rows),
    "md": as_markdown,
    "latex": as_latex,
    "html": as_html,
}
"""Functions that write a sheet, by the name of their format."""

_ENDINGS = {".md": "md", ".tex": "latex", ".csv": "csv", ".html": "html", ".txt": "terminal"}
_NAMES = {"terminal": "plain text", "csv": "CSV", "md": "Markdown", "latex": "LaTeX", "html": "HTML"}


def format_of(out: Path | None, choice: str | None = None, others: Iterable[str] = ()) -> str:
    """The format that is chosen, or that the ending of a file names; "terminal" without an ending or a file."""
    ending = out.suffix.lower() if out else ""
    format = _ENDINGS.get(ending, "" if ending else "terminal")
    if choice and format not in ("", choice, "terminal"):  # a .txt may hold any of them
        both = f"--out {out} is {_NAMES[format]} and --format {choice} is {_NAMES[choice]}"
        raise ConfigError(f"{both}: leave one of them out")
    if not choice and not format:
        endings = ", ".join([*_ENDINGS, *others])
        raise ConfigError(f"--out {out}: the ending says the form: {endings}; or choose one by --format")
    return choice or format


def plain(sheet: Sheet) -> Sheet:
    """The grids of a sheet alone, without title, notes and provenance; the marks of the best cells stay."""

    def bare(grid: Grid) -> Grid:
        rows = tuple(tuple(replace(text_of(text), notes=()) for text in row) for row in grid.rows)
        return replace(grid, title=Text(), header=tuple(text_of(text).text for text in grid.header), rows=rows)

    return Sheet(title="", grids=[bare(grid) for grid in sheet.grids], rows=sheet.rows, name=sheet.name)
