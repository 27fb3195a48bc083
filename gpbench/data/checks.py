"""The check of a data set before anybody trains on it: sizes, inputs, splits, and what is doubtful."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from gpbench.data import splits
from gpbench.data.dataset import Dataset
from gpbench.data.encoding import fit_filler
from gpbench.data.faults import Finding
from gpbench.data.findings import count_classes, find, span, targets_of
from gpbench.errors import listed

_MOST = 30  # largest number of inputs that have a line each
_SPLITS, _ROWS, _CELLS = 100, 2 * 10**7, 10**8
"""Largest numbers of splits, of rows of all of these, and of cells whose findings are made: first splits, some rows."""


class Column(NamedTuple):
    """An input or a target: its name, the kind of its values, and their range."""

    name: str
    kind: str
    low: float
    high: float


class Report(NamedTuple):
    """A description of a data set."""

    name: str
    task: str
    rows: int
    account: str  # the rows of the file beside its lines
    inputs: Sequence[Column]
    targets: Sequence[Column]  # none of classes
    target: str  # its name
    classes: Mapping[str, int]  # rows of each
    groups: int | None  # their number
    splits: str  # the split set in use, its number of splits, and the rows that train and test in each of them
    findings: Sequence[Finding]  # what is doubtful

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        lists = {key: [entry._asdict() for entry in getattr(self, key)] for key in ("inputs", "targets", "findings")}
        return {**self._asdict(), **lists}

    def __str__(self) -> str:
        head = f"{self.name}: {self.task}, {self.rows:,} rows, {len(self.inputs)} input{'s' * (len(self.inputs) != 1)}"
        return "\n".join([head, *(f"  {label:<8} {value}" for label, value in _lines(self))])


def check(card: Mapping[str, Any], dataset: Dataset) -> Report:
    """Describes a data set and finds what is doubtful in it: notes, of which none keeps it from being used."""
    filler = fit_filler(dataset, dataset.X)
    dataset = replace(dataset, X=filler(dataset.X)) if filler else dataset
    number, n = splits.count(card), len(dataset.y)
    count = max(1, min(number, _SPLITS, _ROWS // n))
    parts = [splits.indices(card, dataset, k) for k in range(count)]
    every = -(-dataset.X.size // _CELLS)
    notes = [Finding(f"the findings are those of {-(-n // every):,} rows, every {every}th")] if every > 1 else []
    checked = f" (the first {count} are checked)" if number > count else ""
    with np.errstate(all="ignore"):  # of numbers near the largest
        findings = find(card, *_some(dataset, parts, every))
    return Report(
        dataset.name,
        dataset.task,
        len(dataset.y),
        dataset.account,
        [*map(_column, dataset.columns, dataset.X.T)],
        [] if dataset.classes else [_column(name, values) for name, values in targets_of(dataset)],
        listed(dataset.outputs or [dataset.target]),
        count_classes(dataset),
        None if dataset.groups is None else int(dataset.groups.max()) + 1,
        f"{splits.identity(card)['set']}: {number}{checked}, with {span(len(train) for train, _ in parts)} training"
        f" and {span(len(test) for _, test in parts)} test rows",
        [*notes, *findings],
    )


def _some(dataset: Dataset, parts: list, every: int) -> tuple[Dataset, list]:
    """Some rows of a data set at equal distances, and where they are in the parts of its splits."""
    groups = None if dataset.groups is None else dataset.groups[::every]
    if every > 1:
        parts = [tuple(rows[rows % every == 0] // every for rows in pair) for pair in parts]
        groups = None if groups is None else np.unique(groups, return_inverse=True)[1]
    return replace(dataset, X=np.asfortranarray(dataset.X[::every]), y=dataset.y[::every], groups=groups), parts


def _column(name: str, values: Float[np.ndarray, " N"]) -> Column:
    values = values[~np.isnan(values)]
    low, high = float(values.min()), float(values.max())
    kind = "whole numbers" if (values == np.rint(values)).all() else "numbers"
    if ((values == low) | (values == high)).all():
        kind = "constant" if low == high else "two values"
    return Column(name, kind, low, high)


def _lines(report: Report) -> Iterator[tuple[str, str]]:
    columns = report.inputs if len(report.inputs) <= _MOST else [*report.inputs[: _MOST - 2], report.inputs[-1]]
    width = max(len(column.name) for column in [*columns, *report.targets])
    if report.account:
        yield "file", report.account
    for column in columns:
        if column is columns[-1] and len(columns) < len(report.inputs):
            yield "", f"... {len(report.inputs) - len(columns)} more"
        yield "input", _range_of(column, width)
    yield from (("target", _range_of(column, width)) for column in report.targets)
    if report.classes:
        yield "target", report.target
        shares = (f"{name} {count:,} ({100 * count / report.rows:.3g} %)" for name, count in report.classes.items())
        yield "classes", ", ".join(shares)
    if report.groups:
        yield "groups", f"{report.groups:,}"
    yield "splits", report.splits
    for finding in report.findings or [Finding("nothing is doubtful")]:
        yield "note", f"{finding.text}; mend: {finding.mend}" if finding.mend else finding.text


def _range_of(column: Column, width: int) -> str:
    high = f" to {column.high:.6g}" if column.high > column.low else ""
    return f"{column.name:<{width}}  {column.kind:<13}  {column.low:.6g}{high}"
