"""The runs of a board: methods with their defaults, to their own end, on the data sets of a division, one split each.

A division is an experiment, whose preset `full` has its data sets, and `quick` the small ones, on which new methods are
placed, with plain runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.analysis.board import (
    Board,
    Interval,
    chance_to_win,
    family_of,
    gains,
    mean,
    mean_gain,
    of_families,
    outcomes,
)
from gpbench.analysis.kinds import ANY, Range
from gpbench.config.values import PROTOCOL_DEFAULTS
from gpbench.data import cards
from gpbench.errors import AbsentError, SoleMethodError, require, require_known
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.papers.published import terms
from gpbench.records.absences import LATE, NOT_FINITE
from gpbench.records.record import Record

LIMIT = 1200.0
"""CPU seconds without compilation beyond which a run is lost."""


@dataclass(frozen=True)
class Measure:
    """A metric by which methods are compared."""

    metric: str
    absolute: float = 0.0  # largest difference that is a tie
    relative: float = 0.0  # the same as a share of the smaller value

    @property
    def sign(self) -> int:
        """Minus 1 where a higher value of the metric is better, else 1."""
        return -1 if METRICS[self.metric].better == "higher" else 1

    def loss(self, record: Record) -> float:
        """The metric of a run, with a sign such that less is better; infinite where the run is lost."""
        if lost(record):
            return np.inf
        value = record.metrics.get(self.metric)
        return np.inf if value is None else self.sign * value

    def ties(self, first: float, second: float) -> bool:
        """Whether two values of the metric tie."""
        return bool(outcomes(np.array([[first], [second]]), self.absolute, self.relative)[0, 1, 0] == 0.5)


@dataclass(frozen=True)
class Division:
    """Data sets of one kind of task, and the measures of methods on them; the first measure orders the board."""

    name: str
    measures: tuple[Measure, ...]
    references: tuple[str, ...]  # named methods beside which others are put; the first is the reference

    @property
    def experiment(self) -> str:
        """Id of the experiment that has its runs."""
        return f"gpbench/leaderboard_{self.name}"

    def jobs(self, quick: bool = False) -> list[dict[str, str]]:
        """The jobs of all data sets, or of the small ones."""
        return definition.read(self.experiment).jobs("quick" if quick else "full")

    def datasets(self, quick: bool = False, rows: Range = ANY) -> dict[str, int]:
        """The split of each data set with so many rows, of all of them or of the small ones."""
        splits = {job["dataset"]: int(job["split"]) for job in self.jobs(quick)}
        size = lambda name: cards.read(name)["rows"]
        return splits if rows == ANY else {n: split for n, split in splits.items() if rows[0] <= size(n) <= rows[1]}


_MARGINS: dict[str, dict[str, tuple[float, float]]] = {
    "regression": {"test_ll": (0.01, 0.0), "rmse": (0.0, 0.01), "crps": (0.0, 0.01), "coverage_error": (0.01, 0.0)},
    "classification": {"nll": (0.01, 0.0), "error": (0.005, 0.0), "brier": (0.005, 0.0), "ece": (0.01, 0.0)},
}
"""Largest differences that are ties, absolute and as a share of the smaller value, by division and metric."""
_NAMED = {"regression": ("svgp", "linear"), "classification": ("svi_minibatch", "logistic")}
DIVISIONS: Mapping[str, Division] = {
    name: Division(name, tuple(Measure(m, *margin) for m, margin in margins.items()), (*_NAMED[name], "boosted_trees"))
    for name, margins in _MARGINS.items()
}


def lost(record: Record) -> str:
    """Why a run has lost to all others that have predictions; "" where it has them too."""
    if record.status != "done":
        return next(iter((record.undefined or {}).values()), record.status) if record.status == "failed" else "diverged"
    if (record.cpu_seconds or 0.0) > LIMIT:
        return LATE
    # a metric that does not exist on a test set is no loss
    existing = record.metrics.keys() - (record.undefined or {}).keys()
    return NOT_FINITE if any(record.metrics[name] is None for name in existing) else ""


def division_of(name: str) -> Division:
    """The division of this name.  Raises ConfigError for another one."""
    require_known(name, DIVISIONS, f"no division {name!r}")
    return DIVISIONS[name]


class Against(NamedTuple):
    """A method beside a named reference; no number depends on the other methods of a board."""

    chance: Interval  # to win on a new data set
    gain: Interval  # mean over data sets of the gain in the first measure
    ratio: Interval  # geometric mean over data sets of the second measure over the reference's
    won: tuple[str, ...]  # data sets
    lost: tuple[str, ...]
    tied: tuple[str, ...]


@dataclass(frozen=True)
class BoardRuns:
    """Methods and their runs on data sets of a division."""

    division: Division
    planned_sets: Sequence[str]
    runs: Mapping[tuple[str, str], Record]  # records by method and data set
    unranked: Mapping[str, int] = field(default_factory=dict)  # methods left out, with how many runs are lacking

    @cached_property
    def methods(self) -> tuple[str, ...]:
        return tuple(sorted({method for method, _ in self.runs}))

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """All planned data sets where two methods that count have these; else those that half of such methods have."""
        counted = {*compress(self.methods, self._counts)}
        whole = {name for name in counted if len(self.by_method[name]) == len(self.planned_sets)}
        counted = whole if len(whole) > 1 else counted
        having = Counter(dataset for method, dataset in self.runs if method in counted)
        return tuple(name for name in self.planned_sets if having[name] >= max(2, len(counted) / 2))

    @cached_property
    def _counts(self) -> Bool[ndarray, " K"]:
        """Whether a method is one of the others, and chooses the data sets: all do where no two ship."""
        ships = np.array([all(record.shipped for record in self.by_method[name]) for name in self.methods])
        return ships if ships.sum() > 1 else np.ones_like(ships)

    @cached_property
    def families(self) -> list[str]:
        return [*map(family_of, self.datasets)]

    @cached_property
    def by_method(self) -> dict[str, list[Record]]:
        """The runs of each method."""
        runs = self.runs.items()
        return {name: [record for (method, _), record in runs if method == name] for name in self.methods}

    @cached_property
    def expected(self) -> Mapping[str, int]:
        """The number of runs of each method on these data sets: fewer where it lacks a task."""
        jobs = Counter(job["method"] for job in self.division.jobs() if job["dataset"] in self.datasets)
        return {name: jobs.get(name, len(self.datasets)) for name in self.methods}

    def array(self, value: Callable[[Record], float]) -> Float[ndarray, "K D"]:
        """A function of the record of each run; NaN where there is no run."""
        keys = [[(method, dataset) for dataset in self.datasets] for method in self.methods]
        return np.array([[value(self.runs[key]) if key in self.runs else np.nan for key in row] for row in keys])

    @cached_property
    def of_sets(self) -> Mapping[str, Float[ndarray, "K K D"]]:
        """The outcomes on each data set, by the metric of each measure."""
        measures = self.division.measures
        return {m.metric: outcomes(self.array(m.loss), m.absolute, m.relative) for m in measures}

    @cached_property
    def boards(self) -> Mapping[str, Board]:
        """The board by each measure, over families of data sets."""
        return {metric: Board(of_families(won, self.families), self._counts) for metric, won in self.of_sets.items()}

    @property
    def board(self) -> Board:
        """The board by the first measure."""
        return self.boards[self.division.measures[0].metric]

    @cached_property
    def _log_seconds(self) -> Float[ndarray, "K D"]:
        """Logarithms of CPU seconds; NaN where none are known."""
        return np.log(self.array(lambda record: LIMIT if lost(record) else np.maximum(record.rated_seconds, 1e-3)))

    @property
    def cpu_seconds(self) -> Float[ndarray, " K"]:
        """Geometric mean over data sets of the CPU seconds of a run."""
        return np.exp(mean(self._log_seconds, 1))

    @property
    def is_complete(self) -> Bool[ndarray, " K"]:
        """True for methods with seconds on all data sets."""
        return ~np.isnan(self._log_seconds).any(axis=1)

    @cached_property
    def on_front(self) -> Bool[ndarray, " K"]:
        """Whether no other method with all data sets is as good in share and in seconds, and better in one of them."""
        shares, seconds, some = self.board.means, self.cpu_seconds, self.is_complete
        is_other_as_good = (shares[None] >= shares[:, None]) & (seconds[None] <= seconds[:, None]) & some[None]
        strictly = (shares[None] > shares[:, None]) | (seconds[None] < seconds[:, None])
        return some & ~(is_other_as_good & strictly).any(axis=1)

    @property
    def references(self) -> list[int]:
        """The named references of the division that have runs here."""
        return [self.methods.index(name) for name in self.division.references if name in self.methods]

    def against(self, k: int, reference: int) -> Against | None:
        """A method beside a reference, by the data sets that both have; None without any."""
        first, second = self.division.measures[:2]
        won = self.of_sets[first.metric][k, reference]
        is_common = ~np.isnan(won)
        if not is_common.any():
            return None
        names, families = (list(compress(all, is_common)) for all in (self.datasets, self.families))
        with np.errstate(divide="ignore"):
            losses = (self.array(first.loss), np.log(self.array(second.loss)))
        gain, log_ratio = (mean_gain(of_families(gains(a[k], a[reference])[is_common], families)) for a in losses)
        ratio = Interval(*np.exp([-log_ratio.value, -log_ratio.high, -log_ratio.low]))
        sets = (tuple(n for n, w in zip(names, won[is_common]) if np.sign(w - 0.5) == sign) for sign in (1, -1, 0))
        return Against(chance_to_win(of_families(won[is_common], families)), gain, ratio, *sets)


def eligible(records: Iterable[Record], splits: Mapping[str, int]) -> list[Record]:
    """The runs that stand on a board of these data sets, each with its split."""
    return [
        record
        for record in records
        if record.protocol == "clean"
        and record.seed == 0
        and record.split == splits.get(record.dataset)
        and record.held_out is not False
        and f"set={record.split_set}" not in terms(record.setting)  # a split of another set has other rows
    ]


def board_of(
    records: Iterable[Record],
    division: Division,
    splits: Mapping[str, int] | None = None,
    *,
    planned: Mapping[str, str] | None = None,
) -> BoardRuns:
    """The board of recorded runs on all data sets, or on these with their split."""
    splits, words = division.datasets() if splits is None else splits, f"the {division.name} board"
    runs = eligible(records, splits)
    require(runs, f"no run of {words} is recorded; `gpbench reproduce {division.experiment}` makes some", AbsentError)
    names = _names(runs, planned or {})
    first = division.measures[0].metric
    lacking = Counter(names[r.id] for r in runs if first in (r.undefined or {}) and not lost(r))
    board = BoardRuns(division, [*splits], {(n, r.dataset): r for r in runs if (n := names[r.id]) not in lacking})
    counts = Counter(method for method, dataset in board.runs if dataset in board.datasets)
    unranked = {name: n - counts[name] for name, n in board.expected.items() if counts[name] < n}
    if len(board.methods) - len(unranked) < 2:
        sole = f"no two methods with all of the same data sets; there is {', '.join(board.methods)}"
        raise SoleMethodError(f"{words} has {sole}: --with-shipped reads the shipped runs too")
    # those that left out sets of their choice would be compared on others
    rest = {key: r for key, r in board.runs.items() if key[1] in board.datasets and key[0] not in unranked}
    return replace(board, runs=rest, unranked=unranked | lacking)


def _names(records: Sequence[Record], planned: Mapping[str, str]) -> dict[str, str]:
    """The names of methods by the ids of their runs: of planned runs that of their job."""
    names = {record.id: planned[record.id] for record in records if record.id in planned}
    others = {record.id: record for record in records if record.id not in planned}
    settings = {id: terms(r.setting) for id, r in others.items()}
    keys = {id: (record.method, ", ".join(settings[id])) for id, record in others.items()}
    known = set(names.values())
    count = Counter([*{*planned.values()}, *(method for method, _ in {*keys.values()})])
    for id, (method, setting) in keys.items():
        changed = ", ".join(term for term in settings[id] if term.partition("=")[0] in PROTOCOL_DEFAULTS)
        name = f"{method} {setting if count[method] > 1 else changed}".strip()
        names[id] = f"{name} ({'imported' if others[id].imported else 'not of this board'})" if name in known else name
    own = {names[id] for id, record in others.items() if not record.imported}
    clashes = [id for id, record in others.items() if record.imported and names[id] in own]
    return names | {id: f"{names[id]} (imported)" for id in clashes}


def name_of(board: BoardRuns, ids: Iterable[str]) -> str | None:
    """The name of the method on a board that has one of these runs; None where none has."""
    runs = set(ids)
    return next((method for (method, _), record in board.runs.items() if record.id in runs), None)
