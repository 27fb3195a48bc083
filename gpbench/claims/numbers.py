"""Numbers of a clause: a kind of predicate makes terms of cells, and an estimate of the terms of each number."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, linear_regression
from typing import NamedTuple

import numpy as np

from gpbench.analysis.grouping import gather
from gpbench.analysis.statistics import average_ranks, common_splits, friedman, largest_ratio
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Estimate, clustered, exact, mean, share, student
from gpbench.claims.quantities import COMPARISONS
from gpbench.claims.selection import Key, KeyedCell, Number, crowded, group, listed_keys, machine
from gpbench.errors import ConfigError
from gpbench.metrics import better
from gpbench.own_metrics import COUNTED

_Sides = Mapping[str, Sequence[KeyedCell]]


class _Term(NamedTuple):
    """Cells of a number, or of a part of it."""

    key: Key
    rival: str
    cells: Sequence[KeyedCell]  # those of a, `of` or `among`
    others: Sequence[KeyedCell] = ()  # those that they are compared with


def numbers(clause: Clause, sides: _Sides, name: str) -> list[Number]:
    """The numbers of a clause; seconds are of one machine, for each data set that of most runs."""
    timed = clause.metric.is_of_seconds
    terms_of, estimate = _KINDS[clause.kind]
    terms_of_sides = terms_of(clause, _of_one_machine(sides) if timed else sides, name)
    groups = gather((_whole(clause, term), term) for term in terms_of_sides)
    if not groups:
        raise ConfigError(f"{name}: a and b have no data set in common")
    results = []
    for (key, rival), terms in groups.items():
        runs = [cell.runs for term in terms for cell in (*term.cells, *term.others) if cell.runs and key[0]]
        number = Number(key, estimate(clause, terms, name), rival, tuple(runs))
        results.append(replace(number, estimate=None) if timed and number.machines > 1 else number)
    return _over_datasets(clause, results) if clause.over else results


def _whole(clause: Clause, term: _Term) -> tuple[Key, str]:
    """The key and rival of the number that a term is a part of: one of all outputs, or of all data sets."""
    (_, _, *values), rival = term.key, term.rival
    if clause.kind == "share":
        return ("", "", *values[: len(clause.each)]), ""
    return ("", "", *values) if clause.kind in ("rank", "friedman") else term.key, rival


def _of_one_machine(sides: _Sides) -> _Sides:
    """The cells with runs of one machine alone: for each data set that of most runs, if all sides have one."""
    machines: dict[str, object] = {}
    for dataset in {cell.keys["dataset"] for cells in sides.values() for cell in cells}:
        of_set = [[cell for cell in cells if cell.keys["dataset"] == dataset] for cells in sides.values()]
        counts = [Counter(machine(record) for cell in cells for record in cell.records) for cells in of_set]
        if common := set.intersection(*map(set, counts)):
            machines[dataset] = max(sorted(common, key=str), key=lambda m: sum(count[m] for count in counts))

    def trim(cell: KeyedCell) -> KeyedCell:
        own = machines.get(cell.keys["dataset"])
        if cell.runs is None or own is None:
            return cell
        records = tuple(record for record in cell.records if machine(record) == own)
        return replace(cell, runs=replace(cell.runs, records=records) if records else None)

    return {side: [trim(cell) for cell in cells] for side, cells in sides.items()}


def _over_datasets(clause: Clause, numbers: Sequence[Number]) -> list[Number]:
    """One number for each value of `each` and each rival: the mean over data sets of the means of their outputs."""
    groups = gather(((number.key[2 : 2 + len(clause.each)], number.rival), number) for number in numbers)
    results = []
    for (key, rival), terms in groups.items():
        by_set = gather((term.key[0], term.estimate.value) for term in terms if term.estimate)
        cells = {id(cell): cell for term in terms for cell in term.cells}
        results.append(Number(("", "", *key), clustered(by_set), rival, tuple(cells.values())))
    return results


def _groups(clause: Clause, sides: _Sides, name: str) -> list[_Term]:
    """The cells of each key, of a kind with one side."""
    return [_Term(key, "", cells) for side in sides.values() for key, cells in group(side, clause.keys).items()]


def _pairs(clause: Clause, sides: _Sides, name: str) -> Iterator[_Term]:
    """Each cell of a, or all of them along a key, with those of each rival."""
    rivals = group(sides["b"], (*clause.keys, *listed_keys(clause)))
    for key, cells in group(sides["a"], clause.keys).items():
        for others in (others for rival, others in rivals.items() if rival[: len(key)] == key):
            for side, crowd in (("a", cells), ("b", others)):
                if clause.along and len({cell.keys.get(clause.along) for cell in crowd}) < len(crowd):
                    raise ConfigError(f"{name}: {side} has several cells of one {clause.along} on {key[0]}")
                if len(crowd) > 1 and not clause.along:
                    raise crowded(crowd, side, name)
            yield _Term(key, _rival(clause, others[0]), cells, others)


def _steps(clause: Clause, sides: _Sides, name: str) -> Iterator[_Term]:
    """Each cell with that of the next smaller size; none of a single size, for a preset without others."""
    for key, cells in group(sides["of"], clause.keys).items():
        ordered = sorted(cells, key=lambda cell: _size(cell, clause, name))
        for small, large in itertools.pairwise(ordered):
            yield _Term((*key, large.keys[clause.along]), "", [large], [small])
        if len(ordered) == 1:
            yield _Term(key, "", ())


def _ranked(clause: Clause, sides: _Sides, name: str) -> Iterator[_Term]:
    """All cells of each key, with that of a and that of one b."""
    keys = ["method", *listed_keys(clause)]
    for key, cells in group(sides["among"], clause.keys).items():
        firsts, rivals = ([cell for cell in cells if cell in sides[side]] for side in "ab")
        names = [tuple(rival.keys.get(key, "") for key in dict.fromkeys(keys)) for rival in rivals]
        if len(firsts) != 1 or not rivals or len({*names}) < len(names) or firsts[0] in rivals:
            raise ConfigError(f"{name}: a and each b must be one cell each of those `among`, on {key[0]}")
        for rival, words in zip(rivals, names):
            yield _Term(key, " ".join(filter(None, words)), cells, [firsts[0], rival])


def _rival(clause: Clause, b: KeyedCell) -> str:
    """The name of a rival; "" where there is one.  Over data sets its size, which may differ, is no part of it."""
    listed = listed_keys(clause)
    keys = dict.fromkeys(["method", *([] if clause.over else listed)])
    return " ".join(filter(None, (b.keys.get(key, "") for key in keys))) if listed else ""


def _size(cell: KeyedCell, clause: Clause, name: str) -> float:
    """The cell's value of `along`: a number, or the length of a list such as components."""
    text = cell.keys.get(clause.along, "")
    try:
        value = json.loads(text)
        return float(len(value) if isinstance(value, list) else value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: along {clause.along!r}: {text!r} is no number, and no list") from error


def _mean(clause: Clause, terms: Sequence[_Term], name: str) -> Estimate | None:
    """The mean over splits of a value or of paired differences: exact for counts; of one split with that of rows."""
    ((_, _, cells, others),) = terms
    if clause.kind == "value" and len(cells) > 1:
        raise crowded(cells, "of", name)
    by_split = _by_split(clause, cells, others, name) if cells else {}
    if by_split and str(clause.metric) in COUNTED:
        return exact(next(iter(by_split.values())))
    ratio = largest_ratio(cell.runs.ratio for cell in (*cells, *others) if cell.runs)
    estimate = mean([*by_split.values()], ratio)
    if estimate and len(by_split) == 1 and clause.kind not in ("comparison", "range") and not clause.against:
        (split,) = by_split
        errors = [_row_stderr(cell, clause, split) for cell in (*cells, *others)]
        known = [error for error in errors if error is not None]
        # as of independent sides, which is too careful where both err alike
        stderr = max(1.0, clause.split_ratio or 1.0) * math.hypot(*known) if len(known) == len(errors) else None
        source = "splits" if stderr is None else "rows"
        return student(estimate.value, stderr, math.inf, 1, source=source)
    return estimate


def _by_split(clause: Clause, cells: Sequence[KeyedCell], others: Sequence[KeyedCell], name: str) -> dict[int, float]:
    """Values of a cell by split, or differences from another; of logarithms for a ratio."""
    metric = clause.metric
    if not others:
        return {**cells[0].values(metric)}
    first, other = cells[0], others[0]
    if clause.kind == "comparison":
        compare = COMPARISONS[metric.metric]
        values = {k: compare(first.arrays(k), other.arrays(k)) for k in sorted(first.recorded & other.recorded)}
        return {k: value for k, value in values.items() if value is not None}
    if clause.kind == "range":
        a, b = _range(cells, clause), _range(others, clause)
    else:
        a, b = first.values(metric), other.values(clause.against or metric)
    transform = (lambda value: _log(value, name)) if clause.kind == "ratio" else float
    return {k: transform(a[k]) - transform(b[k]) for k in common_splits([a, b])}


def _range(cells: Sequence[KeyedCell], clause: Clause) -> Mapping[int, float]:
    """The largest value of the metric less the smallest, by split; infinite where a run diverged."""
    values = [cell.values(clause.metric) for cell in cells]
    splits = set.intersection(*(cell.recorded for cell in cells))
    of_split = {k: [by_split.get(k, math.nan) for by_split in values] for k in splits}
    return {k: math.inf if any(map(math.isnan, some)) else max(some) - min(some) for k, some in of_split.items()}


def _row_stderr(cell: KeyedCell, clause: Clause, split: int) -> float | None:
    """The standard error of a number of a single split over its test rows; of its logarithm for a ratio."""
    record, metric = next(record for record in cell.records if record.split == split), str(clause.metric)
    value, stderr = cell.values(clause.metric)[split], (record.row_stderr or {}).get(metric)
    if stderr is None and metric in ("error", "coverage95") and record.test_rows:  # means of zeros and ones
        stderr = math.sqrt(value * (1 - value) / record.test_rows)
    return (stderr / abs(value) if clause.kind == "ratio" else stderr) if stderr else None


def _log(value: float, name: str) -> float:
    if value <= 0:
        raise ConfigError(f"{name}: {value:g} has no logarithm: take a difference, or a metric that is above 0")
    return math.log(value)


def _slope(clause: Clause, terms: Sequence[_Term], name: str) -> Estimate | None:
    """The slope of a log-log line through the means of all sizes; of counts and of three sizes it has no error."""
    (term,) = terms
    points = [(_size(cell, clause, name), [*cell.values(clause.metric).values()]) for cell in term.cells]
    means = {size: fmean(values) for size, values in points if values}
    if len(means) < len(points) or len(means) < 3:
        return None
    x, y = [_log(size, name) for size in means], [_log(value, name) for value in means.values()]
    slope, intercept = linear_regression(x, y)
    if str(clause.metric) in COUNTED:  # what it lacks to a line is no error of its measurement
        return exact(slope, len(x))
    residual = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y)) / (len(x) - 2)
    stderr = math.sqrt(residual / math.fsum((a - fmean(x)) ** 2 for a in x)) if len(x) > 3 else None
    return student(slope, stderr, len(x) - 2, len(x))


def _share(clause: Clause, terms: Sequence[_Term], name: str) -> Estimate | None:
    """The share of pairs in which a's mean is better than b's; ties do not count as better."""
    losses = ((term.cells[0].keys["dataset"], _losses(clause, [*term.cells, *term.others])) for term in terms)
    wins = gather((dataset, means[0] < means[1]) for dataset, means in losses if means)
    return share([*wins.values()]) if wins else None


def _rank(clause: Clause, terms: Sequence[_Term], name: str) -> Estimate | None:
    """The average rank of a minus that of b, with an error between the data sets that all methods `among` have."""
    by_set: dict[str, list[float]] = {}
    for term in terms:
        if losses := _losses(clause, term.cells):
            ranks = average_ranks(np.array([losses]))[0]
            a, b = (next(k for k, cell in enumerate(term.cells) if cell is other) for other in term.others)
            by_set.setdefault(term.cells[0].keys["dataset"], []).append(float(ranks[a] - ranks[b]))
    return clustered(by_set)


def _friedman(clause: Clause, terms: Sequence[_Term], name: str) -> Estimate | None:
    """Friedman's p-value of equal average ranks of all methods `among`, over the data sets that all have."""
    rows = [losses for term in terms if (losses := _losses(clause, term.cells))]
    if len({*map(len, rows)}) > 1:
        raise ConfigError(f"{name}: the data sets have different numbers of methods: give values that all have")
    if len(rows) < 2:
        return None
    return exact(friedman(average_ranks(np.array(rows)))[1], len(rows))


def _losses(clause: Clause, cells: Sequence[KeyedCell]) -> list[float]:
    """The means over the splits that all cells have, of which lower ones are better; [] without such splits."""
    records = (record for cell in cells for record in cell.records)  # which know the direction of a user's own metric
    sign = 1 if better(clause.metric.metric, records) == "lower" else -1
    values = [cell.values(clause.metric) for cell in cells]
    splits = common_splits(values)
    return [sign * fmean(by_split[k] for k in splits) for by_split in values if splits]


_Terms = Callable[[Clause, _Sides, str], Iterable[_Term]]
_KINDS: Mapping[str, tuple[_Terms, Callable[[Clause, Sequence[_Term], str], Estimate | None]]] = {
    **dict.fromkeys(("difference", "ratio", "comparison", "range"), (_pairs, _mean)),
    "value": (_groups, _mean),
    "monotone": (_steps, _mean),
    "slope": (_groups, _slope),
    "share": (_pairs, _share),
    "rank": (_ranked, _rank),
    "friedman": (_groups, _friedman),
}
"""Functions of each kind: its terms, and the estimate of a number."""
