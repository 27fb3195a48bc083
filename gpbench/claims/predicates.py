"""Kinds of predicates: from the cells of a clause to numbers, one for each data set, output and value of `each`."""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

import numpy as np

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.rank_tests import average_ranks
from gpbench.analysis.statistics import common_splits, largest_ratio, mean_stderr
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Estimate, Exact, Share, SignedRank, Student
from gpbench.claims.selection import KeyedCell, group, listed_keys, match
from gpbench.errors import ConfigError
from gpbench.metrics import better
from gpbench.own_metrics import COUNTED

_PROPORTIONS = ("error", "coverage95")
"""Metrics that are means of zeros and ones over test rows, whose error is known from a single split."""


@dataclass(frozen=True)
class Number:
    """An estimate with the cells that it is from.

    Args:
        key: Data set, output, and values of the clause's keys.
        estimate: The estimate; None where runs are missing.
        rival: Name of the rival b, where there are several.
        cells: Cells that the number is estimated from.
    """

    key: tuple[str, ...]
    estimate: Estimate | None
    rival: str = ""
    cells: tuple[CellRuns, ...] = ()

    @property
    def name(self) -> str:
        """Data set, output, values of keys and rival, as far as there are any."""
        return " ".join(filter(None, [*self.key, self.rival]))


def numbers(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> list[Number]:
    """The numbers of a clause.

    Args:
        clause: The clause.
        sides: Cells of each side (`gpbench.claims.selection.select_cells`).
        name: Name of the clause, for messages.

    Raises:
        ConfigError: Several cells stand for one number, or no two are a pair.
    """
    results = list(_KINDS[clause.kind](clause, sides, name))
    if not results:
        raise ConfigError(f"{name}: a and b have no data set in common")
    return _over_datasets(clause, results) if clause.over else results


def _pairs(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Paired differences over splits, of logarithms for a ratio."""
    transform = (lambda value: _log(value, name)) if clause.kind == "ratio" else float
    names = ["method"] if clause.over else _rival_keys(clause)  # a rival's size may differ by data set
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            values_a, values_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([values_a, values_b])
            differences = [transform(values_a[k]) - transform(values_b[k]) for k in common]
            ratio = largest_ratio(cell.runs.ratio for cell in (a, b) if cell.runs)
            estimate: Estimate | None = _mean(differences, ratio)
            if clause.metric in COUNTED and common:
                estimate = Exact(differences[0])
            elif clause.kind == "difference" and clause.metric in _PROPORTIONS and len(common) == 1:
                estimate = _minus(_proportion(values_a[common[0]], a), _proportion(values_b[common[0]], b))
            rival = " ".join(filter(None, (b.keys.get(key, "") for key in names))) if len(rivals) > 1 else ""
            yield Number(_key(clause, a), estimate, rival, _cells(a, b))


def _values(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    for key, cells in group(sides["of"], clause.keys).items():
        if len(cells) > 1:
            raise ConfigError(f"{name}: `of` has {len(cells)} cells on {key[0]}: give a value of what sets them apart")
        (cell,) = cells
        values = [*cell.values(clause.metric).values()]
        estimate: Estimate | None = _mean(values, cell.runs.ratio if cell.runs else None)
        if clause.metric in COUNTED and values:
            estimate = Exact(values[0])
        elif clause.metric in _PROPORTIONS and len(values) == 1:
            estimate = _proportion(values[0], cell)
        yield Number(_key(clause, cell), estimate, cells=_cells(cell))


def _shares(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The share of cells in which a's mean is better than b's; ties do not count as better."""
    sign = 1 if _direction(clause, sides) == "lower" else -1
    outcomes: dict[tuple[str, ...], list[bool | None]] = {}
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            values_a, values_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([values_a, values_b])
            won = sign * fmean(values_a[k] - values_b[k] for k in common) < 0 if common else None
            outcomes.setdefault(("", "", *_key(clause, a)[2 : 2 + len(clause.each)]), []).append(won)
    for key, wins in outcomes.items():
        yield Number(key, None if None in wins else Share(sum(map(bool, wins)), len(wins)))


def _ranks(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Average rank of a minus that of each b, over the data sets of which all methods `among` have a split.

    Ranks are of means over the splits that all of them have.  The variance of the difference is that of ranks without
    differences, k (k + 1) / 6N (Demšar 2006, section 3.2.2).
    """
    sign = 1 if _direction(clause, sides) == "lower" else -1
    keys = _rival_keys(clause)
    rows: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[int, float | None]]] = {}
    for key, cells in group(sides["among"], clause.keys).items():
        firsts, rivals = ([k for k, cell in enumerate(cells) if cell in sides[side]] for side in "ab")
        names = [tuple(cells[k].keys.get(key, "") for key in keys) for k in rivals]
        if len(firsts) != 1 or not rivals or len({*names}) < len(names) or firsts[0] in rivals:
            raise ConfigError(f"{name}: a and each b must be one cell each of those `among`, on {key[0]}")
        values = [cell.values(clause.metric) for cell in cells]
        common = common_splits(values)
        ranks = (
            average_ranks(np.array([[sign * fmean(by_split[k] for k in common) for by_split in values]]))[0]
            if common
            else None
        )
        for rival, k in zip(names, rivals):
            difference = None if ranks is None else float(ranks[firsts[0]] - ranks[k])
            rows.setdefault((("", "", *key[2:]), rival), []).append((len(cells), difference))
    for (key, rival), differences in rows.items():
        complete = [difference for _, difference in differences if difference is not None]
        sizes, n = {k for k, difference in differences if difference is not None}, len(complete)
        k = max(sizes, default=0)
        estimate = Student(fmean(complete), math.sqrt(k * (k + 1) / (6 * n)), math.inf, n) if len(sizes) == 1 else None
        yield Number(key, estimate, " ".join(filter(None, rival)))


def _direction(clause: Clause, sides: Mapping[str, Sequence[KeyedCell]]) -> str | None:
    """The direction in which the metric improves, from the records where it is a user's own."""
    return better(clause.metric, (record for cells in sides.values() for cell in cells for record in cell.records))


def _rival_keys(clause: Clause) -> list[str]:
    """The keys that tell rivals apart."""
    return list(dict.fromkeys(["method", *listed_keys(clause)]))


def _slopes(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The slope of a log-log line by least squares through the means of all sizes; of counts it has no error."""
    for cells in group(sides["of"], clause.keys).values():
        points = [(_size(cell, clause, name), [*cell.values(clause.metric).values()]) for cell in cells]
        means = {size: fmean(values) for size, values in points if values}
        key = _key(clause, cells[0])
        if len(means) < len(points) or len(means) < 3:
            yield Number(key, None)
            continue
        x, y = [_log(size, name) for size in means], [_log(value, name) for value in means.values()]
        slope, intercept = linear_regression(x, y)
        residual = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y)) / (len(x) - 2)
        stderr = math.sqrt(residual / math.fsum((a - fmean(x)) ** 2 for a in x))
        exact = clause.metric in COUNTED
        estimate = Exact(slope, len(x)) if exact else Student(slope, stderr, len(x) - 2, len(x))
        yield Number(key, estimate, cells=_cells(*cells))


def _steps(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Paired differences between consecutive sizes; no estimate of a single size, for a preset without others."""
    for cells in group(sides["of"], clause.keys).values():
        ordered = sorted(cells, key=lambda cell: _size(cell, clause, name))
        if len(ordered) == 1:
            yield Number(_key(clause, ordered[0]), None)
        for small, large in itertools.pairwise(ordered):
            before, after = small.values(clause.metric), large.values(clause.metric)
            differences = [after[k] - before[k] for k in common_splits([before, after])]
            ratio = largest_ratio(cell.runs.ratio for cell in (small, large) if cell.runs)
            key = (*_key(clause, large), large.keys[clause.along])
            yield Number(key, _mean(differences, ratio), cells=_cells(small, large))


_KINDS: dict[str, Callable[[Clause, dict[str, list[KeyedCell]], str], Iterator[Number]]] = {
    "difference": _pairs,
    "ratio": _pairs,
    "value": _values,
    "share": _shares,
    "rank": _ranks,
    "slope": _slopes,
    "monotone": _steps,
}


def _over_datasets(clause: Clause, numbers: Sequence[Number]) -> list[Number]:
    """One number for each value of `each` and each rival: the centre over data sets and outputs."""
    groups: dict[tuple[tuple[str, ...], str], list[Estimate | None]] = {}
    for number in numbers:
        groups.setdefault((number.key[2 : 2 + len(clause.each)], number.rival), []).append(number.estimate)
    return [
        Number(("", "", *key), None if None in terms else SignedRank([term.value for term in terms if term]), rival)
        for (key, rival), terms in groups.items()
    ]


def _mean(values: Sequence[float], ratio: float | None) -> Student | None:
    """The mean with its corrected standard error; without one where the numbers of rows are unknown."""
    if not values:
        return None
    (mean, plain), n = mean_stderr(values), len(values)
    if plain is None or ratio is None:
        return Student(mean, None, max(1, n - 1), n)
    return Student(mean, plain * math.sqrt(1 + n * ratio), n - 1, n, plain * math.sqrt(n), ratio)


def _proportion(value: float, cell: KeyedCell) -> Student:
    """A mean of zeros and ones over the test rows of a split."""
    rows = cell.runs.records[0].test_rows if cell.runs else None
    stderr = math.sqrt(value * (1 - value) / rows) if rows else None
    return Student(value, stderr or None, math.inf, 1)


def _cells(*cells: KeyedCell) -> tuple[CellRuns, ...]:
    return tuple(cell.runs for cell in cells if cell.runs)


def _minus(a: Student, b: Student) -> Student:
    """The difference of two proportions as if independent, which is too careful where both err on the same rows."""
    stderr = None if a.stderr is None or b.stderr is None else math.hypot(a.stderr, b.stderr)
    return Student(a.value - b.value, stderr, math.inf, 1)


def _log(value: float, name: str) -> float:
    if value <= 0:
        raise ConfigError(f"{name}: {value:g} has no logarithm: take a difference, or a metric that is above 0")
    return math.log(value)


def _size(cell: KeyedCell, clause: Clause, name: str) -> float:
    """The cell's value of `along`: a number, or the length of a list such as components."""
    text = cell.keys.get(clause.along, "")
    try:
        value = json.loads(text)
        return float(len(value) if isinstance(value, list) else value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: along {clause.along!r}: {text!r} is no number, and no list") from error


def _key(clause: Clause, cell: KeyedCell) -> tuple[str, ...]:
    return tuple(cell.keys.get(key, "") for key in ("dataset", "output", *clause.keys))
