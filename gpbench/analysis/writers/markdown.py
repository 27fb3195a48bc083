"""A sheet as Markdown, in lines that a reader of the file can follow."""

import re
import textwrap
from collections.abc import Sequence

from gpbench.analysis.sheets import Grid, Sheet, render
from gpbench.analysis.writers.terminal import chunks
from gpbench.errors import printable

_LINE, _WIDTH = 120, 250  # lengths of a line of text and of a line of a table, in characters
_MARKS = {"best": "**%s**", "tied": "*%s*", "placed": "**%s**"}


def as_markdown(sheet: Sheet) -> str:
    """The sentence, the tables, then notes and what was run as lists."""
    notes = sheet.notes
    texts = filter(None, (sheet.title, sheet.answer, " ".join(sheet.summary)))
    lines = [line for text in texts for line in (*_wrapped(_md(text)), "")]
    for grid in (*sheet.grids, *sheet.twins):
        for piece in chunks(grid, _WIDTH, notes, " | "):
            lines += _table(piece, notes)
    marks = [f"{_MARKS[mark] % mark}: {_md(text)}" for mark, text in sheet.marks.items()]
    remarks = [*marks, *map(_md, sheet.remarks)]
    letters = [f"{letter} {_md(note)}" for note, letter in notes.items()]
    facts = [f"{name}: {_md(text)}" for name, text in sheet.facts.items()]
    for heading, items in ([], remarks), ([], letters), (["**What was run**", ""], facts):
        if items:
            lines += [*heading, *(line for text in items for line in _wrapped(text, "- ")), ""]
    return "\n".join(lines).rstrip("\n")


def _table(grid: Grid, notes: dict[str, str]) -> list[str]:
    cells = lambda row: [render(text, notes, _MARKS, _md) for text in row]
    (title,) = cells([grid.title])
    rule = [":--", *(["---" if grid.prose else "--:"] * (len(grid.header) - 1))]
    heading = [*_wrapped(f"**{title}**"), ""] if title else []
    header, *rows = (_bars(cells(row)) for row in (grid.header, *grid.rows))
    return [*heading, header, _bars(rule), *rows, ""]


def _bars(cells: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in cells) + " |"


def _wrapped(text: str, bullet: str = "") -> list[str]:
    indent = " " * len(bullet)
    return textwrap.wrap(
        text, _LINE, initial_indent=bullet, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


_MD = re.compile(
    r"""[`*~$]                                  # code, emphasis, strike-through, formulas
    |\](?=[(\[:])                               # the middle of a link or of a reference
    |\\(?=[!-/:-@\[-`{-~])                      # a backslash that would escape what follows
    |(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])         # emphasis; inside a word it is a letter""",
    re.X,
)
_CODE = re.compile(r"(`gpbench [^`]*`)")


def _md(text: str) -> str:
    """The text without markup, but for commands of gpbench."""
    pieces = _CODE.split(printable(text))
    for k, piece in enumerate(pieces):
        if not _CODE.fullmatch(piece):
            piece = re.sub(r"&(?=#?\w+;)", "&amp;", _MD.sub(r"\\\g<0>", piece))
            # "<" before a space, a digit or "=" begins no element and stays
            pieces[k] = re.sub(r"^>", "&gt;", re.sub(r"<(?=[^\s\d=])", "&lt;", piece))
    return "".join(pieces)
