"""Numbers of a clause with their errors: over splits, over the test rows of a single split, or none."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.statistics import mean_stderr
from gpbench.claims.clauses import Clause
from gpbench.claims.estimates import Estimate, Student
from gpbench.claims.selection import KeyedCell
from gpbench.errors import ConfigError
from gpbench.records.record import Record

_PROPORTIONS = ("error", "coverage95")
"""Metrics that are means of zeros and ones over test rows, whose error over them is known without the rows."""


@dataclass(frozen=True)
class Number:
    """An estimate with the cells that it is from."""

    key: tuple[str, ...]  # data set, output, and values of the clause's keys
    estimate: Estimate | None  # the estimate; None where runs are missing
    rival: str = ""  # name of the rival b, where a clause lists several
    cells: tuple[CellRuns, ...] = ()  # cells that the number is estimated from
    preset: str = ""  # preset of the runs

    @property
    def location(self) -> str:
        """Data set and output."""
        return " ".join(filter(None, self.key[:2]))

    @property
    def machines(self) -> int:
        """Number of different machines of the runs."""
        return len({machine(record) for cell in self.cells for record in cell.records})

    @property
    def name(self) -> str:
        """Data set, output, values of keys and rival, as far as there are any."""
        return " ".join(filter(None, [*self.key, self.rival]))


def machine(record: Record) -> tuple[str | None, int | None]:
    """What a run's seconds depend on: the device, and the number of cores."""
    return record.device, (record.host or {}).get("cores")


def key_of(clause: Clause, cell: KeyedCell) -> tuple[str, ...]:
    """Data set, output, and the cell's values of the clause's keys."""
    return tuple(cell.keys.get(key, "") for key in ("dataset", "output", *clause.keys))


def runs_of(*cells: KeyedCell) -> tuple[CellRuns, ...]:
    """The recorded runs of these cells."""
    return tuple(cell.runs for cell in cells if cell.runs)


def mean(values: Sequence[float], ratio: float | None) -> Student | None:
    """The mean with its corrected standard error; without one where the numbers of rows are unknown.

    It is infinite where a value is, as of a level that a run does not reach, and of infinities of both signs unknown.
    """
    if not values or math.isnan(sum(values)):
        return None
    n = len(values)
    if math.isinf(sum(values)):
        return Student(sum(values), None, max(1, n - 1), n)
    centre, plain = mean_stderr(values)
    if plain is None or ratio is None:
        return Student(centre, None, max(1, n - 1), n)
    return Student(centre, plain * math.sqrt(1 + n * ratio), n - 1, n, plain * math.sqrt(n), ratio)


def mean_over_rows(value: float, clause: Clause, *sides: tuple[KeyedCell, int]) -> Student:
    """A number of a single split of each of these cells, with its error over the test rows where it is known.

    A difference has the error of independent sides, too careful where both err alike.
    """
    errors = [_row_stderr(cell, clause, split) for cell, split in sides]
    known = [error for error in errors if error is not None]
    stderr = math.hypot(*known) if len(known) == len(errors) else None
    return Student(value, stderr, math.inf, 1, of_rows=stderr is not None)


def _row_stderr(cell: KeyedCell, clause: Clause, split: int) -> float | None:
    """The standard error of a number of a single split over its test rows, of a logarithm for a ratio; None if unknown.

    That of a mean of zeros and ones is binomial; of other metrics records have it.
    """
    record = next((record for record in cell.records if record.split == split), None)
    if record is None:
        return None
    value = cell.values(clause.metric)[split]
    stderr = (record.row_stderr or {}).get(clause.metric)
    if stderr is None and clause.metric in _PROPORTIONS and record.test_rows:
        stderr = math.sqrt(value * (1 - value) / record.test_rows)
    if not stderr or clause.kind != "ratio":
        return stderr or None
    return stderr / abs(value)


def log(value: float, name: str) -> float:
    """The logarithm.  Raises ConfigError, with the name of the clause, for numbers that have none."""
    if value <= 0:
        raise ConfigError(f"{name}: {value:g} has no logarithm: take a difference, or a metric that is above 0")
    return math.log(value)
