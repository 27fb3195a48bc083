"""The leaderboard: methods within a budget of seconds, compared on the data sets of a division.

A division is an experiment, whose preset `full` has its data sets and splits, and `quick` the half on which a new
method is placed.  Budgets are seconds of two cores; a run's budget is as many CPU seconds as both cores have.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.analysis import bradley_terry
from gpbench.analysis.bradley_terry import Estimates, estimates, outcomes
from gpbench.analysis.ranks import Ranking, rank_values
from gpbench.errors import AbsentError, ConfigError, nearest
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.records.absences import GRACE, LATE, NOT_FINITE
from gpbench.records.record import Record

CORES = 2
"""Cores of the machine for whose seconds budgets are named."""
_BUDGETS = (10, 60, 600)
"""Budgets in seconds of these cores."""
SECONDS = "cpu_seconds"
"""Name of the measure of CPU seconds from the start of the process to the predictions."""


@dataclass(frozen=True)
class Measure:
    """A metric by which methods are compared.

    Args:
        metric: Its name.
        absolute: Largest difference that is a tie.
        relative: The same as a share of the smaller value.
    """

    metric: str
    absolute: float = 0.0
    relative: float = 0.0

    def loss(self, record: Record) -> float:
        """The metric of a run, with a sign such that less is better; infinite where the run is lost."""
        if lost(record):
            return np.inf
        value = record.cpu_seconds if self.metric == SECONDS else record.metrics.get(self.metric)
        if value is None:
            return np.inf
        known = METRICS.get(self.metric)
        return -value if known and known.better == "higher" else value


@dataclass(frozen=True)
class Division:
    """Data sets of one kind of task, and the measures of methods on them; the first measure orders the board.

    Args:
        name: Its name.
        measures: The measures.
    """

    name: str
    measures: tuple[Measure, ...]

    @property
    def experiment(self) -> str:
        """Id of the experiment that has its runs."""
        return f"gpbench/leaderboard_{self.name}"

    def datasets(self, half: bool = False) -> dict[str, list[int]]:
        """The splits of each data set, of all of them or of the half on which a new method is placed."""
        jobs = definition.read(self.experiment).jobs("quick" if half else "full")
        return {job["dataset"]: [int(split) for split in job["split"].strip("[]").split(",")] for job in jobs}


DIVISIONS: Mapping[str, Division] = {
    division.name: division
    for division in (
        Division(
            "regression",
            (
                Measure("test_ll", absolute=0.01),
                Measure("rmse", relative=0.01),
                Measure("crps", relative=0.01),
                Measure("coverage_error", absolute=0.01),
                Measure(SECONDS, relative=0.1),
            ),
        ),
        Division(
            "classification",
            (
                Measure("nll", absolute=0.01),
                Measure("error", absolute=0.005),
                Measure("brier", absolute=0.005),
                Measure("ece", absolute=0.01),
                Measure(SECONDS, relative=0.1),
            ),
        ),
    )
}


def lost(record: Record) -> str:
    """Why a run has lost to all others that have predictions in time; "" where it has them too."""
    if record.status != "done":
        return next(iter((record.undefined or {}).values()), record.status) if record.status == "failed" else "diverged"
    if record.budget is not None and (record.cpu_seconds or 0.0) > (1 + GRACE) * record.budget:
        return LATE
    # a metric that does not exist on a test set, as auc with one class, is no loss of the method
    existing = record.metrics.keys() - (record.undefined or {}).keys()
    return NOT_FINITE if any(record.metrics[name] is None for name in existing) else ""


def division_of(name: str) -> Division:
    """The division of this name.  Raises ConfigError for another one."""
    if name not in DIVISIONS:
        raise ConfigError(f"no division {name!r}; {nearest(name, DIVISIONS)}")
    return DIVISIONS[name]


def cpu_budget(seconds: int) -> int:
    """CPU seconds of a run within a budget of seconds of two cores.  Raises ConfigError for another budget."""
    if seconds not in _BUDGETS:
        raise ConfigError(f"no budget of {seconds} seconds; known are {', '.join(map(str, _BUDGETS))}")
    return CORES * seconds


@dataclass(frozen=True)
class Board:
    """Methods and their runs within one budget on data sets of a division.

    Args:
        division: The division.
        seconds: Budget in seconds of two cores.
        splits: Splits of each data set.
        runs: Records by method, data set and split.
    """

    division: Division
    seconds: int
    splits: Mapping[str, Sequence[int]]
    runs: Mapping[tuple[str, str, int], Record]

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in alphabetical order."""
        return tuple(sorted({method for method, _, _ in self.runs}))

    @cached_property
    def datasets(self) -> tuple[str, ...]:
        """Names of the data sets that two methods or more have."""
        having = {name: {method for method, dataset, _ in self.runs if dataset == name} for name in self.splits}
        return tuple(name for name, methods in having.items() if len(methods) > 1)

    def array(self, value: Any) -> Float[ndarray, "K D S"]:
        """A function of the record of each run; NaN where there is no run."""
        table = np.full((len(self.methods), len(self.datasets), max(map(len, self.splits.values()))), np.nan)
        for i, method in enumerate(self.methods):
            for d, dataset in enumerate(self.datasets):
                for s, split in enumerate(self.splits[dataset]):
                    if record := self.runs.get((method, dataset, split)):
                        table[i, d, s] = value(record)
        return table

    @cached_property
    def has_run(self) -> Bool[ndarray, "K D S"]:
        """Which runs are recorded."""
        return ~np.isnan(self.array(lambda record: 0.0))

    @cached_property
    def estimates(self) -> Mapping[str, tuple[Estimates, Estimates]]:
        """Scores and win rates by each measure."""
        return {
            m.metric: estimates(outcomes(self.array(m.loss), self.has_run, absolute=m.absolute, relative=m.relative))
            for m in self.division.measures
        }

    @cached_property
    def scores(self) -> Estimates:
        """Scores by the first measure."""
        return self.estimates[self.division.measures[0].metric][0]

    @cached_property
    def seconds_of(self) -> Estimates:
        """Mean over data sets of the logarithm of the CPU seconds of a run, lost ones included."""
        logs = self.array(lambda record: np.log(max(record.cpu_seconds or np.nan, 1e-3)))
        return Estimates(bradley_terry.means(logs), bradley_terry.resampled_means(logs), self.scores.datasets)

    @cached_property
    def front(self) -> Float[ndarray, " K"]:
        """Share of the draws in which a method is on the Pareto front of score against seconds."""
        return _on_front(self.scores.draws, self.seconds_of.draws).mean(axis=0)

    @cached_property
    def on_front(self) -> Bool[ndarray, " K"]:
        """Whether no other method has a higher score and is as quick, or the same score and is quicker."""
        return _on_front(self.scores.values[None], self.seconds_of.values[None])[0]

    @cached_property
    def ranking(self) -> Ranking | None:
        """Average ranks by the first measure, on the data sets of which all methods have all splits; None of fewer
        than two.  A method that lost a split is last on the data set."""
        measure = self.division.measures[0]
        losses = self.array(measure.loss)
        planned = np.array([[s < len(self.splits[name]) for s in range(losses.shape[2])] for name in self.datasets])
        is_whole = (self.has_run | ~planned).all(axis=(0, 2))
        if is_whole.sum() < 2:
            return None
        values = np.where(planned, losses, 0.0).sum(axis=2) / planned.sum(axis=1)
        known = METRICS[measure.metric]
        signed = -values if known.better == "higher" else values
        names = [name for name, whole in zip(self.datasets, is_whole) if whole]
        return rank_values(signed[:, is_whole].T, self.methods, measure.metric, datasets=names)

    def places(self, method: str) -> tuple[int, int, int]:
        """The place of a method by its score, and the ends of the interval that has 95 % of the draws."""
        k = self.methods.index(method)
        place_in = lambda scores: 1 + (scores > scores[..., k, None]).sum(axis=-1)
        low, high = np.quantile(place_in(self.scores.draws), [0.025, 0.975], method="inverted_cdf")
        return int(place_in(self.scores.values)), int(low), int(high)


def _on_front(scores: Float[ndarray, "B K"], seconds: Float[ndarray, "B K"]) -> Bool[ndarray, "B K"]:
    """Whether no other method has a score at least as high in seconds at most as many, one of the two strictly."""
    higher, quicker = scores[:, None] >= scores[:, :, None], seconds[:, None] <= seconds[:, :, None]
    strictly = (scores[:, None] > scores[:, :, None]) | (seconds[:, None] < seconds[:, :, None])
    is_beaten = np.any(higher & quicker & strictly, axis=2)
    return np.logical_not(is_beaten)


def board_of(records: Iterable[Record], division: Division, seconds: int, *, half: bool = False) -> Board:
    """The board of recorded runs: those within the budget, under protocol clean, of seed 0, on its splits.

    Args:
        records: The records.
        division: The division.
        seconds: Budget in seconds of two cores.
        half: Whether only the half of the data sets counts on which a new method is placed.

    Raises:
        ConfigError: An unknown budget, or fewer than two methods with runs on a common data set.
        AbsentError: There are no such runs.
    """
    budget, splits = cpu_budget(seconds), division.datasets(half)
    eligible = [
        record
        for record in records
        if record.budget == budget
        and record.protocol == "clean"
        and record.seed == 0
        and record.split in splits.get(record.dataset, ())
        and record.held_out is not False
    ]
    words = f"the {division.name} board of {seconds} s"
    if not eligible:
        raise AbsentError(f"no run of {words} is recorded; `gpbench reproduce {division.experiment}` makes some")
    names = _names(eligible)
    board = Board(division, seconds, splits, {(names[_key(r)], r.dataset, r.split): r for r in eligible})
    if len(board.methods) < 2 or not board.datasets:
        others = ", ".join(board.methods)
        raise ConfigError(f"{words} has no two methods on a common data set; there is {others}")
    return board


def _key(record: Record) -> tuple[str, str]:
    """Method and setting of a run, without its budget."""
    terms = [term for term in record.setting.split(", ") if term and not term.startswith("budget=")]
    return record.method, ", ".join(terms)


def _names(records: Iterable[Record]) -> dict[tuple[str, str], str]:
    """The names of methods on the board: with the setting where a method has several."""
    keys = {_key(record) for record in records}
    several = {method for method, _ in keys if sum(other == method for other, _ in keys) > 1}
    return {key: " ".join(filter(None, key)) if key[0] in several else key[0] for key in keys}


def name_of(board: Board, ids: Iterable[str]) -> str | None:
    """The name of the method on a board that has one of these runs; None where none has."""
    runs = set(ids)
    return next((method for (method, _, _), record in board.runs.items() if record.id in runs), None)
