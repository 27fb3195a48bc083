"""Entries as the rows and cells of the site's tables show them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpbench.analysis.cells import CellRuns, Entry
from gpbench.analysis.marks import with_marks
from gpbench.analysis.tables import notes, seconds_notes
from gpbench.analysis.text import number
from gpbench.records.record import Record


@dataclass(frozen=True)
class View:
    """An entry as text.

    page: the page of its cell, "" without records.
    ours, published, delta: our mean, the published value, and their difference in standard errors; "" where absent.
    badges: pairs (kind, text) with kind quick, imported, dirty or diverged.
    notes: numbers of footnotes, from 1.
    """

    entry: Entry
    page: str
    ours: str
    published: str
    delta: str
    badges: tuple[tuple[str, str], ...]
    notes: tuple[int, ...]


@dataclass(frozen=True)
class Table:
    """The views of one table, the footnotes that they refer to, and lines on the table as a whole."""

    views: Sequence[View]
    footnotes: Sequence[str]
    remarks: Sequence[str] = ()


def table(entries: Sequence[Entry], page_of: Mapping[str, str]) -> Table:
    """The views of these entries; `page_of` maps ids of records to pages."""
    footnotes = notes(entries)
    return Table([view(entry, page_of, footnotes) for entry in entries], footnotes, seconds_notes(entries))


def view(entry: Entry, page_of: Mapping[str, str], footnotes: Sequence[str]) -> View:
    """The view of one entry."""
    return View(
        entry=entry,
        page=page_of.get(entry.cell.records[0].id, "") if entry.cell.records else "",
        ours=number(entry.mean, entry.stderr) if entry.n_splits else "",
        published=number(entry.published.value) if entry.published else "",
        delta="" if entry.delta_se is None else f"{entry.delta_se:+.1f}",
        badges=tuple(badges(entry.cell, entry.diverged)),
        notes=tuple(footnotes.index(note) + 1 for note in entry.notes),
    )


def badges(cell: CellRuns, diverged: int | None = None) -> list[tuple[str, str]]:
    """Warnings beside a value: quick preset, imported, diverged (by default all of the cell's), uncommitted changes."""
    if diverged is None:
        diverged = sum(record.diverged for record in cell.records)
    return [
        *_counted("quick", "quick", cell, lambda record: record.preset == "quick"),
        *_counted("imported", "imported", cell, lambda record: bool(record.imported)),
        *([("diverged", f"{diverged} diverged")] if diverged else []),
        *_counted("dirty", "uncommitted changes", cell, lambda record: bool(record.dirty)),
    ]


def mark_datasets(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with marks: the best of each data set, split set and metric among those with the most splits."""
    groups: dict[tuple, list[int]] = {}
    for k, entry in enumerate(entries):
        groups.setdefault((entry.cell.dataset, entry.cell.output, entry.cell.split_set, entry.metric), []).append(k)
    marked = list(entries)
    for group in groups.values():
        most = max(entries[k].n_splits for k in group)
        compared = [k for k in group if entries[k].n_splits == most]
        for k, entry in zip(compared, with_marks([replace(entries[k], mark="") for k in compared])):
            marked[k] = entry
    return marked


def _counted(kind: str, text: str, cell: CellRuns, condition: Callable[[Record], bool]) -> list[tuple[str, str]]:
    """A badge where the condition holds for any run, with the number of these runs unless it holds for all."""
    n = sum(map(condition, cell.records))
    return [(kind, text if n == len(cell.records) else f"{text} ({n} of {len(cell.records)})")] if n else []
