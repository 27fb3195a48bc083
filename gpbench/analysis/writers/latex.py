"""A sheet as LaTeX that a paper can include: numbers as floats with rules of booktabs, words as long tables of
tabularray, which breaks their cells and pages."""

import re
from collections.abc import Mapping, Sequence

from gpbench.analysis.sheets import LETTERS, AnyText, Grid, Sheet, text_of
from gpbench.analysis.writers.terminal import chunks, heads
from gpbench.errors import printable

_WIDTH, _GAP = 76, 3
"""Characters that fit the line of an article in \\footnotesize, with the space between columns; those of the space."""
_SIZES = {6: r"\footnotesize", 8: r"\scriptsize"}  # of words by most columns; of more \\tiny
_LONG = 12  # characters from which a word can be broken
_BREAKS = re.compile(r"(\\_|/|:|=|,|\(|\|)")  # where a long word can be broken
_MARKS = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "placed": r"\textbf{%s}", "": "%s"}
_MARK_NAMES = {"best": r"\textbf{Bold}", "tied": r"\underline{underlined}", "placed": r"\textbf{Bold}"}


def as_latex(sheet: Sheet) -> str:
    """A table for each grid, notes below it, and what was run as comments; without a title the bare tables."""
    grids = [*sheet.grids, *sheet.twins]
    lines = [rf"% needs \usepackage{{booktabs{',tabularray' * any(grid.prose for grid in grids)}}}"]
    for number, grid in enumerate(grids, 1):
        lines += ["", *(_words if grid.prose else _numbers)(sheet, grid, number)]
    return "\n".join([*lines, "", *(f"% {_tex(line)}" for line in (*sheet.summary, *sheet.lines))]).rstrip("\n")


def _caption(sheet: Sheet, grid: Grid) -> str:
    marked = {cell.mark for cell in grid.cells if cell.text}
    legend = [f"{_MARK_NAMES[mark]}: {_tex(text)}." for mark, text in sheet.marks.items() if mark in marked]
    titles = [_tex(sheet.title), *([_text(grid.title, sheet.notes)] if text_of(grid.title).text else [])]
    return " ".join([*map(_sentence, titles), *legend])


def _label(sheet: Sheet, number: int) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", (sheet.name or "gpbench").lower()).strip("-")
    return f"tab:{slug}-{number}"


def _footnotes(sheet: Sheet, grid: Grid) -> dict[str, str]:
    """The notes of a grid by their letters."""
    notes, of_grid = sheet.notes, dict.fromkeys(note for cell in grid.cells for note in cell.notes)
    return {notes[note].translate(LETTERS): _sentence(_tex(note)) for note in of_grid}


def _numbers(sheet: Sheet, grid: Grid, number: int) -> list[str]:
    pieces = chunks(grid, _WIDTH, notes := sheet.notes, " " * _GAP)
    joined = [line for piece in pieces for line in (r"\par\medskip", *_tabular(piece, notes))][1:]
    if not sheet.title:
        return [r"\begingroup\footnotesize\setlength{\parindent}{0pt}", *joined, r"\endgroup"]
    footnotes = [rf"{_raised([letters])}~{note}\par" for letters, note in _footnotes(sheet, grid).items()]
    return [
        r"\begin{table}[htbp]",
        r"\centering\footnotesize",
        rf"\caption{{{_caption(sheet, grid)}}}",
        rf"\label{{{_label(sheet, number)}}}",
        *joined,
        *([r"\par\smallskip\raggedright"] if footnotes else []),
        *footnotes,
        r"\end{table}",
    ]


def _words(sheet: Sheet, grid: Grid, number: int) -> list[str]:
    notes = sheet.notes
    footnotes = [f"note{{{letters}}}={{{note}}}" for letters, note in _footnotes(sheet, grid).items()]
    titled = [f"caption={{{_caption(sheet, grid)}}}", f"label={{{_label(sheet, number)}}}", *footnotes]
    rows = [[_breakable(_text(text, notes)) for text in row] for row in (grid.header, *grid.rows)]
    size = next((size for most, size in _SIZES.items() if len(grid.header) <= most), r"\tiny")
    form = f"colspec={{*{{{len(grid.header)}}}{{X[-1,l]}}}}, cells={{font={size}}}, rowhead=1, rowsep=1pt, colsep=3pt"
    return [
        rf"\begin{{longtblr}}[{', '.join(titled if sheet.title else ['label=none', 'entry=none'])}]",
        f"{{{form}, hline{{1,Z}}={{0.08em}}, hline{{2}}={{0.05em}}}}",
        *map(_ampersands, rows),
        r"\end{longtblr}",
    ]


def _tabular(grid: Grid, notes: Mapping[str, str]) -> list[str]:
    header, *rows = ([_text(text, notes) for text in row] for row in (grid.header, *grid.rows))
    header = [_stacked(text, notes) if c else name for c, (text, name) in enumerate(zip(grid.header, header))]
    return [
        rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
        r"\toprule",
        _ampersands(header),
        r"\midrule",
        *map(_ampersands, rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]


def _stacked(text: AnyText, notes: Mapping[str, str]) -> str:
    lines = [_tex(line) for line in heads(text_of(text).text)] or [""]
    raised = _raised(text_of(text).letters(notes))
    joined = r" \\ ".join(lines) + raised
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _breakable(text: str) -> str:
    """The text with breaks within its long words, such as paths."""
    return " ".join(_BREAKS.sub(r"\1\\allowbreak{}", w) if len(w) > _LONG else w for w in text.split(" "))


def _text(text: AnyText, notes: Mapping[str, str]) -> str:
    cell = text_of(text)
    return _MARKS[cell.mark if cell.text else ""] % _tex(cell.text) + _raised(cell.letters(notes))


def _raised(letters: Sequence[str]) -> str:
    """The letters of notes, with commas between the notes."""
    plain = ",".join(letter.translate(LETTERS) for letter in letters)
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
    """The text without commands and dashes; one that begins with [ or * would be an option of the end of a line."""
    return ("{}" if text.startswith(("[", "*")) else "") + printable(text).translate(_TEX).replace("--", "-{}-")
