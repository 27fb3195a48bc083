"""Sheets of tables, written as plain text, CSV, Markdown or LaTeX."""

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.errors import printable


@dataclass(frozen=True)
class Marks:
    """What surrounds the best value of a row, and the values that are not significantly different from it."""

    best: tuple[str, str]
    tied: tuple[str, str]

    def on(self, text: str, mark: str) -> str:
        """The text with its mark, which is "best", "tied" or ""."""
        before, after = {"best": self.best, "tied": self.tied}.get(mark, ("", ""))
        return before + text + after


MARKS = {
    "terminal": Marks(("", "*"), ("", "≈")),
    "csv": Marks(("", ""), ("", "")),
    "md": Marks(("**", "**"), ("*", "*")),
    "latex": Marks(("\ue000", "\ue002"), ("\ue001", "\ue002")),  # letters of nobody's, which `_tex` makes commands of
}


@dataclass(frozen=True)
class Grid:
    """The table of one metric as text; the first column has the names of the rows."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Sheet:
    """Grids with lines of text above and below them.  `rows` are the same values for CSV and JSON."""

    heads: Sequence[str]
    grids: Sequence[Grid]
    feet: Sequence[str]
    rows: Sequence[Mapping[str, object]]


def chunks(grid: Grid, width: int | None) -> list[Grid]:
    """Splits a grid by columns into grids that fit the width in characters; None is unlimited."""
    if width is None:
        return [grid]
    widths = [max(map(len, column)) + 3 for column in zip(grid.header, *grid.rows)]
    groups: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if groups[-1] and widths[0] + sum(widths[c] for c in groups[-1]) + widths[column] > width:
            groups.append([])
        groups[-1].append(column)
    return [
        Grid(grid.title, tuple(grid.header[c] for c in columns), tuple(tuple(r[c] for c in columns) for r in grid.rows))
        for columns in ((0, *group) for group in groups)
    ]


def as_csv(sheet: Sheet) -> str:
    """One line per row, numbers to 8 digits; a value that does not apply is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.rows[0] if sheet.rows else ())
    writer.writerows([_plain(value) for value in row.values()] for row in sheet.rows)
    return out.getvalue().rstrip("\n")


def as_text(sheet: Sheet) -> str:
    """Plain text with aligned columns."""
    tables = [line for grid in sheet.grids for line in (printable(grid.title), *aligned(grid.header, grid.rows), "")]
    return "\n".join([*map(printable, sheet.heads), "", *tables, *map(printable, sheet.feet)])


def as_markdown(sheet: Sheet) -> str:
    """A Markdown table for each grid, between the lines of text."""
    lines = [*(_md(line) + "  " for line in sheet.heads), ""]
    for grid in sheet.grids:
        lines += [f"**{_md(grid.title)}**", "", _bars(grid.header), _bars(["---"] * len(grid.header))]
        lines += [*map(_bars, grid.rows), ""]
    return "\n".join([*lines, *(_md(line) + "  " for line in sheet.feet)])


def as_latex(sheet: Sheet) -> str:
    """A `tabular` for each grid, between the lines of text; needs the LaTeX package booktabs."""
    lines = [_tex(line) + r"\\" for line in sheet.heads]
    for grid in sheet.grids:
        lines += ["", _tex(grid.title) + r"\\", rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}", r"\toprule"]
        lines += [_ampersands(grid.header), r"\midrule", *map(_ampersands, grid.rows), r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, "", *(_tex(line) + r"\\" for line in sheet.feet)])


FORMATS = {"terminal": as_text, "csv": as_csv, "md": as_markdown, "latex": as_latex}


def _plain(value: object) -> str:
    """The cell of a CSV file.  A text that a spreadsheet would take for a formula has an apostrophe before it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)
    return "'" * (value.startswith(("=", "+", "-", "@")) and not _is_number(value)) + printable(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _md(text: str) -> str:
    """The text without HTML: "<" before a space is none."""
    text = re.sub(r"<(?=[^\s\d=])", "&lt;", printable(text))
    return re.sub(r"^>", "&gt;", text)


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_md(cell).replace("|", r"\|") for cell in cells) + " |"


_TEX = str.maketrans(
    {character: "\\" + character for character in "%&_#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    | {"<": "$<$", ">": "$>$", "|": "$|$"}  # other letters in the fonts of LaTeX's default encoding
    | {"\ue000": r"\textbf{", "\ue001": r"\underline{", "\ue002": "}"}
    | {raised: f"$^{digit}$" for digit, raised in zip("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")}
)


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def _tex(text: str) -> str:
    return printable(text).translate(_TEX)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table: with rules on a terminal, as aligned columns elsewhere."""
    if not sys.stdout.isatty():
        print("\n".join([printable(title)] * bool(title) + aligned(header, rows)))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    ruled = Table(*header, title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        ruled.add_row(*(Text(printable(cell)) for cell in row))  # Text: square brackets are no markup
    Console().print(ruled)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are as wide as their widest cell, with two spaces between them."""
    lines = [tuple(map(printable, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in lines]


def width() -> int | None:
    """The width of the terminal in characters; None where the output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_json(value: Any) -> None:
    """Prints JSON with an indent of two spaces; raises ValueError for NaN, which is not JSON.

    Where the terminal lacks a letter, all beyond ASCII is written as JSON's escapes.
    """
    text = json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    print(text)


def number(value: float | None, stderr: float | None = None) -> str:
    """A mean to two digits of its standard error, as in "0.112 ± 0.011"; to four digits without one, "-" for None."""
    if value is None:
        return "-"
    if not stderr:
        return f"{value:.4g}"
    exponent = int(f"{stderr:e}".split("e")[1])
    if exponent < -6 or abs(value) >= 1e6:
        return f"{value:.4g} ± {stderr:.2g}"
    decimals = max(0, 1 - exponent)
    return f"{value:.{decimals}f} ± {stderr:.{decimals}f}"


def counted(n: int, noun: str) -> str:
    """A number and its noun: "1 run", "2 runs"."""
    return f"{n} {noun}{'s' * (n != 1)}"


def abridge(names: Sequence[str], most: int = 6) -> str:
    """The first of these names, and how many more there are."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sort key that orders numbers in texts by size: m=15% before m=100."""
    return [(0, float(part), "") if part.isdecimal() else (1, 0.0, part) for part in re.split(r"(\d+)", text) if part]
