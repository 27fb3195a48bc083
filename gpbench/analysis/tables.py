"""Tables of any recorded runs: a row for each data set, a column for each method and setting; marks of the best."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from gpbench.analysis.cells import Entry
from gpbench.analysis.formats import Grid, Sheet, marked
from gpbench.analysis.notes import provenance, provenance_lines, seconds_lines
from gpbench.analysis.printing import natural, number
from gpbench.analysis.statistics import common_splits, largest_ratio, paired_t_test
from gpbench.metrics import find
from gpbench.papers.published import UNRANKED
from gpbench.records.record import Record

LEGEND = (
    "mean ± standard error over splits (number of splits) [published value, difference in joint standard errors];"
    " standard errors are not corrected for rows that splits share"
)


def sheet(entries: Sequence[Entry]) -> Sheet:
    """Makes the sheet of recorded runs: a grid for each metric, provenance above, legend and footnotes below.

    Args:
        entries: Entries of `gpbench.analysis.cells.entries`.
    """
    footnotes = notes(entries)
    by_metric: dict[str, list[Entry]] = {}
    for entry in entries:
        by_metric.setdefault(entry.metric, []).append(entry)
    grids = [_grid(metric, selected, footnotes) for metric, selected in by_metric.items()]
    heads = provenance_lines(record for entry in entries for record in entry.cell.records)
    feet = [LEGEND, *numbered(footnotes), *seconds_notes(entries)]
    rows = [row(entry) for entry in entries]
    if any(entry.cell.imported for entry in entries):
        rows = [{**row, "imported": entry.cell.imported} for row, entry in zip(rows, entries)]
    return Sheet(heads, grids, feet, rows)


def row(entry: Entry) -> dict:
    """The values of an entry by name; None where one does not apply."""
    published, cell = entry.published, entry.cell
    return {
        "dataset": cell.dataset,
        "output": cell.output or None,
        "method": cell.method,
        "setting": cell.label,
        "metric": entry.metric,
        "mean": entry.mean,
        "stderr": entry.stderr,
        "n_splits": entry.n_splits,
        "published": published.value if published else None,
        "published_err": published.err if published else None,
        "delta_se": entry.delta_se,
        "held_out": entry.held_out,
        "protocol": "+".join(sorted({record.protocol for record in cell.records})) or None,
        "preset": cell.preset or None,
    }


def as_dict(entry: Entry) -> dict:
    """An entry for JSON: its row, diverged runs, source of the published value, provenance, and ids of runs."""
    published = entry.published
    return {
        **row(entry),
        "diverged": entry.diverged,
        "imported": entry.cell.imported,
        "published_in": f"{published.source}, {published.table}" if published else None,
        "published_stderr": published.stderr if published else None,
        "notes": entry.notes,
        "made_with": provenance(entry.cell.records),
        "runs": [record.id for record in entry.cell.records],
    }


def notes(entries: Sequence[Entry]) -> list[str]:
    """The footnotes of these entries, each once, in order."""
    return list(dict.fromkeys(note for entry in entries for note in entry.notes))


def seconds_notes(entries: Sequence[Entry]) -> list[str]:
    """The lines of `seconds_lines` for those entries that are seconds."""
    return seconds_lines(record for entry in entries if entry.metric == "seconds" for record in entry.cell.records)


def numbered(footnotes: Sequence[str]) -> list[str]:
    """The footnotes as lines, each after its number."""
    return [f"{_superscript(k)} {note}" for k, note in enumerate(footnotes, 1)]


def cell_text(entry: Entry, footnotes: Sequence[str]) -> str:
    """The text of an entry as LEGEND describes it, with its mark and the numbers of its footnotes."""
    text = f"{marked(number(entry.mean, entry.stderr), entry.mark)} ({entry.n_splits})" if entry.n_splits else "0 done"
    if entry.diverged:
        text += f" ({entry.diverged} diverged)"
    if entry.published:
        delta = "" if entry.delta_se is None else f", {entry.delta_se:+.1f} se"
        text += f" [{number(entry.published.value)}{delta}]"
    return text + " ".join(_superscript(footnotes.index(note) + 1) for note in entry.notes)


def title(metric: str, records: Iterable[Record] = ()) -> str:
    """The name of a metric, with its unit and direction, from the records where it is a user's own."""
    known = find(metric, records)
    return known.heading if known else metric


def _grid(metric: str, entries: Sequence[Entry], footnotes: Sequence[str]) -> Grid:
    by_position = {(_row_name(entry), _column_name(entry)): entry for entry in entries}
    names = list(dict.fromkeys(name for name, _ in by_position))
    columns = sorted(dict.fromkeys(column for _, column in by_position), key=natural)
    rows = tuple(
        (name, *(cell_text(by_position[name, c], footnotes) if (name, c) in by_position else "" for c in columns))
        for name in names
    )
    return Grid(title(metric, [r for e in entries for r in e.cell.records]), ("data set", *columns), rows)


def _row_name(entry: Entry) -> str:
    return f"{entry.cell.dataset} {entry.cell.output}".rstrip()


def _column_name(entry: Entry) -> str:
    return f"{entry.cell.method} {entry.cell.label}".rstrip()


def _superscript(mark: int) -> str:
    return str(mark).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


TIED = "not significantly different from the best (corrected resampled t test over splits, 5 %)"
"""Meaning of the mark "tied"."""
FEW_SPLITS = "cells with fewer than half of the splits of their row's largest are not compared"
"""Note of a table that has such cells."""
_UNMARKED = ("seconds", "objective")


def with_marks(row: Sequence[Entry]) -> list[Entry]:
    """Marks the entries of one row of a table: "best", "tied" with the best, or "".

    Entries are compared on the splits that all of them share; an entry with few splits takes no part (`has_few`).  It
    is tied where the corrected t test (`paired_t_test`) does not tell it from the best at 5 %, and where all
    differences are equal, which allows no test.  Nothing is marked on fewer than two common splits, or where a ratio of
    test to training rows is unknown.  Entries that are not held out, and those of data sets that are not for ranking,
    are not marked.

    Args:
        row: The entries of one metric.

    Returns:
        The same entries in the same order, with their marks.
    """
    values = {k: entry.values for k, entry in enumerate(row) if entry.values and _is_ranked(entry)}
    values = {k: splits for k, splits in values.items() if not _few(splits, values.values())}
    common = common_splits(values.values())
    ratio = largest_ratio(row[k].cell.ratio for k in values)
    if len(values) < 2 or len(common) < 2 or ratio is None:
        return list(row)
    sign = 1 if row[min(values)].better == "lower" else -1
    best = min(values, key=lambda k: sign * fmean(values[k][s] for s in common))

    def mark(k: int) -> str:
        if k == best:
            return "best"
        test = paired_t_test([values[k][s] - values[best][s] for s in common], ratio)
        return "" if test.significant else "tied"

    return [replace(entry, mark=mark(k)) if k in values else entry for k, entry in enumerate(row)]


def has_few(row: Sequence[Entry]) -> bool:
    """Returns whether an entry has fewer than half of the splits of another, and would confine the comparison."""
    every = [entry.values for entry in row if entry.values and _is_ranked(entry)]
    return any(_few(values, every) for values in every)


def _few(values: Mapping[int, float], every: Iterable[Mapping[int, float]]) -> bool:
    return 2 * len(values) < max(map(len, every))


def _is_ranked(entry: Entry) -> bool:
    has_order = entry.metric not in _UNMARKED and bool(entry.better)
    return has_order and entry.cell.held_out and entry.cell.dataset not in UNRANKED
