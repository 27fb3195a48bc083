"""A sheet as LaTeX that a paper can include: a `table` for each grid, with rules of booktabs and a caption."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpbench.analysis.printing import shrunk
from gpbench.analysis.sheets import LETTERS, AnyText, Grid, Sheet, text_of
from gpbench.analysis.writers.terminal import chunks, heads
from gpbench.errors import printable

_WIDTH, _GAP = 76, 3
"""Characters that fit the line of an article in \\footnotesize, with the space between columns; those of the space."""
_LINES = 40
"""Most lines of words of a float."""
_LONG = 12
"""Characters from which a word can be broken."""
_MARKS = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "": "%s"}
_MARK_NAMES = {"best": r"\textbf{Bold}", "tied": r"\underline{underlined}"}


def as_latex(sheet: Sheet) -> str:
    """A float for each grid, notes below it, and what was run as comments; needs the package booktabs.

    A sheet without title is written as bare `tabular`s.
    """
    notes = sheet.notes
    lines = [r"% needs \usepackage{booktabs}"]
    grids = [piece for grid in (*sheet.grids, *sheet.twins) for piece in (_pages(grid) if grid.prose else [grid])]
    for number, grid in enumerate(grids, 1):
        tabulars = [_tabular(piece, notes) for piece in ([grid] if grid.prose else chunks(grid, _WIDTH, " " * _GAP))]
        joined = [line for k, tabular in enumerate(tabulars) for line in ([r"\par\medskip"] * (k > 0) + tabular)]
        lines += ["", *(_float(sheet, grid, joined, number, notes) if sheet.title else joined)]
    summary = [*sheet.summary, *sheet.remarks, *(f"{name}: {text}" for name, text in sheet.facts.items())]
    return "\n".join([*lines, "", *(f"% {_tex(printable(line))}" for line in summary)]).rstrip("\n")


def _float(sheet: Sheet, grid: Grid, tabulars: Sequence[str], number: int, notes: Mapping[str, str]) -> list[str]:
    footnotes = dict.fromkeys(note for cell in grid.cells for note in cell.notes)
    marked = {cell.mark for cell in grid.cells if cell.text}
    legend = [f"{_MARK_NAMES[mark]}: {_tex(text)}." for mark, text in sheet.marks.items() if mark in marked]
    titles = [_tex(sheet.title), *[_text(grid.title, notes)] * bool(text_of(grid.title).text)]
    slug = re.sub(r"[^a-z0-9]+", "-", (sheet.name or "gpbench").lower()).strip("-")
    return [
        r"\begin{table}[htbp]",
        r"\centering\footnotesize",
        rf"\caption{{{' '.join([*map(_sentence, titles), *legend])}}}",
        rf"\label{{tab:{slug}-{number}}}",
        *tabulars,
        *([r"\par\smallskip\raggedright"] * bool(footnotes)),
        *(rf"{_raised(notes[note])}~{_sentence(_tex(note))}\par" for note in footnotes),
        r"\end{table}",
    ]


def _tabular(grid: Grid, notes: Mapping[str, str]) -> list[str]:
    header, *rows = ([_text(text, notes) for text in row] for row in (grid.header, *grid.rows))
    columns, natural = "l" + "r" * (len(header) - 1), _natural_widths(grid)
    header = [_stacked(text, notes) if c else name for c, (text, name) in enumerate(zip(grid.header, header))]
    if grid.prose:
        columns = "l" * len(header)
        header = [_text(text, notes) for text in grid.header]
    if grid.prose and sum(natural) > _room(grid):
        widths = shrunk(natural, _room(grid))
        share = 1 - len(widths) * _GAP / _WIDTH
        columns = "".join(rf"p{{{share * width / sum(widths):.3f}\linewidth}}" for width in widths)
        header, *rows = [[rf"{{\raggedright {_breakable(cell)}\par}}" for cell in row] for row in (header, *rows)]
    return [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _ampersands(header),
        r"\midrule",
        *map(_ampersands, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _stacked(text: AnyText, notes: Mapping[str, str]) -> str:
    """The name of a column, in several lines where it is long."""
    lines = [_tex(line) for line in heads(text_of(text).text)] or [""]
    raised = _raised(text_of(text).letters(notes))
    joined = r" \\ ".join(lines) + raised
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _pages(grid: Grid) -> Iterator[Grid]:
    """Parts of a grid of words that are no longer than a page."""
    widths = shrunk(_natural_widths(grid), _room(grid))
    rows: list[tuple[AnyText, ...]] = []
    lines = 0
    for row in grid.rows:
        height = max(-(-len(text_of(text).text) // width) for text, width in zip(row, widths)) + 1
        if rows and lines + height > _LINES:
            yield replace(grid, rows=tuple(rows))
            rows, lines = [], 0
        rows.append(row)
        lines += height
    yield replace(grid, rows=tuple(rows))


def _natural_widths(grid: Grid) -> list[int]:
    return [max(len(text_of(text).text) for text in column) for column in zip(grid.header, *grid.rows)]


def _room(grid: Grid) -> int:
    """Characters of all cells of a line."""
    return _WIDTH - _GAP * len(grid.header)


def _breakable(text: str) -> str:
    """The text with breaks within its long words, such as paths."""
    return " ".join(re.sub(r"(\\_|/|:)", r"\1\\allowbreak{}", w) if len(w) > _LONG else w for w in text.split(" "))


def _text(text: AnyText, notes: Mapping[str, str]) -> str:
    cell = text_of(text)
    return _MARKS[cell.mark if cell.text else ""] % _tex(cell.text) + _raised(cell.letters(notes))


def _raised(letters: str) -> str:
    plain = ",".join(LETTERS[letter] for letter in letters)
    return rf"\textsuperscript{{{plain}}}" if plain else ""


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


_TEX = str.maketrans(
    {character: "\\" + character for character in "%&_#${}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    | {"<": "$<$", ">": "$>$", "|": "$|$", "≈": r"$\approx$", "√": r"$\surd$", "½": r"$\frac12$"}
    | {"σ": r"$\sigma$", "ρ": r"$\rho$", "ε": r"$\varepsilon$", "≤": r"$\le$", "≥": r"$\ge$", "×": r"$\times$"}
)


def _tex(text: str) -> str:
    """The text without commands; one that begins with [ or * would be an option of the line's end before it."""
    return "{}" * text.startswith(("[", "*")) + printable(text).translate(_TEX)
