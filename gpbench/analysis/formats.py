"""Sheets of tables and the text formats in which they are written; numbers, names and JSON on a terminal.

A function of `gpbench.analysis` makes a `Sheet` from records.  A sheet is written by `FORMATS[name](sheet)`, shown in a
notebook as HTML, and read by a program as `sheet.rows` or `sheet.frame`:

    sheet = tables.sheet(cells.entries(cells.group_runs(records)))
    print(FORMATS["md"](sheet))
"""

import csv
import html
import io
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpbench.errors import printable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Grid:
    """A table of texts.

    Args:
        title: Name of what the cells are, as the metric with its unit.
        header: Names of the columns.
        rows: Cells by row; the first cell of a row is its name.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Sheet:
    """Grids with lines of text above and below them, and their numbers for programs.

    Args:
        heads: Lines above the grids.
        grids: Tables of texts, whose cells may have marks (`marked`).
        feet: Lines below the grids: legend, footnotes, provenance.
        rows: Numbers of the grids by name, for CSV, JSON and pandas.
    """

    heads: Sequence[str]
    grids: Sequence[Grid]
    feet: Sequence[str]
    rows: Sequence[Mapping[str, object]]

    @property
    def frame(self) -> "pd.DataFrame":
        """The rows in pandas."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows])

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return _as_html(self)


_MARK = {"best": "\ue000", "tied": "\ue001"}
_END = "\ue002"
"""Private-use characters around a marked value, which each format replaces by its own marks."""
_MARKED = re.compile(f"([\ue000\ue001])(.*?){_END}")
_MARKS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "terminal": {"best": ("", "*"), "tied": ("", "≈")},
    "md": {"best": ("**", "**"), "tied": ("*", "*")},
    "latex": {"best": (r"\textbf{", "}"), "tied": (r"\underline{", "}")},
    "html": {"best": ("<b>", "</b>"), "tied": ("<u>", "</u>")},
}


def marked(text: str, mark: str) -> str:
    """Marks the text of a value as "best" of its row or "tied" with the best; "" marks nothing."""
    return _MARK[mark] + text + _END if mark else text


def with_marks_of(sheet: Sheet, format: str) -> Sheet:
    """The sheet with the marks that a format has in place of those of `marked`."""

    def cells(row: Sequence[str]) -> tuple[str, ...]:
        return tuple(_replace_marks(text, format) for text in row)

    grids = [replace(grid, rows=tuple(map(cells, grid.rows))) for grid in sheet.grids]
    return replace(sheet, grids=grids, feet=cells(sheet.feet))


def _replace_marks(text: str, format: str) -> str:
    marks = dict(zip(_MARK.values(), _MARKS[format].values()))
    return _MARKED.sub(lambda match: match[2].join(marks[match[1]]), text)


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
    sheet = with_marks_of(sheet, "terminal")
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


def _as_html(sheet: Sheet) -> str:
    """A `<table>` for each grid, between paragraphs of text, without styles; all text is escaped."""
    heads, feet = ([f"<p>{_html(line)}</p>" for line in lines] for lines in (sheet.heads, sheet.feet))
    return "\n".join([*heads, *map(grid_html, sheet.grids), *feet])


def grid_html(grid: Grid) -> str:
    """A grid as the element `<table>`; numbers have the class `number`."""
    name, *columns = map(_html, grid.header)
    header = f'<th scope="col">{name}</th>' + "".join(f'<th scope="col" class="number">{text}</th>' for text in columns)
    lines = ["<table>", f"<caption>{_html(grid.title)}</caption>", f"<thead><tr>{header}</tr></thead>", "<tbody>"]
    for row in grid.rows:
        name, *cells = map(_html, row)
        numbers = "".join(f'<td class="number">{text}</td>' for text in cells)
        lines.append(f'<tr><th scope="row">{name}</th>{numbers}</tr>')
    return "\n".join([*lines, "</tbody>", "</table>"])


FORMATS: Mapping[str, Callable[[Sheet], str]] = {
    "terminal": as_text,
    "csv": as_csv,
    "md": as_markdown,
    "latex": as_latex,
    "html": _as_html,
}
"""Functions that write a sheet, by the name of their format."""


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
    """The text without HTML; "<" before a space, a digit or "=" begins no element and stays."""
    text = re.sub(r"<(?=[^\s\d=])", "&lt;", printable(text))
    return _replace_marks(re.sub(r"^>", "&gt;", text), "md")


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_md(cell).replace("|", r"\|") for cell in cells) + " |"


_TEX = str.maketrans(
    {character: "\\" + character for character in "%&_#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    | {"<": "$<$", ">": "$>$", "|": "$|$"}  # other letters in the fonts of LaTeX's default encoding
    | {raised: f"$^{digit}$" for digit, raised in zip("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")}
)


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def _tex(text: str) -> str:
    return _replace_marks(printable(text).translate(_TEX), "latex")


def _html(text: str) -> str:
    return _replace_marks(html.escape(printable(text)), "html")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table: ruled on a terminal, in aligned columns elsewhere."""
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
    """Prints JSON with an indent of two spaces, in ASCII where the terminal lacks a letter.

    Raises:
        ValueError: A number is NaN or infinite, which JSON has not.
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
    return [(0, float(word), "") if word.isdecimal() else (1, 0.0, word) for word in re.split(r"(\d+)", text) if word]
