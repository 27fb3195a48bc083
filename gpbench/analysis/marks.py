"""Marks of the best entries of a row, and of those that are not significantly different from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from gpbench.analysis.cells import Entry
from gpbench.analysis.statistics import common_splits, largest_ratio, paired_t_test
from gpbench.papers.published import UNRANKED

MEANINGS = {
    "best": "best of its row, over all parts of the table, on the splits that its cells share",
    "tied": "not significantly different from the best (corrected resampled t test over splits, 5 %)",
}
"""Meanings of the marks."""
FEW_SPLITS = "cells with fewer than half of the splits of their row's largest are not compared"
"""Note of a table that has such cells."""
_UNMARKED = ("seconds", "objective")


def with_marks(row: Sequence[Entry]) -> list[Entry]:
    """Marks the entries of one row of a table: "best", "tied" with the best, or "".  Entries are compared on the splits
    that all of them share; an entry with few splits takes no part (`has_few`).  It is tied where the corrected t test
    (`paired_t_test`) does not tell it from the best at 5 %, and where all differences are equal, which allows no test.
    Nothing is marked on fewer than two common splits, or where a ratio of test to training rows is unknown.  Entries
    that are not held out, and those of data sets that are not for ranking, are not marked.
    """
    values = {k: entry.values for k, entry in enumerate(row) if entry.values and _is_ranked(entry)}
    values = {k: splits for k, splits in values.items() if not _few(splits, values.values())}
    common = common_splits(values.values())
    ratio = largest_ratio(row[k].cell.ratio for k in values)
    if len(values) < 2 or len(common) < 2 or ratio is None:
        return list(row)
    sign = 1 if row[min(values)].better == "lower" else -1
    best = min(values, key=lambda k: sign * fmean(values[k][s] for s in common))

    marked = list(row)
    for k in values:
        test = paired_t_test([values[k][s] - values[best][s] for s in common], ratio)
        marked[k] = replace(row[k], mark="best" if k == best else "" if test.significant else "tied")
    return marked


def meanings(entries: Iterable[Entry]) -> Mapping[str, str]:
    """The meanings of the marks; none where no entry has one."""
    return MEANINGS if any(entry.mark for entry in entries) else {}


def has_few(row: Sequence[Entry]) -> bool:
    """Whether an entry has fewer than half of the splits of another, and would confine the comparison."""
    every = [entry.values for entry in row if entry.values and _is_ranked(entry)]
    return any(_few(values, every) for values in every)


def _few(values: Mapping[int, float], every: Iterable[Mapping[int, float]]) -> bool:
    return 2 * len(values) < max(map(len, every))


def _is_ranked(entry: Entry) -> bool:
    has_order = entry.metric not in _UNMARKED and bool(entry.better)
    return has_order and entry.cell.held_out and entry.cell.dataset not in UNRANKED
