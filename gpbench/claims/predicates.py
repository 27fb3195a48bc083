"""Kinds of predicates: from the cells of a clause to numbers, one for each data set, output and value of `each`."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean, linear_regression

from gpbench.analysis.statistics import common_splits, largest_ratio
from gpbench.claims import quantities, sets
from gpbench.claims.clauses import Clause
from gpbench.claims.estimates import Estimate, Exact, PairedSpread, SignedRank, Student
from gpbench.claims.kept import COMPARISONS
from gpbench.claims.numbers import Number, key_of, log, machine, mean, mean_over_rows, runs_of
from gpbench.claims.selection import KeyedCell, crowded, group, listed_keys, match, rival_keys
from gpbench.errors import ConfigError
from gpbench.own_metrics import COUNTED


def numbers(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> list[Number]:
    """The numbers of a clause.

    Seconds are of one machine, for each data set that of most runs; those of several are no number.  Raises
    ConfigError: several cells stand for one number, or no two are a pair.
    """
    timed = quantities.is_of_seconds(clause.metric)
    results = list(_KINDS[clause.kind](clause, _of_one_machine(sides) if timed else sides, name))
    if not results:
        raise ConfigError(f"{name}: a and b have no data set in common")
    if timed:
        results = [replace(number, estimate=None) if number.machines > 1 else number for number in results]
    return _over_datasets(clause, results) if clause.over else results


def _of_one_machine(sides: dict[str, list[KeyedCell]]) -> dict[str, list[KeyedCell]]:
    """The cells with runs of one machine alone: for each data set that of most runs, among those that all sides have.

    Cells of a data set without such a machine are unchanged.
    """
    machines: dict[str, tuple[str | None, int | None]] = {}
    for dataset in {cell.keys["dataset"] for cells in sides.values() for cell in cells}:
        cells_of = [[cell for cell in cells if cell.keys["dataset"] == dataset] for cells in sides.values()]
        counts = [Counter(machine(record) for cell in cells for record in cell.records) for cells in cells_of]
        if common := set.intersection(*map(set, counts)):
            machines[dataset] = max(sorted(common, key=str), key=lambda m: sum(count[m] for count in counts))

    def trim(cell: KeyedCell) -> KeyedCell:
        own = machines.get(cell.keys["dataset"])
        if cell.runs is None or own is None:
            return cell
        records = tuple(record for record in cell.records if machine(record) == own)
        return replace(cell, runs=replace(cell.runs, records=records) if records else None)

    return {side: [trim(cell) for cell in cells] for side, cells in sides.items()}


def _pairs(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Paired differences over splits, of logarithms for a ratio; and numbers of both sides' kept arrays."""
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            differences = _differences(clause, a, b, name)
            ratio = largest_ratio(cell.runs.ratio for cell in (a, b) if cell.runs)
            estimate: Estimate | None = mean([*differences.values()], ratio)
            if clause.metric in COUNTED and differences:
                estimate = Exact(next(iter(differences.values())))
            elif estimate and len(differences) == 1 and clause.kind != "comparison" and not clause.against:
                (split,) = differences
                estimate = mean_over_rows(estimate.value, clause, (a, split), (b, split))
            yield Number(key_of(clause, a), estimate, _rival(clause, b), runs_of(a, b))


def _differences(clause: Clause, a: KeyedCell, b: KeyedCell, name: str) -> dict[int, float]:
    """What is averaged over splits, by common split."""
    if clause.kind == "comparison":
        compare = COMPARISONS[clause.metric]
        values = {k: compare(a.arrays(k), b.arrays(k)) for k in sorted(a.recorded & b.recorded)}
        return {k: value for k, value in values.items() if value is not None}
    transform = (lambda value: log(value, name)) if clause.kind == "ratio" else float
    values_a, values_b = a.values(clause.metric), b.values(clause.against or clause.metric)
    return {k: transform(values_a[k]) - transform(values_b[k]) for k in common_splits([values_a, values_b])}


def _values(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    for cells in group(sides["of"], clause.keys).values():
        if len(cells) > 1:
            raise crowded(cells, "of", name)
        (cell,) = cells
        by_split = cell.values(clause.metric)
        estimate: Estimate | None = mean([*by_split.values()], cell.runs.ratio if cell.runs else None)
        if clause.metric in COUNTED and by_split:
            estimate = Exact(next(iter(by_split.values())))
        elif estimate and len(by_split) == 1:
            (split,) = by_split
            estimate = mean_over_rows(estimate.value, clause, (cell, split))
        yield Number(key_of(clause, cell), estimate, cells=runs_of(cell))


def _spreads(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The logarithm of the ratio of the standard deviations over a data set's outputs, of means over splits."""
    pairs: dict[tuple[tuple[str, ...], str], list[tuple[KeyedCell, KeyedCell]]] = {}
    for a, rivals in match(clause, sides["a"], sides["b"], name):
        for b in rivals:
            dataset, _, *rest = key_of(clause, a)
            pairs.setdefault(((dataset, "", *rest), _rival(clause, b)), []).append((a, b))
    for (key, rival), outputs in pairs.items():
        known = [(x, y) for a, b in outputs if (x := a.values(clause.metric)) and (y := b.values(clause.metric))]
        means = [(fmean(x.values()), fmean(y.values())) for x, y in known]
        yield Number(key, PairedSpread(means) if len(means) > 2 else None, rival, runs_of(*itertools.chain(*outputs)))


def _ranges(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Paired differences over splits of the range of each side over the values of a key."""
    rivals = group(sides["b"], (*clause.keys, *listed_keys(clause)))
    for key, cells in group(sides["a"], clause.keys).items():
        for other in (others for rival, others in rivals.items() if rival[: len(key)] == key):
            for side, crowd in (("a", cells), ("b", other)):
                if len({cell.keys.get(clause.along) for cell in crowd}) < len(crowd):
                    raise ConfigError(f"{name}: {side} has several cells of one {clause.along} on {key[0]}")
            range_a, range_b = _range(cells, clause.metric), _range(other, clause.metric)
            differences = [range_a[k] - range_b[k] for k in common_splits([range_a, range_b])]
            ratio = largest_ratio(cell.runs.ratio for cell in (*cells, *other) if cell.runs)
            yield Number(key, mean(differences, ratio), _rival(clause, other[0]), runs_of(*cells, *other))


def _range(cells: Sequence[KeyedCell], metric: str) -> dict[int, float]:
    """The largest value of a metric less the smallest, by split; infinite where a run diverged."""
    values = [cell.values(metric) for cell in cells]
    of_split = {k: [by_split.get(k, math.nan) for by_split in values] for k in cells[0].recorded}
    recorded = {k: some for k, some in of_split.items() if all(k in cell.recorded for cell in cells)}
    return {k: math.inf if any(map(math.isnan, some)) else max(some) - min(some) for k, some in recorded.items()}


def _rival(clause: Clause, b: KeyedCell) -> str:
    """The name of a rival; "" where there is one.  Over data sets its size, which may differ, is no part of it."""
    if not listed_keys(clause):
        return ""
    return " ".join(filter(None, (b.keys.get(key, "") for key in (["method"] if clause.over else rival_keys(clause)))))


def _slopes(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """The slope of a log-log line by least squares through the means of all sizes; of counts it has no error.

    That of fewer than four sizes has no known error: what three points lack to a line is one number, and its interval
    assumes equal, independent errors and a true line, none of which a single number can tell.
    """
    for cells in group(sides["of"], clause.keys).values():
        points = [(_size(cell, clause, name), [*cell.values(clause.metric).values()]) for cell in cells]
        means = {size: fmean(values) for size, values in points if values}
        key = key_of(clause, cells[0])
        if len(means) < len(points) or len(means) < 3:
            yield Number(key, None)
            continue
        x, y = [log(size, name) for size in means], [log(value, name) for value in means.values()]
        slope, intercept = linear_regression(x, y)
        if clause.metric in COUNTED:  # what it lacks to a line is no error of its measurement
            yield Number(key, Exact(slope, len(x)), cells=runs_of(*cells))
            continue
        residual = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y)) / (len(x) - 2)
        stderr = math.sqrt(residual / math.fsum((a - fmean(x)) ** 2 for a in x)) if len(x) > 3 else None
        yield Number(key, Student(slope, stderr, len(x) - 2, len(x)), cells=runs_of(*cells))


def _steps(clause: Clause, sides: dict[str, list[KeyedCell]], name: str) -> Iterator[Number]:
    """Paired differences between consecutive sizes; no estimate of a single size, for a preset without others."""
    for cells in group(sides["of"], clause.keys).values():
        ordered = sorted(cells, key=lambda cell: _size(cell, clause, name))
        if len(ordered) == 1:
            yield Number(key_of(clause, ordered[0]), None)
        for small, large in itertools.pairwise(ordered):
            before, after = small.values(clause.metric), large.values(clause.metric)
            differences = [after[k] - before[k] for k in common_splits([before, after])]
            ratio = largest_ratio(cell.runs.ratio for cell in (small, large) if cell.runs)
            key = (*key_of(clause, large), large.keys[clause.along])
            estimate = mean(differences, ratio)
            if estimate and len(differences) == 1:
                (split,) = common_splits([before, after])
                estimate = mean_over_rows(estimate.value, clause, (small, split), (large, split))
            yield Number(key, estimate, cells=runs_of(small, large))


_KINDS: dict[str, Callable[[Clause, dict[str, list[KeyedCell]], str], Iterator[Number]]] = {
    "difference": _pairs,
    "ratio": _pairs,
    "value": _values,
    "share": sets.shares,
    "rank": sets.ranks,
    "friedman": sets.friedman,
    "spread": _spreads,
    "range": _ranges,
    "comparison": _pairs,
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


def _size(cell: KeyedCell, clause: Clause, name: str) -> float:
    """The cell's value of `along`: a number, or the length of a list such as components."""
    text = cell.keys.get(clause.along, "")
    try:
        value = json.loads(text)
        return float(len(value) if isinstance(value, list) else value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{name}: along {clause.along!r}: {text!r} is no number, and no list") from error
