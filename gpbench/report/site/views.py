"""What a row or a cell of the site's tables shows of an entry."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpbench.report.cells import Cell, Entry
from gpbench.report.experiment import rank
from gpbench.report.tables import notes
from gpbench.report.text import number


@dataclass(frozen=True)
class View:
    """An entry as text, with its values to sort by.  `badges` are (kind, text): quick, dirty, diverged, leaked."""

    entry: Entry
    page: str
    mark: str
    ours: str
    theirs: str
    delta: str
    badges: tuple[tuple[str, str], ...]
    notes: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """Views that stand in one table, and the footnotes they refer to by number (from 1)."""

    views: Sequence[View]
    footnotes: Sequence[str]


def table(entries: Sequence[Entry], page_of: Mapping[str, str], marks: Mapping[int, str]) -> Table:
    """The views of these entries; `marks` by the `id` of an entry."""
    footnotes = notes(entries)
    return Table([view(entry, page_of, marks.get(id(entry), ""), footnotes) for entry in entries], footnotes)


def view(entry: Entry, page_of: Mapping[str, str], mark: str, footnotes: Sequence[str]) -> View:
    """One entry's view."""
    theirs = entry.published
    return View(
        entry=entry,
        page=page_of.get(entry.cell.records[0]["id"], "") if entry.cell.records else "",
        mark=mark,
        ours=number(entry.mean, entry.stderr) if entry.n_splits else "",
        theirs=number(theirs.value) if theirs else "",
        delta="" if entry.delta_se is None else f"{entry.delta_se:+.1f}",
        badges=tuple(badges(entry.cell, entry.diverged)),
        notes=tuple(footnotes.index(note) + 1 for note in entry.notes),
    )


def badges(cell: Cell, diverged: int | None = None) -> list[tuple[str, str]]:
    """What must be seen beside a number: the quick preset, uncommitted changes, diverged runs."""
    lost = sum(record["status"] == "diverged" for record in cell.records) if diverged is None else diverged
    return [
        *counted("quick", "quick", cell, lambda record: record.get("preset") == "quick"),
        *([("diverged", f"{lost} diverged")] if lost else []),
        *counted("dirty", "uncommitted changes", cell, lambda record: bool(record.get("dirty"))),
    ]


def counted(kind: str, text: str, cell: Cell, holds: Callable[[dict], bool]) -> list[tuple[str, str]]:
    """The badge, with how many runs it is about unless that is all of them."""
    n = sum(map(holds, cell.records))
    return [(kind, text if n == len(cell.records) else f"{text} ({n} of {len(cell.records)})")] if n else []


def marks(entries: Sequence[Entry]) -> dict[int, str]:
    """Best and tied of each data set's metric, among the entries with the most splits of it."""
    groups: dict[tuple, list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.cell.dataset, entry.cell.output, entry.metric), []).append(entry)
    made: dict[int, str] = {}
    for group in groups.values():
        most = max(entry.n_splits for entry in group)
        compared = [entry for entry in group if entry.n_splits == most]
        made |= {id(entry): mark for entry, mark in zip(compared, rank(compared))}
    return made
