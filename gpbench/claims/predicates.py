"""The kinds of predicates: from the runs of a clause to numbers, one for each data set, output and value of `each`."""

import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, linear_regression

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.statistics import common_splits, largest_ratio, mean_stderr
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Estimate, Exact, Share, SignedRank, Student
from gpbench.claims.selection import Runs, group, lists, match
from gpbench.errors import ConfigError
from gpbench.metrics import better

_PROPORTIONS = ("error", "coverage95")
"""Metrics that are means of zeros and ones over test rows, whose error is known from a single split."""
_EXACT = ("step_memory_mb",)
"""Metrics that are counted, not estimated: the temporary memory of a compiled step."""


@dataclass(frozen=True)
class Number:
    """An estimate (None where runs are missing) with where it is from: data set, output, values of the clause's keys.

    `rival` names which of several b it is against; `cells` are those that it is estimated from.
    """

    place: tuple[str, ...]
    estimate: Estimate | None
    rival: str = ""
    cells: tuple[CellRuns, ...] = ()

    @property
    def name(self) -> str:
        """Data set, output, values of keys and rival, as far as there are any."""
        return " ".join(filter(None, [*self.place, self.rival]))


def numbers(clause: Clause, sides: dict[str, list[Runs]], place: str) -> list[Number]:
    """The numbers of a clause, whose `sides` are runs that `gpbench.claims.selection.select_runs` selected.

    Raises ConfigError where several runs stand for one number, and where none are a pair.
    """
    found = list(_KINDS[clause.kind](clause, sides, place))
    if not found:
        raise ConfigError(f"{place}: a and b have no data set in common")
    return _over_datasets(clause, found) if clause.over else found


def _pairs(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    """Paired differences over splits, of logarithms for a ratio."""
    transform = (lambda value: _log(value, place)) if clause.kind == "ratio" else float
    apart = ["method"] if clause.over else _apart(clause)  # a rival's size may differ by data set
    for a, rivals in match(clause, sides["a"], sides["b"], place):
        for b in rivals:
            of_a, of_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([of_a, of_b])
            differences = [transform(of_a[k]) - transform(of_b[k]) for k in common]
            ratio = largest_ratio(of.cell.ratio for of in (a, b) if of.cell)
            estimate = _mean(differences, ratio)
            if clause.kind == "difference" and clause.metric in _PROPORTIONS and len(common) == 1:
                estimate = _minus(_proportion(of_a[common[0]], a), _proportion(of_b[common[0]], b))
            rival = " ".join(filter(None, (b.keys.get(key, "") for key in apart))) if len(rivals) > 1 else ""
            yield Number(_place(clause, a), estimate, rival, _cells(a, b))


def _values(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    for key, cells in group(sides["of"], clause.keys).items():
        if len(cells) > 1:
            raise ConfigError(f"{place}: `of` has {len(cells)} cells on {key[0]}: give a value of what sets them apart")
        (of,) = cells
        values = [*of.values(clause.metric).values()]
        estimate: Estimate | None = _mean(values, of.cell.ratio if of.cell else None)
        if clause.metric in _EXACT and values:
            estimate = Exact(values[0])
        elif clause.metric in _PROPORTIONS and len(values) == 1:
            estimate = _proportion(values[0], of)
        yield Number(_place(clause, of), estimate, cells=_cells(of))


def _shares(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    """The share of cells in which a's mean is better than b's; ties are none."""
    sign = 1 if better(clause.metric) == "lower" else -1
    outcomes: dict[tuple[str, ...], list[bool | None]] = {}
    for a, rivals in match(clause, sides["a"], sides["b"], place):
        for b in rivals:
            of_a, of_b = a.values(clause.metric), b.values(clause.metric)
            common = common_splits([of_a, of_b])
            won = sign * fmean(of_a[k] - of_b[k] for k in common) < 0 if common else None
            outcomes.setdefault(("", "", *_place(clause, a)[2 : 2 + len(clause.each)]), []).append(won)
    for key, wins in outcomes.items():
        yield Number(key, None if None in wins else Share(sum(map(bool, wins)), len(wins)))


def _ranks(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    """Average rank of a minus that of each b, over the data sets of which all methods `among` have a split.

    Ranks are of means over the splits that all of them have.
    Its variance is that of ranks without differences, k (k + 1) / 6N (Demšar 2006, section 3.2.2).
    """
    sign = 1 if better(clause.metric) == "lower" else -1
    names = _apart(clause)
    found: dict[tuple[tuple[str, ...], tuple[str, ...]], list[tuple[int, float | None]]] = {}
    for key, cells in group(sides["among"], clause.keys).items():
        firsts, rivals = ([k for k, of in enumerate(cells) if of in sides[side]] for side in "ab")
        called = [tuple(cells[k].keys.get(name, "") for name in names) for k in rivals]
        if len(firsts) != 1 or not rivals or len({*called}) < len(called) or firsts[0] in rivals:
            raise ConfigError(f"{place}: a and each b must be one cell each of those `among`, on {key[0]}")
        values = [of.values(clause.metric) for of in cells]
        common = common_splits(values)
        ranks = _mid_ranks([sign * fmean(of[k] for k in common) for of in values]) if common else None
        for name, k in zip(called, rivals):
            apart = None if ranks is None else float(ranks[firsts[0]] - ranks[k])
            found.setdefault((("", "", *key[2:]), name), []).append((len(cells), apart))
    for (place_of, name), rows in found.items():
        complete = [apart for _, apart in rows if apart is not None]
        sizes, n = {k for k, apart in rows if apart is not None}, len(complete)
        k = max(sizes, default=0)
        known = Student(fmean(complete), math.sqrt(k * (k + 1) / (6 * n)), math.inf, n) if len(sizes) == 1 else None
        yield Number(place_of, known, " ".join(filter(None, name)))


def _mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1, the smallest first; ties share their mean.  To import scipy.stats takes longer than a verdict."""
    return [sum(b < a for b in values) + (sum(b == a for b in values) + 1) / 2 for a in values]


def _apart(clause: Clause) -> list[str]:
    """The keys that tell rivals apart."""
    return list(dict.fromkeys(["method", *lists(clause)]))


def _slopes(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    """The slope of a log-log line by least squares through the means of all sizes."""
    for cells in group(sides["of"], clause.keys).values():
        points = [(_size(of, clause, place), [*of.values(clause.metric).values()]) for of in cells]
        at = {size: fmean(values) for size, values in points if values}
        place_ = _place(clause, cells[0])
        if len(at) < len(points) or len(at) < 3:
            yield Number(place_, None)
            continue
        x, y = [_log(size, place) for size in at], [_log(value, place) for value in at.values()]
        slope, intercept = linear_regression(x, y)
        residual = math.fsum((b - slope * a - intercept) ** 2 for a, b in zip(x, y)) / (len(x) - 2)
        stderr = math.sqrt(residual / math.fsum((a - fmean(x)) ** 2 for a in x))
        exact = clause.metric in _EXACT and stderr < 1e-12
        estimate = Student(slope, stderr, len(at) - 2, len(at))
        yield Number(place_, Exact(slope, len(at)) if exact else estimate, cells=_cells(*cells))


def _steps(clause: Clause, sides: dict[str, list[Runs]], place: str) -> Iterator[Number]:
    """Paired differences between consecutive sizes; None of a single size, as where a preset has no other."""
    for cells in group(sides["of"], clause.keys).values():
        ordered = sorted(cells, key=lambda of: _size(of, clause, place))
        if len(ordered) == 1:
            yield Number(_place(clause, ordered[0]), None)
        for small, large in itertools.pairwise(ordered):
            before, after = small.values(clause.metric), large.values(clause.metric)
            differences = [after[k] - before[k] for k in common_splits([before, after])]
            ratio = largest_ratio(of.cell.ratio for of in (small, large) if of.cell)
            place_ = (*_place(clause, large), large.keys[clause.along])
            yield Number(place_, _mean(differences, ratio), cells=_cells(small, large))


_KINDS: dict[str, Callable[[Clause, dict[str, list[Runs]], str], Iterator[Number]]] = {
    "difference": _pairs,
    "ratio": _pairs,
    "value": _values,
    "share": _shares,
    "rank": _ranks,
    "slope": _slopes,
    "monotone": _steps,
}


def _over_datasets(clause: Clause, found: Sequence[Number]) -> list[Number]:
    """One number for each value of `each` and each rival: the centre over data sets and outputs."""
    groups: dict[tuple[tuple[str, ...], str], list[Number]] = {}
    for number in found:
        groups.setdefault((number.place[2 : 2 + len(clause.each)], number.rival), []).append(number)
    return [
        Number(
            ("", "", *key),
            None if any(n.estimate is None for n in of) else SignedRank([n.estimate.value for n in of if n.estimate]),
            rival,
        )
        for (key, rival), of in groups.items()
    ]


def _mean(values: Sequence[float], ratio: float | None) -> Student | None:
    """With the corrected standard error where splits share rows; without one where the sizes are unknown."""
    if not values:
        return None
    (mean, plain), n = mean_stderr(values), len(values)
    if plain is None or ratio is None:
        return Student(mean, None, max(1, n - 1), n)
    return Student(mean, plain * math.sqrt(1 + n * ratio), n - 1, n, plain * math.sqrt(n), ratio)


def _proportion(value: float, of: Runs) -> Student:
    rows = of.cell.records[0].test_rows if of.cell else None
    stderr = math.sqrt(value * (1 - value) / rows) if rows else None
    return Student(value, stderr or None, math.inf, 1)


def _cells(*runs: Runs) -> tuple[CellRuns, ...]:
    return tuple(of.cell for of in runs if of.cell)


def _minus(a: Student, b: Student) -> Student:
    """As of independent proportions, which is too careful where both err on the same rows."""
    stderr = None if a.stderr is None or b.stderr is None else math.hypot(a.stderr, b.stderr)
    return Student(a.value - b.value, stderr, math.inf, 1)


def _log(value: float, place: str) -> float:
    if value <= 0:
        raise ConfigError(f"{place}: {value:g} has no logarithm: take a difference, or a metric that is above 0")
    return math.log(value)


def _size(of: Runs, clause: Clause, place: str) -> float:
    """The number; of a list, such as components, its length."""
    text = of.keys.get(clause.along, "")
    try:
        value = json.loads(text)
        return float(len(value) if isinstance(value, list) else value)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{place}: along {clause.along!r}: {text!r} is no number, and no list") from error


def _place(clause: Clause, of: Runs) -> tuple[str, ...]:
    return tuple(of.keys.get(key, "") for key in ("dataset", "output", *clause.keys))
