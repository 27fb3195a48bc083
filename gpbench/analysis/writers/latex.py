"""A sheet as LaTeX that a paper can include: a `table` for each grid, with rules of booktabs and a caption."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpbench.analysis.sheets import LETTERS, AnyText, Grid, Sheet, Text, text_of
from gpbench.analysis.writers.terminal import chunks, heads
from gpbench.errors import printable

_WIDTH, _GAP = 76, 3
"""Characters that fit the line of an article in \\footnotesize, with the space between columns; those of the space."""
_LINES = 40  # most lines of words of a float
_LINE = 345.0  # points of a line of an article
_FORMS = ((r"\footnotesize", 6, 1.0), (r"\footnotesize", 3, 1.0), (r"\scriptsize", 3, 0.94), (r"\tiny", 2, 0.8))
"""Sizes of words, points on both sides of a column, and widths of letters as a multiple of those of the first."""
_POINTS = {2.5: " .,;:'!|ijlI", 3.4: "()[]-frt", 6.4: "ABCDEFGHJKLNOPQRSTUVXYZ&w", 7.4: "mMW%+=<>±×≈"}
"""Widths of letters in \\footnotesize in points, rounded up; others have _WIDE."""
_WIDE = 4.5
_LONG = 12  # characters from which a word can be broken
_BREAK = re.compile(r"(_|/|:|=|,|\(|\|)")  # where a long word can be broken
_MARKS = {"best": r"\textbf{%s}", "tied": r"\underline{%s}", "placed": r"\textbf{%s}", "": "%s"}
_MARK_NAMES = {"best": r"\textbf{Bold}", "tied": r"\underline{underlined}", "placed": r"\textbf{Bold}"}


def as_latex(sheet: Sheet) -> str:
    """A float for each grid, notes below it, and what was run as comments; bare `tabular`s without a title."""
    notes = sheet.notes
    lines = [r"% needs \usepackage{booktabs}"]
    grids = [piece for grid in (*sheet.grids, *sheet.twins) for piece in (_pages(grid) if grid.prose else [grid])]
    for number, grid in enumerate(grids, 1):
        pieces = [grid] if grid.prose else chunks(grid, _WIDTH, notes, " " * _GAP)
        joined = [line for piece in pieces for line in (r"\par\medskip", *_tabular(piece, notes))][1:]
        bare = [r"\begingroup\footnotesize\setlength{\parindent}{0pt}", *joined, r"\endgroup"]
        lines += ["", *(_float(sheet, grid, joined, number, notes) if sheet.title else bare)]
    return "\n".join([*lines, "", *(f"% {_tex(line)}" for line in (*sheet.summary, *sheet.lines))]).rstrip("\n")


def _float(sheet: Sheet, grid: Grid, tabulars: Sequence[str], number: int, notes: Mapping[str, str]) -> list[str]:
    footnotes = dict.fromkeys(note for cell in grid.cells for note in cell.notes)
    marked = {cell.mark for cell in grid.cells if cell.text}
    legend = [f"{_MARK_NAMES[mark]}: {_tex(text)}." for mark, text in sheet.marks.items() if mark in marked]
    titles = [_tex(sheet.title), *([_text(grid.title, notes)] if text_of(grid.title).text else [])]
    slug = re.sub(r"[^a-z0-9]+", "-", (sheet.name or "gpbench").lower()).strip("-")
    return [
        r"\begin{table}[htbp]",
        r"\centering\footnotesize",
        rf"\caption{{{' '.join([*map(_sentence, titles), *legend])}}}",
        rf"\label{{tab:{slug}-{number}}}",
        *tabulars,
        *([r"\par\smallskip\raggedright"] if footnotes else []),
        *(rf"{_raised([notes[note]])}~{_sentence(_tex(note))}\par" for note in footnotes),
        r"\end{table}",
    ]


class _Layout(NamedTuple):
    """The form of a grid of words that fits the line."""

    size: str  # command of the size of its letters
    gap: float  # points on both sides of a column
    widths: Sequence[float]  # points of each column
    natural: Sequence[bool]  # whether a column is as wide as its widest cell, so that no cell is broken


def _layout(grid: Grid) -> _Layout:
    """The largest letters with which no word is wider than its column."""
    texts = [[text_of(text) for text in column] for column in zip(grid.header, *grid.rows)]
    full = [max(map(_points, column)) for column in texts]
    pieces = lambda word: _BREAK.sub(r"\1 ", word).split() if len(word) > _LONG else [word]
    words = lambda text: [piece for word in text.split() or [""] for piece in pieces(word)]
    least = [max(_points(replace(text, text=word)) for text in cells for word in words(text.text)) for cells in texts]
    rooms = [(_LINE - 2 * gap * len(full)) / scale for _, gap, scale in _FORMS]
    form = next((k for k, room in enumerate(rooms) if sum(least) <= room), len(_FORMS) - 1)
    (size, gap, scale), widths = _FORMS[form], [*full]
    while sum(widths) > rooms[form] and (loose := [c for c, width in enumerate(widths) if width > least[c]]):
        widest = max(loose, key=lambda c: widths[c])
        widths[widest] = max(least[widest], widths[widest] - 1)
    natural = [width == whole for width, whole in zip(widths, full)]
    return _Layout(size, gap, [width * scale for width in widths], natural)


def _points(text: Text) -> float:
    """An estimate of the width of a text in \\footnotesize, on the safe side."""
    widths = {letter: width for width, letters in _POINTS.items() for letter in letters}
    width = sum(widths.get(letter, _WIDE) for letter in text.text)
    return width * (1.15 if text.mark in ("best", "placed") else 1.0) + 3.0 * len(text.notes)


def _tabular(grid: Grid, notes: Mapping[str, str]) -> list[str]:
    header, *rows = ([_text(text, notes) for text in row] for row in (grid.header, *grid.rows))
    before, after = [], []
    if grid.prose:
        layout = _layout(grid)
        widths = zip(layout.widths, layout.natural)
        columns = "".join("l" if natural else rf"p{{{width / _LINE:.3f}\linewidth}}" for width, natural in widths)
        header, *rows = [
            [cell if natural else rf"{{\raggedright {cell}\par}}" for cell, natural in zip(row, layout.natural)]
            for row in ([_breakable(cell) for cell in row] for row in (header, *rows))
        ]
        before = [rf"\begingroup{layout.size}\setlength{{\tabcolsep}}{{{layout.gap:g}pt}}"]
        after = [r"\endgroup"]
    else:
        columns = "l" + "r" * (len(header) - 1)
        header = [_stacked(text, notes) if c else name for c, (text, name) in enumerate(zip(grid.header, header))]
    return [
        *before,
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _ampersands(header),
        r"\midrule",
        *map(_ampersands, rows),
        r"\bottomrule",
        r"\end{tabular}",
        *after,
    ]


def _stacked(text: AnyText, notes: Mapping[str, str]) -> str:
    lines = [_tex(line) for line in heads(text_of(text).text)] or [""]
    raised = _raised(text_of(text).letters(notes))
    joined = r" \\ ".join(lines) + raised
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _pages(grid: Grid) -> Iterator[Grid]:
    """Parts of a grid of words that are no longer than a page."""
    layout = _layout(grid)
    rows: list[tuple[AnyText, ...]] = []
    lines = 0.0
    for row in grid.rows:
        height = max(-(-_points(text_of(text)) // width) for text, width in zip(row, layout.widths)) + 1
        if rows and lines + height > _LINES:
            yield replace(grid, rows=tuple(rows))
            rows, lines = [], 0.0
        rows.append(row)
        lines += height
    yield replace(grid, rows=tuple(rows))


def _breakable(text: str) -> str:
    """The text with breaks within its long words, such as paths."""
    breaks = re.compile(rf"(\\_|{_BREAK.pattern[1:]}")
    return " ".join(breaks.sub(r"\1\\allowbreak{}", w) if len(w) > _LONG else w for w in text.split(" "))


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
    """The text without commands; one that begins with [ or * would be an option of the line's end before it."""
    return ("{}" if text.startswith(("[", "*")) else "") + printable(text).translate(_TEX)
