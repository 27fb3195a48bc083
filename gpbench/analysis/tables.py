"""Tables of any recorded runs: a row for each data set, a column for each method and setting."""

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpbench import paths
from gpbench.analysis.cells import CellRuns, Entry, caveats
from gpbench.analysis.comparison import Comparison
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import counted, natural, number
from gpbench.analysis.provenance import facts_of, provenance, run_facts, seconds_lines, split_notes
from gpbench.analysis.sheets import Grid, Sheet, Text, parts, text_of
from gpbench.analysis.statistics import common_splits, largest_ratio
from gpbench.metrics import find
from gpbench.papers.published import UNRANKED, shared_terms, terms
from gpbench.records.record import Record

LEGEND = "mean ± standard error over splits; standard errors are not corrected for rows that splits share"
_SINGLE = "values of one split, which have no standard error"
_OVER_ROWS = "value ± standard error over the test rows of one split, of the one model that was trained"
_BESIDE = "beside the paper: the printed value"
_DIFFERENCE = f"{_BESIDE}, and in brackets ours minus it in joint standard errors"

MEANINGS = {
    "best": "best of its row, over all parts of the table, on the splits that its cells share",
    "tied": "not significantly different from the best (corrected resampled t test over splits, 5 %)",
}
"""Meanings of the marks."""

_Placed = Mapping[tuple[str, str, str], Entry]  # by the title of a grid, the name of a row, and that of a column


def sheet(entries: Sequence[Entry]) -> Sheet:
    """The sheet of recorded runs: a grid for each metric and protocol, with the printed values behind."""
    cells = list({id(entry.cell): entry.cell for entry in entries}.values())
    records = [record for cell in cells for record in cell.records]
    names, shared = _column_names(cells)
    several = len({cell.records[0].protocol for cell in cells}) > 1

    def position(entry: Entry) -> tuple[str, str]:
        """The title of a grid and the name of a row."""
        records, name = entry.cell.records, f"{entry.cell.dataset} {entry.cell.output}".rstrip()
        return ", ".join([*([str(records[0].protocol)] if several else []), title(entry.metric, records)]), name

    by_row = gather((position(entry), entry) for entry in entries)
    # none is marked where they are of different split sets or versions of the data
    same = {position: len({entry.cell.data_key for entry in row}) == 1 for position, row in by_row.items()}
    marked = {position: with_marks(row) if same[position] else row for position, row in by_row.items()}
    placed = {(*position, names[id(e.cell)]): e for position, row in marked.items() for e in row}
    entries = [entry for row in marked.values() for entry in row]
    columns = sorted(dict.fromkeys(names.values()), key=natural)
    imported = any(entry.cell.imported for entry in entries)
    methods, datasets = ({getattr(cell, name) for cell in cells} for name in ("method", "dataset"))
    return placed_sheet(
        placed,
        ("data set", *columns),
        any(map(has_few, by_row.values())),
        remarks=split_notes(records),
        title=f"Recorded runs of {counted(len(methods), 'method')} on {counted(len(datasets), 'data set')}.",
        summary=splits_line(entries),
        rows=[row(entry) | ({"imported": entry.cell.imported} if imported else {}) for entry in entries],
        facts=run_facts(records, shared) | facts_of(records),
    )


def placed_sheet(
    placed: _Placed, header: tuple[str, ...], has_few_splits: bool, remarks: Sequence[str] = (), **fields: Any
) -> Sheet:
    """The sheet of entries at their places: our values in parts that can be read, then those beside the paper."""
    entries = [*placed.values()]
    usual = _usual_splits(entries)
    one_split = {entry.n_splits for entry in entries if entry.n_splits} == {1}
    grids = _grids(placed, header, lambda entry: _value_cell(entry, usual, one_split))
    bare = lambda title: replace(title, text=f"beside the paper: {_UNIT.sub('', title.text)}")
    printed = [replace(grid, title=bare(text_of(grid.title))) for grid in _grids(placed, header, _printed)]
    names = [c for grid in (*grids, *printed) for c in (grid.title, *grid.header, *(row[0] for row in grid.rows))]
    single = _OVER_ROWS if any(entry.row_stderr is not None for entry in entries) else _SINGLE
    beside = _DIFFERENCE if any(entry.delta_se is not None for entry in entries) else _BESIDE
    legend = {
        single if one_split else LEGEND: True,
        beside: bool(printed),
        "a letter at a title, a row or a column holds for all of its cells": any(text_of(name).notes for name in names),
        "cells with fewer than half of the splits of their row's largest are not compared": has_few_splits,
    }
    lines = [line for line, applies in legend.items() if applies]
    return Sheet(
        grids=grids,
        twins=printed,
        marks=MEANINGS if any(entry.mark for entry in entries) else {},
        remarks=[*lines, *seconds_notes(entries), *remarks],
        **fields,
    )


def splits_line(entries: Iterable[Entry]) -> list[str]:
    """The line on the number of splits of most entries; none without values."""
    counts = {entry.n_splits for entry in entries if entry.n_splits}
    usual = _usual_splits(entries)
    marked = ", fewer or more where marked" if len(counts) > 1 else ""
    return [f"{counted(usual, 'split')}{marked}."] if usual else []


def _value_cell(entry: Entry, usual: int, one_split: bool) -> Text:
    """The mean and standard error of an entry, with its mark and notes."""
    notes = caveats(entry.cell, entry.metric, None) if entry.n_splits else []
    over_rows = "" if entry.row_stderr is None or one_split else ", ± over its test rows"
    if entry.n_splits and (entry.n_splits != usual or over_rows):
        notes = [": ".join(filter(None, [counted(entry.n_splits, "split") + over_rows, entry.lost])), *notes]
    elif entry.lost:
        notes = [entry.lost, *notes]
    text = number(entry.mean, entry.stderr or entry.row_stderr) if entry.n_splits else entry.no_value
    return Text(text, entry.mark, tuple(notes))


def _printed(entry: Entry) -> Text:
    if not entry.published:
        return Text()
    text = entry.published.text + ("" if entry.delta_se is None else f" ({entry.delta_se:+.1f})")
    notes = dict.fromkeys(filter(None, [entry.published.note, UNRANKED.get(entry.cell.dataset)]))
    return Text(text, notes=tuple(notes))


def _usual_splits(entries: Iterable[Entry]) -> int:
    """The number of splits that most entries with values have; 0 without any."""
    return max(Counter(entry.n_splits for entry in entries if entry.n_splits).most_common(1), default=(0, 0))[0]


def _grids(placed: _Placed, header: tuple[str, ...], text: Callable[[Entry], Text]) -> list[Grid]:
    methods = {column: entry.cell.method for (_, _, column), entry in placed.items()}
    grids = []
    for heading in dict.fromkeys(heading for heading, _, _ in placed):
        rows = [
            (name, *(text(placed[heading, name, c]) if (heading, name, c) in placed else "" for c in header[1:]))
            for name in dict.fromkeys(name for other, name, _ in placed if other == heading)
        ]
        grids += parts(Grid(heading, header, tuple(rows)), lambda column: _family(methods[header[column]]))
    return grids


_FAMILIES = {"deep": "deep GPs", "bnn": "networks", "additive": "additive models", "baselines": "baselines"}
"""Families by the folder of `gpbench.methods`; the methods of the other folders are GPs."""
_FOLDER = re.compile(r"^_target_: gpbench\.methods\.(\w+)\.", re.MULTILINE)


@functools.cache
def _family(method: str) -> str:
    """The family of a method of ours by its name, such as "networks"; "other methods" for a user's own."""
    file = paths.yaml_files("method", ()).get(method)
    folder = _FOLDER.search(file.read_text(encoding="utf-8")) if file else None
    return _FAMILIES.get(folder[1], "GPs") if folder else "other methods"


_UNIT = re.compile(r" \([^()]*\)(?=$|:)")  # unit and direction of a metric in the title of a grid


def _column_names(cells: Sequence[CellRuns]) -> tuple[dict[int, str], str]:
    """The columns of cells, methods with those settings that differ; and the settings that all cells of one share."""
    settings = gather((cell.method, terms(cell.label)) for cell in cells)
    shared = {name: shared_terms(lists) for name, lists in settings.items()}

    def name(cell: CellRuns) -> str:
        own = [s for s in terms(cell.label) if s not in shared[cell.method] and not s.startswith("protocol=")]
        return f"{cell.method} {', '.join(own)}".rstrip()

    worded = {method: [s for s in several if not s.startswith("preset=")] for method, several in shared.items()}
    texts = [f"{method} {', '.join(several)}" for method, several in worded.items() if several]
    return {id(cell): name(cell) for cell in cells}, "; ".join(sorted(texts, key=natural))


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
        "held_out": cell.held_out,
        "published_held_out": published.held_out if published else None,
        "protocol": "+".join(sorted({record.protocol for record in cell.records})) or None,
        "preset": cell.preset or None,
        "mark": entry.mark or None,
    }


def as_dict(entry: Entry) -> dict:
    """An entry for JSON: its row, diverged runs, source of the published value, provenance, and ids of runs."""
    published = entry.published
    return {
        **row(entry),
        "row_stderr": entry.row_stderr,
        "diverged": entry.diverged,
        "undefined": dict(entry.undefined),
        "imported": entry.cell.imported,
        "published_in": f"{published.source}, {published.table}" if published else None,
        "published_stderr": published.stderr if published else None,
        "notes": entry.notes,
        "made_with": provenance(entry.cell.records),
        "runs": [record.id for record in entry.cell.records],
    }


def seconds_notes(entries: Iterable[Entry]) -> list[str]:
    """The lines of `seconds_lines` for those entries that are seconds."""
    return seconds_lines(record for entry in entries if entry.metric == "seconds" for record in entry.cell.records)


def title(metric: str, records: Iterable[Record] = ()) -> str:
    """The name of a metric, with its unit and direction, from the records where it is a user's own."""
    known = find(metric, records)
    return known.heading if known else metric


def with_marks(row: Sequence[Entry]) -> list[Entry]:
    """Marks the entries of one row of a table, on the splits that all share: "best", "tied" with the best by the
    corrected t test, or "".  Entries with few splits, not held out, or not for ranking take no part; without two common
    splits and known ratios of test rows nothing is marked."""
    ranked = {str(k): entry for k, entry in enumerate(row) if entry.values and _is_ranked(entry)}
    ranked = {k: entry for k, entry in ranked.items() if not _few(entry, ranked.values())}
    common = common_splits(entry.values for entry in ranked.values())
    ratio = largest_ratio(entry.cell.ratio for entry in ranked.values())
    if len(ranked) < 2 or len(common) < 2 or ratio is None:
        return list(row)
    first = next(iter(ranked.values()))
    compared = Comparison(first.metric, {"": {k: entry.values for k, entry in ranked.items()}})
    (means,) = compared.means({"": common}, [*ranked])
    best = [*ranked][int(np.argmin(means if first.better == "lower" else -means))]
    tests = {k: compared.test("", k, best, common, ratio) for k in ranked}
    marks = {k: "best" if k == best else "" if test.significant else "tied" for k, test in tests.items()}
    return [replace(entry, mark=marks.get(str(k), entry.mark)) for k, entry in enumerate(row)]


def has_few(row: Sequence[Entry]) -> bool:
    """Whether an entry has fewer than half of the splits of another, and would confine the comparison."""
    every = [entry for entry in row if entry.values and _is_ranked(entry)]
    return any(_few(entry, every) for entry in every)


def _few(entry: Entry, every: Iterable[Entry]) -> bool:
    return 2 * entry.n_splits < max(other.n_splits for other in every)


def _is_ranked(entry: Entry) -> bool:
    has_order = entry.metric not in ("seconds", "objective") and bool(entry.better)
    return has_order and entry.cell.held_out and entry.cell.dataset not in UNRANKED
