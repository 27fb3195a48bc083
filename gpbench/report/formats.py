"""A sheet of tables as text for terminals, spreadsheets, Markdown and LaTeX."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpbench.report.text import aligned


@dataclass(frozen=True)
class Marks:
    """What is put around the best number of a row, and around those that are not different from it."""

    best: tuple[str, str]
    tied: tuple[str, str]

    def on(self, text: str, mark: str) -> str:
        """The text with its mark: "best", "tied" or ""."""
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
    """One metric's table as text: a header, and rows whose first column names them."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Sheet:
    """What is shown together: lines above, grids, lines below; `rows` are the same numbers for programs."""

    heads: Sequence[str]
    grids: Sequence[Grid]
    feet: Sequence[str]
    rows: Sequence[Mapping[str, object]]


def chunks(grid: Grid, width: int | None) -> list[Grid]:
    """The grid cut into grids of whole columns that fit the width (characters); None fits everything."""
    if width is None:
        return [grid]
    widths = [max(map(len, column)) + 3 for column in zip(grid.header, *grid.rows)]
    groups: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if groups[-1] and widths[0] + sum(widths[c] for c in groups[-1]) + widths[column] > width:
            groups.append([])
        groups[-1].append(column)
    return [
        Grid(grid.title, tuple(grid.header[c] for c in kept), tuple(tuple(r[c] for c in kept) for r in grid.rows))
        for kept in ((0, *group) for group in groups)
    ]


def as_csv(sheet: Sheet) -> str:
    """One line per row; empty where a column does not apply, numbers to 8 digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(sheet.rows[0] if sheet.rows else ())
    writer.writerows([_plain(value) for value in row.values()] for row in sheet.rows)
    return out.getvalue().rstrip("\n")


def as_text(sheet: Sheet) -> str:
    """Aligned plain text, for pipes and files."""
    tables = [line for grid in sheet.grids for line in (grid.title, *aligned(grid.header, grid.rows), "")]
    return "\n".join([*sheet.heads, "", *tables, *sheet.feet])


def as_markdown(sheet: Sheet) -> str:
    """A Markdown table per grid, with head and feet."""
    lines = [*(line + "  " for line in sheet.heads), ""]
    for grid in sheet.grids:
        lines += [f"**{grid.title}**", "", _bars(grid.header), _bars(["---"] * len(grid.header))]
        lines += [*map(_bars, grid.rows), ""]
    return "\n".join([*lines, *(line + "  " for line in sheet.feet)])


def as_latex(sheet: Sheet) -> str:
    """A tabular per grid for LaTeX's booktabs package; head and feet as text around them."""
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
