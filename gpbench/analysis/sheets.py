"""The model of a table, which `gpbench.analysis` makes from records and `gpbench.analysis.formats` writes: grids of
cells, tables behind them, notes at marks, and a list of what was run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gpbench.analysis.grouping import gather
from gpbench.errors import printable

if TYPE_CHECKING:
    import pandas as pd

_BRIEF = 20  # most rows of the tables of a brief sheet, and of those behind, unless the first has more
_MOST_COLUMNS = 10  # largest number of columns of a grid of numbers, with that of the names of rows
_LONGEST, _GAP = 180, 3  # most characters of a line with the names of columns, and of what stands between two of them


_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ"
LETTERS: Mapping[int, int] = str.maketrans(_LETTERS, "abcdefghijklmnoprstuvwxyz")
"""Table of `str.translate` from the raised letters of notes to the letters that they are."""


@dataclass(frozen=True)
class Text:
    """A text of a grid."""

    text: str = ""  # the text; "" where there is none
    mark: str = ""  # "best" of its row, "tied" with the best, "placed" on a board, or ""
    notes: tuple[str, ...] = ()  # notes on the text, which a letter beside it leads to

    def letters(self, by_note: Mapping[str, str]) -> list[str]:
        """The letters of each note, by those of their sheet (`Sheet.notes`); notes of others have none."""
        return [by_note[note] for note in self.notes if note in by_note]


AnyText = str | Text
"""A cell, or the text of a cell without mark and notes."""


def text_of(text: AnyText) -> Text:
    """A text as a cell."""
    return Text(text) if isinstance(text, str) else text


def render(
    text: AnyText, notes: Mapping[str, str], marks: Mapping[str, str], escape: Callable[[str], str] = printable
) -> str:
    """A cell as a format writes it: its text, escaped, within its mark, and the letters of its notes."""
    cell = text_of(text)
    return marks.get(cell.mark if cell.text else "", "%s") % escape(cell.text) + "".join(cell.letters(notes))


@dataclass(frozen=True)
class Grid:
    """A table of texts."""

    title: AnyText  # name of what the cells are, as the metric with its unit
    header: tuple[AnyText, ...]  # names of the columns
    rows: tuple[tuple[AnyText, ...], ...]  # cells by row; the first cell of a row is its name
    prose: bool = False  # whether the cells are words, which are aligned left, and broken where a line is too short

    @property
    def cells(self) -> Iterator[Text]:
        """The title, the header and all cells, in the order in which they are read."""
        yield from map(text_of, (self.title, *self.header))
        for row in self.rows:
            yield from map(text_of, row)

    def select(self, columns: Sequence[int]) -> "Grid":
        """The grid with its first column and these others."""
        fewer = lambda row: tuple(row[c] for c in (0, *columns))
        return replace(self, header=fewer(self.header), rows=tuple(map(fewer, self.rows)))


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A table as people read it, and its numbers for programs."""

    title: str  # one sentence on what the table is
    grids: Sequence[Grid]  # the table, in parts of at most _MOST_COLUMNS columns
    rows: Sequence[Mapping[str, object]]  # its numbers by name, for CSV, JSON and pandas
    answer: str = ""  # what it says, in a sentence or two
    summary: Sequence[str] = ()  # short lines below the title: preset, splits, agreement with the paper, missing runs
    twins: Sequence[Grid] = ()  # tables behind it, of the printed values
    marks: Mapping[str, str] = field(default_factory=dict)  # meaning of the marks of its cells
    remarks: Sequence[str] = ()  # lines on how to read it
    facts: Mapping[str, str] = field(default_factory=dict)  # what was run, by name
    name: str = ""  # name in the labels of LaTeX, such as the id of an experiment
    width: int | None = None  # most characters of a line of text where there is no terminal; None for any number

    @property
    def notes(self) -> dict[str, str]:
        """The raised letters of each note of the cells, in the order in which they are read: a, b, ..., z, aa, bb."""
        notes = dict.fromkeys(note for grid in (*self.grids, *self.twins) for c in grid.cells for note in c.notes)
        return {note: _LETTERS[k % len(_LETTERS)] * (1 + k // len(_LETTERS)) for k, note in enumerate(notes)}

    @property
    def lines(self) -> list[str]:
        return [*self.remarks, *(f"{name}: {text}" for name, text in self.facts.items())]

    @property
    def brief(self) -> "Sheet":
        """The first of its tables, and of those behind it, without what was run; itself where these are all."""
        rows = lambda grids: sum(len(grid.rows) for grid in grids)
        most = lambda grids: [grid for k, grid in enumerate(grids) if not k or rows(grids[: k + 1]) <= _BRIEF]
        grids, twins = most(self.grids), most(self.twins)
        if n := len(self.grids) + len(self.twins) - len(grids) - len(twins):
            rest = f"--all shows {n} more of these tables, and what was run"
            return replace(self, grids=grids, twins=twins, facts={}, remarks=[*self.remarks, rest])
        return self

    @property
    def frame(self) -> "pd.DataFrame":
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows])


def parts(grid: Grid, family: Callable[[int], str] = lambda column: "") -> list[Grid]:
    """Parts of a grid of numbers without empty rows and columns, small enough to be read, as by families of columns.  A
    note that all cells of a part, a row or a column have is moved to its name."""
    columns = [c for c in range(1, len(grid.header)) if any(text_of(row[c]).text for row in grid.rows)]
    if not columns:
        return []
    wide = len(columns) >= _MOST_COLUMNS
    families = gather((family(c), c) for c in sorted(columns, key=family)) if wide else {"": columns}
    title = text_of(grid.title)
    lengths = [len(text_of(text).text) + _GAP for text in grid.header]
    selected = []
    for name, members in families.items():
        most = _MOST_COLUMNS - 1  # fewer where the names of columns are long
        while most > 1 and any(lengths[0] + sum(lengths[c] for c in some) > _LONGEST for some in _even(members, most)):
            most -= 1
        groups = _even(members, most)
        for k, group in enumerate(groups, 1):
            number = f"part {k} of {len(groups)}" if len(groups) > 1 else ""
            heading = ": ".join(filter(None, [title.text, ", ".join(filter(None, [name, number]))]))
            selected.append(_readable(replace(grid, title=replace(title, text=heading)).select(group)))
    return selected


def _even(columns: Sequence[int], most: int) -> list[Sequence[int]]:
    """The columns in as few groups of at most so many as possible, which are as large as one another."""
    n_groups = -(-len(columns) // most)
    size = -(-len(columns) // n_groups)
    return [columns[k : k + size] for k in range(0, len(columns), size)]


def _readable(grid: Grid) -> Grid:
    """The grid without empty rows; notes that all cells of it, of a row or of a column have are at its name."""
    full = [row for row in grid.rows if any(text_of(text).text for text in row[1:])]
    cells = [((r, c), text_of(text)) for r, row in enumerate(full) for c, text in enumerate(row) if c]
    places = {position: [*cell.notes] for position, cell in cells if cell.text}
    groups: dict[object, list[tuple[int, int]]] = {"title": [*places]}
    groups |= {("row", r): [p for p in places if p[0] == r] for r in range(len(full))}
    groups |= {("column", c): [p for p in places if p[1] == c] for c in range(1, len(grid.header))}
    names: dict[object, list[str]] = {}
    for note in dict.fromkeys(note for notes in places.values() for note in notes):
        uncovered = noted_at = {position for position, notes in places.items() if note in notes}
        for name in sorted(groups, key=lambda name: -len(groups[name])):
            if noted_at.issuperset(groups[name]) and len(uncovered.intersection(groups[name])) > 1:
                names.setdefault(name, []).append(note)
                uncovered = uncovered.difference(groups[name])
        for position in noted_at - uncovered:
            places[position].remove(note)

    def noted(text: AnyText, name: object) -> Text:
        return replace(text_of(text), notes=(*text_of(text).notes, *names.get(name, ())))

    def others(r: int, row: Sequence[AnyText]) -> list[Text]:
        return [replace(text_of(text), notes=tuple(places.get((r, c), ()))) for c, text in enumerate(row) if c]

    rows = tuple((noted(row[0], ("row", r)), *others(r, row)) for r, row in enumerate(full))
    header = (grid.header[0], *(noted(text, ("column", c)) for c, text in enumerate(grid.header[1:], 1)))
    return Grid(noted(grid.title, "title"), header, rows, grid.prose)
