"""The check of a data set before anybody trains on it: sizes, inputs, splits, and what is doubtful."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from gpbench.data import filling, splits
from gpbench.data.dataset import Dataset
from gpbench.data.findings import Finding, count_classes, find, span
from gpbench.errors import listed

_MOST = 30
"""Largest number of inputs that have a line each."""
_SPLITS = 100  # a card may ask for any number of splits; the first ones show what all are like


class Column(NamedTuple):
    """An input or a target: its name, the kind of its values, and their range."""

    name: str
    kind: str
    low: float
    high: float


class Report(NamedTuple):
    """A description of a data set.

    Attributes:
        inputs, targets: the columns; classes have `classes` in place of targets.
        target: the name of the target.
        classes: the number of rows of each class.
        groups: the number of groups of rows, None without groups.
        splits: the split set in use, its number of splits, and the rows that train and test in each of them.
        findings: what is doubtful.
    """

    name: str
    task: str
    rows: int
    inputs: Sequence[Column]
    targets: Sequence[Column]
    target: str
    classes: Mapping[str, int]
    groups: int | None
    splits: str
    findings: Sequence[Finding]

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        lists = {key: [entry._asdict() for entry in getattr(self, key)] for key in ("inputs", "targets", "findings")}
        return {**self._asdict(), **lists}

    def __str__(self) -> str:
        head = f"{self.name}: {self.task}, {self.rows:,} rows, {len(self.inputs)} inputs"
        return "\n".join([head, *(f"  {label:<8} {value}" for label, value in _lines(self))])


def check(card: Mapping[str, Any], dataset: Dataset) -> Report:
    """Describes a data set and finds what is doubtful in it: notes, of which none keeps it from being used.

    Args:
        card: the data card.
        dataset: its rows.

    Raises:
        DataError, ConfigError: the card's splits cannot be made.
    """
    outputs = dataset.y.reshape(len(dataset.y), -1)
    filler = filling.fit(dataset, dataset.X)
    dataset = replace(dataset, X=np.asfortranarray(filler(dataset.X) if filler else dataset.X))  # read by columns
    number = splits.count(card)
    parts = [splits.indices(card, dataset, k) for k in range(min(number, _SPLITS))]
    checked = f" (the first {_SPLITS} are checked)" if number > _SPLITS else ""
    return Report(
        dataset.name,
        dataset.task,
        len(dataset.y),
        _columns(dataset.columns, dataset.X),
        () if dataset.classes else _columns(dataset.outputs or (dataset.target,), outputs),
        listed(dataset.outputs or [dataset.target]),
        count_classes(dataset),
        None if dataset.groups is None else int(dataset.groups.max()) + 1,
        f"{splits.identity(card)['set']}: {number}{checked}, with {span(len(train) for train, _ in parts)} training"
        f" and {span(len(test) for _, test in parts)} test rows",
        find(card, dataset, parts),
    )


def _columns(names: Sequence[str], table: Float[np.ndarray, "N D"]) -> list[Column]:
    columns = []
    for name, values in zip(names, table.T):
        low, high = float(values.min()), float(values.max())
        if low == high:
            kind = "constant"
        elif ((values == low) | (values == high)).all():
            kind = "two values"
        else:
            kind = "whole numbers" if (values == np.rint(values)).all() else "numbers"
        columns.append(Column(name, kind, low, high))
    return columns


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    columns = report.inputs if len(report.inputs) <= _MOST else [*report.inputs[: _MOST - 2], report.inputs[-1]]
    width = max(len(column.name) for column in [*columns, *report.targets])
    for column in columns:
        if column is columns[-1] and len(columns) < len(report.inputs):
            yield "", f"... {len(report.inputs) - len(columns)} more"
        yield "input", _range_of(column, width)
    yield from (("target", _range_of(column, width)) for column in report.targets)
    if report.classes:
        yield "target", report.target
        yield "classes", _classes(report.classes, report.rows)
    if report.groups:
        yield "groups", f"{report.groups:,}"
    yield "splits", report.splits
    for finding in report.findings:
        yield "note", finding.text + f"; mend: {finding.mend}" * bool(finding.mend)
    if not report.findings:
        yield "note", "nothing is doubtful"


def _range_of(column: Column, width: int) -> str:
    values = f"{column.low:.6g}" + f" to {column.high:.6g}" * (column.high > column.low)
    return f"{column.name:<{width}}  {column.kind:<13}  {values}"


def _classes(classes: Mapping[str, int], rows: int) -> str:
    return ", ".join(f"{name} {count:,} ({100 * count / rows:.3g} %)" for name, count in classes.items())
