"""Sheets of tables, and the text formats in which they are written.

A function of `gpbench.analysis` makes a `Sheet` from records.  A sheet is written by `FORMATS[name](sheet)`, shown in a
notebook as HTML, and read by a program as `sheet.rows` or `sheet.frame`:

    sheet = tables.sheet(cells.entries(cells.group_runs(records)))
    print(FORMATS["md"](sheet))
"""

import csv
import html
import io
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpbench.analysis.printing import aligned
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


_BEST, _TIED, _END = map(chr, random.SystemRandom().sample(range(0xE000, 0xF900), 3))
"""Private-use characters around a marked value, which each format replaces by its own marks.

They differ from process to process, so that no name in a record can have them.
"""
_MARK = {"best": _BEST, "tied": _TIED}
_MARKED = re.compile(f"([{_BEST}{_TIED}])(.*?){_END}")
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


_MD = re.compile(
    r"""[`*~$]                                  # code, emphasis, strike-through, formulas
    |\](?=[(\[:])                               # the middle of a link or of a reference
    |\\(?=[!-/:-@\[-`{-~])                      # a backslash that would escape what follows
    |(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])         # emphasis; inside a word it is a letter""",
    re.X,
)


def _md(text: str) -> str:
    """The text without markup; "<" before a space, a digit or "=" begins no element and stays."""
    text = _MD.sub(r"\\\g<0>", printable(text))
    text = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    text = re.sub(r"<(?=[^\s\d=])", "&lt;", text)
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
    """The text without commands; one that begins with [ or * would be an option of the line's end before it."""
    return _replace_marks("{}" * text.startswith(("[", "*")) + printable(text).translate(_TEX), "latex")


def _html(text: str) -> str:
    return _replace_marks(html.escape(printable(text)), "html")
