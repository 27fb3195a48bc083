"""Sheets of tables, written as plain text, CSV, Markdown or LaTeX."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpbench.analysis.text import aligned
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
