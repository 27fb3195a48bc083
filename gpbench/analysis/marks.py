"""Marks of the best method of a row, and of those that are not significantly different from it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from gpbench.analysis.cells import Entry
from gpbench.analysis.statistics import common_splits, largest_ratio, paired_t_test
from gpbench.metrics import better
from gpbench.papers.published import UNRANKED

LEGEND = "not significantly different from the best (corrected resampled t test over splits, 5 %)"
"""What "tied" means."""
FEW = "cells with fewer than half of the splits of their row's largest are not compared"
"""What a table says where there are such cells."""
_UNMARKED = ("seconds", "objective")


def with_marks(row: Sequence[Entry]) -> list[Entry]:
    """The entries of one row of a table, each with its mark: "best", "tied" or "".

    The comparison is over the splits that all entries with values share; those that have few take no part (`has_few`).
    An entry is tied if `paired_t_test` over
    these splits does not distinguish it from the best at 5 %, also where all differences are equal and allow no test.
    On fewer than two common splits, and where an entry's ratio of test to training rows is unknown, nothing is marked;
    nor are entries that are not held out, or of a data set that is not for ranking.
    """
    values = {k: entry.values for k, entry in enumerate(row) if entry.values and _is_ranked(entry)}
    values = {k: of for k, of in values.items() if not _few(of, values.values())}
    common = common_splits(values.values())
    ratio = largest_ratio(row[k].cell.ratio for k in values)
    if len(values) < 2 or len(common) < 2 or ratio is None:
        return list(row)
    sign = 1 if better(row[min(values)].metric) == "lower" else -1
    best = min(values, key=lambda k: sign * fmean(values[k][s] for s in common))

    def mark(k: int) -> str:
        if k == best:
            return "best"
        test = paired_t_test([values[k][s] - values[best][s] for s in common], ratio)
        return "" if test.significant else "tied"

    return [replace(entry, mark=mark(k)) if k in values else entry for k, entry in enumerate(row)]


def has_few(row: Sequence[Entry]) -> bool:
    """Whether an entry of the row has fewer than half of the splits of another: it would confine the comparison."""
    every = [entry.values for entry in row if entry.values and _is_ranked(entry)]
    return any(_few(values, every) for values in every)


def _few(values: Mapping[int, float], every: Iterable[Mapping[int, float]]) -> bool:
    return 2 * len(values) < max(map(len, every))


def _is_ranked(entry: Entry) -> bool:
    has_order = entry.metric not in _UNMARKED and bool(better(entry.metric))
    return has_order and entry.cell.held_out and entry.cell.dataset not in UNRANKED
