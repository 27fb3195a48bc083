"""Kinds of data, by task and ranges of rows and inputs: `Kind.records` are the runs that `gpbench best` compares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from pathlib import Path
from typing import Any

from gpbench.analysis.best import is_held_out, rows_of
from gpbench.analysis.grouping import gather
from gpbench.data import cards
from gpbench.errors import ConfigError
from gpbench.records.record import Record

TASKS: dict[str, tuple[str, ...]] = {
    "regression": ("regression",),
    "count": ("count",),
    "binary": ("binary",),
    "multiclass": ("multiclass",),
    "classification": ("binary", "multiclass"),
}
"""Tasks of cards by the name that a user gives."""

ANY = (0.0, inf)  # the range of every number
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}
_AROUND = 2  # factor around a single number of rows or inputs
_NEAREST = 3  # number of data sets that are named where none has the sizes

Range = tuple[float, float]
"""Smallest and largest number."""


@dataclass(frozen=True)
class Kind:
    """Data of one task and of some sizes."""

    task: str
    rows: Range = ANY  # range of the number of rows, training and test rows together
    inputs: Range = ANY  # range of the number of inputs

    def __str__(self) -> str:
        sizes = [_words(bounds, noun) for noun in ("rows", "inputs") if (bounds := getattr(self, noun)) != ANY]
        return f"{self.task} data of {', '.join(sizes) or 'any size'}"

    @property
    def division(self) -> str:
        """The division of the leaderboard that has such data; "" without one."""
        return next((name for name in ("regression", "classification") if {*TASKS[self.task]} <= {*TASKS[name]}), "")

    def records(self, records: Sequence[Record], folders: Sequence[Path] = ()) -> list[Record]:
        """The records whose data are of this kind and whose test rows were held out, of all protocols."""
        sized = [r for r in records if is_held_out(r) and self.rows[0] <= rows_of(r) <= self.rows[1]]
        facts = {name: _facts(name, folders) for name in {record.dataset for record in sized}}
        low, high = self.inputs
        return [
            record
            for record in sized
            if _task(record, facts[record.dataset]) in TASKS[self.task]
            and (self.inputs == ANY or low <= (facts[record.dataset].get("inputs") or -1) <= high)
        ]

    def nearest(self, records: Sequence[Record], folders: Sequence[Path] = ()) -> list[str]:
        """The recorded data sets of this task whose numbers of rows, then of inputs, are nearest, with their sizes."""
        rows = gather((record.dataset, rows_of(record)) for record in Kind(self.task).records(records, folders))
        sizes = {name: max(numbers) for name, numbers in rows.items()}
        inputs = {name: _facts(name, folders).get("inputs") or 0 for name in sizes}
        order = sorted(sizes, key=lambda n: (_gap(self.rows, sizes[n]), _gap(self.inputs, inputs[n]), n))
        words = {name: f", {number:,} inputs" if number else "" for name, number in inputs.items()}
        return [f"{name} ({sizes[name]:,} rows{words[name]})" for name in order[:_NEAREST]]


def number_range(value: str | int | None, name: str) -> Range:
    """Smallest and largest number of a range as a user writes it: 30k-60k, 30k-, -60k, or N for N/2 to 2N."""
    if value is None:
        return ANY
    if isinstance(value, int) and value < 0:  # as a text, "-60k" is up to 60k
        raise ConfigError(f'{name}={value}: a number of {name} is 0 or more; up to {-value} is "-{-value}", a text')
    text = str(value).lower().replace(" ", "").replace(",", "").replace("_", "")
    low, dash, high = text.partition("-")
    try:
        first, last = (_number(end) if end else None for end in (low, high))
    except ValueError:
        first = last = None
    if first is None and last is None:
        raise ConfigError(f"{name}={value}: write a number or a range, as 50k, 30k-60k, 30k- or -60k")
    if not dash and first is not None:
        return first / _AROUND, first * _AROUND
    bounds = first or 0.0, inf if last is None else last
    if bounds[0] > bounds[1]:
        raise ConfigError(f"{name}={value}: its first number is larger than its last")
    return bounds


def _number(text: str) -> float:
    unit = text[-1] if text[-1] in _UNITS else ""
    value = float(text.removesuffix(unit)) * _UNITS[unit]
    if not 0 <= value < 1e15:
        raise ValueError
    return value


def _gap(bounds: Range, value: float) -> float:
    """The factor, as a logarithm, by which a number is outside a range; 0 inside."""
    low, high = bounds
    return max(log((low + 1) / (value + 1)), log((value + 1) / (high + 1)) if high < inf else 0.0, 0.0)


def _facts(dataset: str, folders: Sequence[Path]) -> Mapping[str, Any]:
    try:
        return cards.read(dataset, folders)
    except ConfigError:
        return {}


def _task(record: Record, card: Mapping[str, Any]) -> str:
    """The task of a run: as its card says, or without a card as its metrics do."""
    by_metrics = "regression" if "rmse" in record.metrics else "binary" if "auc" in record.metrics else "multiclass"
    return str(card.get("task") or by_metrics)


def _words(bounds: Range, noun: str) -> str:
    low, high = bounds
    if high < inf:
        return f"{low:,.0f} to {high:,.0f} {noun}"
    return f"{low:,.0f} {noun} or more"
