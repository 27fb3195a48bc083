"""Sheets of tables, written as plain text, CSV, Markdown or LaTeX."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpbench.report.text import aligned


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
    "latex": Marks((r"\textbf{", "}"), (r"\underline{", "}")),
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
    tables = [line for grid in sheet.grids for line in (grid.title, *aligned(grid.header, grid.rows), "")]
    return "\n".join([*sheet.heads, "", *tables, *sheet.feet])


def as_markdown(sheet: Sheet) -> str:
    """A Markdown table for each grid, between the lines of text."""
    lines = [*(line + "  " for line in sheet.heads), ""]
    for grid in sheet.grids:
        lines += [f"**{grid.title}**", "", _bars(grid.header), _bars(["---"] * len(grid.header))]
        lines += [*map(_bars, grid.rows), ""]
    return "\n".join([*lines, *(line + "  " for line in sheet.feet)])


def as_latex(sheet: Sheet) -> str:
    """A `tabular` for each grid, between the lines of text; needs the LaTeX package booktabs."""
    lines = [_tex(line) + r"\\" for line in sheet.heads]
    for grid in sheet.grids:
        lines += ["", _tex(grid.title) + r"\\", rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}", r"\toprule"]
        lines += [_ampersands(grid.header), r"\midrule", *map(_ampersands, grid.rows), r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, "", *(_tex(line) + r"\\" for line in sheet.feet)])


FORMATS = {"terminal": as_text, "csv": as_csv, "md": as_markdown, "latex": as_latex}


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def _tex(text: str) -> str:
    special: dict[str, str | int | None] = {c: "\\" + c for c in "%&_#$"}
    marks = {raised: f"$^{digit}$" for digit, raised in zip("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")}
    return text.translate(str.maketrans(special | marks | {"±": r"$\pm$"}))
