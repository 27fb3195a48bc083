"""A sheet as LaTeX that a paper can include: a `table` for each grid, with rules of booktabs and a caption."""

import re
from collections.abc import Mapping, Sequence

from gpbench.analysis.sheets import LETTERS, AnyText, Grid, Sheet, text_of
from gpbench.analysis.writers.terminal import chunks
from gpbench.errors import printable

_WIDTH = 84
"""Characters that fit the line of an article in \\footnotesize, with the space between columns."""
_MARKS = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "": "%s"}
_MARK_NAMES = {"best": r"\textbf{Bold}", "tied": r"\underline{underlined}"}


def as_latex(sheet: Sheet) -> str:
    """A float for each grid, notes below it, and what was run as comments; needs the package booktabs.

    A sheet without title is written as bare `tabular`s.
    """
    notes = sheet.notes
    lines = [r"% needs \usepackage{booktabs}"]
    for number, grid in enumerate((*sheet.grids, *sheet.twins), 1):
        tabulars = [_tabular(piece, notes) for piece in ([grid] if grid.prose else chunks(grid, _WIDTH, " & "))]
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
    n = len(grid.header)
    columns = rf"*{{{n}}}{{p{{{0.9 / n:.2f}\linewidth}}}}" if grid.prose else "l" + "r" * (n - 1)
    header, *rows = ([_text(text, notes) for text in row] for row in (grid.header, *grid.rows))
    body = map(_ampersands, rows)
    return [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _ampersands(header),
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]


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
