"""The divisions of the leaderboard: their data sets, the measures by which methods are compared, and their budgets.

A division is an experiment, whose preset `full` has its data sets and splits, and `quick` the half on which a new
method is placed.  Budgets are seconds of two cores; a run's budget is as many CPU seconds as both cores have.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gpbench.errors import ConfigError, nearest
from gpbench.experiments import definition
from gpbench.metrics import METRICS
from gpbench.records.absences import LATE, NOT_FINITE, is_late
from gpbench.records.record import Record

CORES = 2
"""Cores of the machine for whose seconds budgets are named."""
_BUDGETS = (10, 60, 600)  # budgets in seconds of these cores
SECONDS = "cpu_seconds"
"""Name of the measure of CPU seconds from the start of the process to the predictions."""


@dataclass(frozen=True)
class Measure:
    """A metric by which methods are compared."""

    metric: str
    absolute: float = 0.0  # largest difference that is a tie
    relative: float = 0.0  # the same as a share of the smaller value

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
    """Data sets of one kind of task, and the measures of methods on them; the first measure orders the board."""

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


_MARGINS: dict[str, dict[str, tuple[float, float]]] = {
    "regression": {"test_ll": (0.01, 0.0), "rmse": (0.0, 0.01), "crps": (0.0, 0.01), "coverage_error": (0.01, 0.0)},
    "classification": {"nll": (0.01, 0.0), "error": (0.005, 0.0), "brier": (0.005, 0.0), "ece": (0.01, 0.0)},
}
"""Largest differences that are ties, absolute and as a share of the smaller value, by division and metric."""
DIVISIONS: Mapping[str, Division] = {
    name: Division(name, tuple(Measure(m, *margin) for m, margin in (margins | {SECONDS: (0.0, 0.1)}).items()))
    for name, margins in _MARGINS.items()
}


def lost(record: Record) -> str:
    """Why a run has lost to all others that have predictions in time; "" where it has them too."""
    if record.status != "done":
        return next(iter((record.undefined or {}).values()), record.status) if record.status == "failed" else "diverged"
    if record.budget is not None and is_late(record.cpu_seconds or 0.0, record.budget):
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
