"""A sheet as text: columns that are aligned, and lines that fit the terminal."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gpbench.analysis import printing
from gpbench.analysis.sheets import AnyText, Grid, Sheet, render, text_of
from gpbench.errors import printable

_MARKS = {"best": "*", "tied": "≈", "placed": "←"}
_GAP = "  "
_HEADER = 14  # width to which the names of columns are broken, where the cells are narrower
_NARROWEST = 6  # smallest width of lines of text


def as_text(sheet: Sheet, width: int | None = None) -> str:
    """Plain text with aligned columns."""
    width = width or printing.width() or sheet.width
    notes = sheet.notes
    lines = [*_wrapped([sheet.title, sheet.answer, " ".join(sheet.summary)], width), ""] if sheet.title else []
    for grid in (*sheet.grids, *sheet.twins):
        for piece in [grid] if grid.prose else _numbered(grid, chunks(grid, width, notes)):
            title = _marked(piece.title, notes)
            lines += [*_wrapped([title], width), *_grid_lines(piece, width, notes), ""]
    lines += _wrapped([f"{_MARKS[mark]} {text}" for mark, text in sheet.marks.items()], width)
    lines += _wrapped([f"{letter} {note}" for note, letter in notes.items()], width)
    lines += _wrapped(sheet.remarks, width)
    if sheet.facts:
        lines += ["", "what was run", *_wrapped([f"{name}: {text}" for name, text in sheet.facts.items()], width, "  ")]
    return "\n".join(lines).rstrip("\n")


def chunks(grid: Grid, width: int | None, notes: Mapping[str, str], gap: str = _GAP) -> list[Grid]:
    """Splits a grid by columns into grids that fit the width in characters; None is unlimited."""
    if width is None:
        return [grid]
    widths = [w + len(gap) for w in _widths(grid, notes)]
    groups: list[list[int]] = [[]]
    for column in range(1, len(widths)):
        if groups[-1] and widths[0] + sum(widths[c] for c in groups[-1]) + widths[column] > width + len(gap):
            groups.append([])
        groups[-1].append(column)
    return [grid.select(group) for group in groups] if len(groups) > 1 else [grid]


def _numbered(grid: Grid, pieces: Sequence[Grid]) -> list[Grid]:
    """The pieces of a grid whose titles say which of its columns they have; a grid in one piece as it is."""
    title = text_of(grid.title)
    if len(pieces) == 1 or not title.text:
        return list(pieces)
    numbered, last = [], 0
    for piece in pieces:
        first, last = last + 1, last + len(piece.header) - 1
        columns = f"column {last}" if first == last else f"columns {first} to {last}"
        heading = f"{title.text}, {columns} of {len(grid.header) - 1}"
        numbered.append(replace(piece, title=replace(title, text=heading)))
    return numbered


def _grid_lines(grid: Grid, width: int | None, notes: Mapping[str, str]) -> list[str]:
    """The lines of a grid: header, rule and rows, with numbers to the right, and words broken to the width."""
    header = [_marked(text, notes) for text in grid.header]
    if grid.prose:
        rows = [[_marked(text, notes) for text in row] for row in grid.rows]
        return [*printing.aligned(header, rows, width, rule=True)]
    tails = [max((_tail(text, notes) for text in column), default=0) for column in zip(*grid.rows)] or [0] * len(header)
    padded = lambda text, tail: _marked(text, notes) + " " * (tail - _tail(text, notes))
    rows = [[_marked(row[0], notes), *map(padded, row[1:], tails[1:])] for row in grid.rows]
    widths = [max(_narrow(name), *(len(row[c]) for row in rows), 0) for c, name in enumerate(header)]
    names = [heads(name, w) for name, w in zip(header, widths)]
    tops = [[""] * (max(map(len, names)) - len(parts)) + parts for parts in names]
    rule = _GAP.join("-" * w for w in widths)
    return [*(_joined(top, widths) for top in zip(*tops)), rule, *(_joined(row, widths) for row in rows)]


def _tail(text: AnyText, notes: Mapping[str, str]) -> int:
    """The number of marks and letters behind a text, which are not aligned."""
    cell = text_of(text)
    return bool(cell.text and cell.mark) + len("".join(cell.letters(notes)))


def _joined(texts: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = texts
    return _GAP.join([first.ljust(widths[0]), *(text.rjust(w) for text, w in zip(others, widths[1:]))]).rstrip()


_marked = partial(render, marks={name: f"%s{mark}" for name, mark in _MARKS.items()})
"""A cell with its mark and letters behind it."""


def _narrow(name: str) -> int:
    """The width to which the name of a column is broken."""
    return max(min(len(name), _HEADER), *map(len, name.split()), 0)


def heads(name: str, width: int = 0) -> list[str]:
    """The lines of the name of a column."""
    return textwrap.wrap(name, width or _narrow(name), break_long_words=False, break_on_hyphens=False)


def _widths(grid: Grid, notes: Mapping[str, str]) -> list[int]:
    widths = []
    for head, *cells in zip(grid.header, *grid.rows):
        texts = [(len(printable(text_of(text).text)), _tail(text, notes)) for text in cells]
        widths.append(max(_narrow(text_of(head).text) + _tail(head, notes), sum(map(max, zip(*texts)))))
    return widths


def _wrapped(texts: Sequence[str], width: int | None, indent: str = "") -> list[str]:
    """The texts in lines of at most this width."""
    lines = [indent + printable(text) for text in texts if text]
    if width is None:
        return lines
    hanging, width = indent and indent + "  ", max(width, _NARROWEST)
    wrap = lambda line: textwrap.wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False)
    return [piece for line in lines for piece in wrap(line)]
