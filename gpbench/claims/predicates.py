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
from gpbench.claims.estimates import Estimate, Exact, Share, SignedRank, Student, clustered
from gpbench.claims.selection import KeyedCell, group, listed_keys, match
from gpbench.errors import ConfigError
from gpbench.metrics import better
from gpbench.own_metrics import COUNTED

_PROPORTIONS = ("error", "coverage95")
"""Metrics that are means of zeros and ones over test rows, whose error over them is known without the rows."""


@dataclass(frozen=True)
class Number:
    """An estimate with the cells that it is from.

    Args:
        key: Data set, output, and values of the clause's keys.
        estimate: The estimate; None where runs are missing.
        rival: Name of the rival b, where a clause lists several.
        cells: Cells that the number is estimated from.
        preset: Preset of the runs.
    """

    key: tuple[str, ...]
    estimate: Estimate | None
    rival: str = ""
    cells: tuple[CellRuns, ...] = ()
    preset: str = ""

    @property
    def location(self) -> str:
        """Data set and output."""
        return " ".join(filter(None, self.key[:2]))

    @property
    def machines(self) -> int:
        """Number of different machines, by device and cores, of the runs."""
        records = [record for cell in self.cells for record in cell.records]
        return len({(record.device, (record.host or {}).get("cores")) for record in records})

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
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            values_a, values_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([values_a, values_b])
            differences = [transform(values_a[k]) - transform(values_b[k]) for k in common]
            ratio = largest_ratio(cell.runs.ratio for cell in (a, b) if cell.runs)
            estimate: Estimate | None = _mean(differences, ratio)
            if clause.metric in COUNTED and common:
                estimate = Exact(differences[0])
            elif estimate and len(common) == 1:
                pairs = ((a, values_a), (b, values_b))
                estimate = _of_rows(estimate.value, [_row_stderr(cell, clause, v[common[0]]) for cell, v in pairs])
            yield Number(_key(clause, a), estimate, _rival(clause, b), _cells(a, b))


def _values(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    for key, cells in group(sides["of"], clause.keys).items():
        if len(cells) > 1:
            raise ConfigError(f"{name}: `of` has {len(cells)} cells on {key[0]}: give a value of what sets them apart")
        (cell,) = cells
        values = [*cell.values(clause.metric).values()]
        estimate: Estimate | None = _mean(values, cell.runs.ratio if cell.runs else None)
        if clause.metric in COUNTED and values:
            estimate = Exact(values[0])
        elif len(values) == 1:
            estimate = _of_rows(values[0], [_row_stderr(cell, clause, values[0])])
        yield Number(_key(clause, cell), estimate, cells=_cells(cell))


def _shares(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The share of cells in which a's mean is better than b's; ties do not count as better."""
    sign = 1 if _direction(clause, sides) == "lower" else -1
    outcomes: dict[tuple[str, ...], dict[str, list[bool | None]]] = {}
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            values_a, values_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([values_a, values_b])
            won = sign * fmean(values_a[k] - values_b[k] for k in common) < 0 if common else None
            wins = outcomes.setdefault(("", "", *_key(clause, a)[2 : 2 + len(clause.each)]), {})
            wins.setdefault(a.keys["dataset"], []).append(won)
    for key, by_set in outcomes.items():
        known = [[won for won in wins if won is not None] for wins in by_set.values()]
        yield Number(key, Share([wins for wins in known if wins]) if any(known) else None)


def _ranks(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Average rank of a minus that of each b, over the data sets of which all methods `among` have a split.

    Ranks are of means over the splits that all of them have, and their differences have an error between data sets.
    """
    sign = 1 if _direction(clause, sides) == "lower" else -1
    keys = _rival_keys(clause)
    rows: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[str, list[float]]] = {}
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
            by_set = rows.setdefault((("", "", *key[2:]), rival), {})
            by_set.setdefault(key[0], []).extend([] if ranks is None else [float(ranks[firsts[0]] - ranks[k])])
    for (key, rival), by_set in rows.items():
        yield Number(key, clustered(by_set), " ".join(filter(None, rival)))


def _direction(clause: Clause, sides: Mapping[str, Sequence[KeyedCell]]) -> str | None:
    """The direction in which the metric improves, from the records where it is a user's own."""
    return better(clause.metric, (record for cells in sides.values() for cell in cells for record in cell.records))


def _rival_keys(clause: Clause) -> list[str]:
    """The keys that tell rivals apart."""
    return list(dict.fromkeys(["method", *listed_keys(clause)]))


def _rival(clause: Clause, b: KeyedCell) -> str:
    """The name of a rival; "" where there is one.  Over data sets its size, which may differ, is no part of it."""
    if not listed_keys(clause):
        return ""
    return " ".join(filter(None, (b.keys.get(key, "") for key in (["method"] if clause.over else _rival_keys(clause)))))


def _slopes(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The slope of a log-log line by least squares through the means of all sizes; of counts it has no error.

    That of fewer than four sizes has no known error: what three points lack to a line is one number, and its interval
    assumes equal, independent errors and a true line, none of which a single number can tell.
    """
    for cells in group(sides["of"], clause.keys).values():
        points = [(_size(cell, clause, name), [*cell.values(clause.metric).values()]) for cell in cells]
        means = {size: fmean(values) for size, values in points if values}
        key = _key(clause, cells[0])
        if len(means) < len(points) or len(means) < 3:
            yield Number(key, None)
            continue
        x, y = [_log(size, name) for size in means], [_log(value, name) for value in means.values()]
        slope, intercept = linear_regression(x, y)
        if clause.metric in COUNTED:  # what it lacks to a line is no error of its measurement
            yield Number(key, Exact(slope, len(x)), cells=_cells(*cells))
            continue
        residual = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y)) / (len(x) - 2)
        stderr = math.sqrt(residual / math.fsum((a - fmean(x)) ** 2 for a in x)) if len(x) > 3 else None
        yield Number(key, Student(slope, stderr, len(x) - 2, len(x)), cells=_cells(*cells))


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
            estimate = _mean(differences, ratio)
            if estimate and len(differences) == 1:
                (split,) = common_splits([before, after])
                errors = [_row_stderr(cell, clause, cell.values(clause.metric)[split]) for cell in (small, large)]
                estimate = _of_rows(estimate.value, errors)
            yield Number(key, estimate, cells=_cells(small, large))


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
    """One number for each value of `each` and each rival: the centre over data sets, of the means of their outputs."""
    groups: dict[tuple[tuple[str, ...], str], list[Number]] = {}
    for number in numbers:
        groups.setdefault((number.key[2 : 2 + len(clause.each)], number.rival), []).append(number)
    results = []
    for (key, rival), terms in groups.items():
        by_set: dict[str, list[float]] = {}
        for term in terms:
            if term.estimate:
                by_set.setdefault(term.key[0], []).append(term.estimate.value)
        estimate = SignedRank([fmean(values) for values in by_set.values()]) if by_set else None
        cells = {id(cell): cell for term in terms for cell in term.cells}
        results.append(Number(("", "", *key), estimate, rival, tuple(cells.values())))
    return results


def _mean(values: Sequence[float], ratio: float | None) -> Student | None:
    """The mean with its corrected standard error; without one where the numbers of rows are unknown."""
    if not values:
        return None
    (mean, plain), n = mean_stderr(values), len(values)
    if plain is None or ratio is None:
        return Student(mean, None, max(1, n - 1), n)
    return Student(mean, plain * math.sqrt(1 + n * ratio), n - 1, n, plain * math.sqrt(n), ratio)


def _row_stderr(cell: KeyedCell, clause: Clause, value: float) -> float | None:
    """The standard error of a number of a single split over its test rows, of a logarithm for a ratio; None if unknown.

    That of a mean of zeros and ones is binomial; of other metrics records have it.
    """
    record = cell.runs.records[0] if cell.runs else None
    if record is None:
        return None
    stderr = (record.row_stderr or {}).get(clause.metric)
    if stderr is None and clause.metric in _PROPORTIONS and record.test_rows:
        stderr = math.sqrt(value * (1 - value) / record.test_rows)
    if not stderr or clause.kind != "ratio":
        return stderr or None
    return stderr / abs(value)


def _of_rows(value: float, errors: Sequence[float | None]) -> Student:
    """A number of a single split; a difference as if its sides were independent, too careful where both err alike."""
    known = [error for error in errors if error is not None]
    stderr = math.hypot(*known) if len(known) == len(errors) else None
    return Student(value, stderr, math.inf, 1, of_rows=stderr is not None)


def _cells(*cells: KeyedCell) -> tuple[CellRuns, ...]:
    return tuple(cell.runs for cell in cells if cell.runs)


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
