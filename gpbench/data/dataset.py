"""Data sets in memory: tables as readers return them, data sets with their names, and checksums of their arrays."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gpbench.data.cells import DECIMAL_POINT, Numbers
from gpbench.data.faults import Finding
from gpbench.data.watched import WatchedFile


def brief(value: Any) -> str:
    """The fields of a dataclass as `repr` shows them, of arrays the shape and the type."""
    texts = [f"{field.name}={_brief(getattr(value, field.name))}" for field in fields(value)]
    return f"{type(value).__name__}({', '.join(texts)})"


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping):
        return str({key: _brief(entry) for key, entry in value.items()})
    return f"{len(value)} names" if isinstance(value, tuple) and len(value) > 10 else repr(value)


@dataclass(frozen=True)
class Raw:
    """A table as a reader returns it, before its card is applied.

    Attributes:
        X: cells as numbers, NaN for a missing one.
        target: labels as text, "" for a missing one, or numbers; a column for each output where there are several.
        columns, outputs: names of inputs and outputs, () where the file has none.
        folds: index arrays that came with the file.
        groups, order: the group of each row and its place in time, "" or NaN for a missing one; () for none.
        split: the part of each row in fixed splits (N, splits), as text or as `row_labels.fixed_parts` has it; () for
            none.
        left_out: columns that are no inputs because they only label the rows, each with the reason.
        levels: levels of encoded columns by the name of the column in the table (`gpbench.data.encoding`).
        account: the rows of the table beside the lines of its files, "" where these have none.
        notes: doubtful things in the file.
        numbers: spelling of numbers in text of `target` and `groups`.
    """

    X: np.ndarray
    target: np.ndarray
    columns: tuple[str, ...] = ()
    folds: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    groups: Sequence | np.ndarray = ()
    left_out: tuple[str, ...] = ()
    order: Sequence | np.ndarray = ()
    split: Sequence | np.ndarray = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    account: str = ""
    notes: tuple[Finding, ...] = ()
    numbers: Numbers = DECIMAL_POINT


@dataclass(frozen=True)
class Dataset:
    """All rows of a data set in original units.

    Attributes:
        name: name of the data card.
        task: "regression", "count", "binary" or "multiclass".
        X: inputs (N, D).
        y: targets (N,), float64: -1/+1 (binary), 0 to C-1 (multiclass) or original units (regression); (N, O) for
            O > 1 outputs, NaN where a row lacks some of them.
        columns: names of the inputs, () where there are none.
        classes: original labels in the order of their codes, labels of one code joined by "/"; () for regression.
        checksum: sha256 of the arrays.
        folds: index arrays that came with the data: `yang` (N,), the fold of each row; `raetsch_train` and
            `raetsch_test` (realisations, rows); `fixed` (N, splits), the part of each row.
        outputs: names of the outputs, () for a single one.
        groups: numbers 0 to G-1 of the groups of rows that belong together, such as a trajectory or a person, (N,);
            None without groups.
        target: name of the target, where there is one output.
        order: the place of each row in time, (N,); None without an order.
        left_out: columns of a user's table that are no inputs because they only label the rows, each with the reason.
        missing: number of missing cells of each column, in rows that the card leaves out or in inputs that it fills.
        levels: levels of encoded columns of the table; those of a one-hot column `city` are inputs `city=LEVEL`.
        impute: "mean" or "median" by input, of inputs whose missing cells (NaN) are filled from training rows.
        indicators: inputs that say where another one is missing, at the end of all, with the name of the other one.
        account, notes: those of the table.
        file: file of which X and y are maps; None where they are in memory.
    """

    name: str
    task: str
    X: Float[np.ndarray, "N D"]
    y: Float[np.ndarray, " N *O"]
    columns: tuple[str, ...]
    classes: tuple[str, ...]
    checksum: str
    folds: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    groups: Int[np.ndarray, " N"] | None = None
    target: str = "target"
    order: Float[np.ndarray, " N"] | None = None
    left_out: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    impute: Mapping[str, str] = field(default_factory=dict)
    indicators: Mapping[str, str] = field(default_factory=dict)
    account: str = ""
    notes: tuple[Finding, ...] = ()
    file: WatchedFile | None = None

    __repr__ = brief


def canonical(
    X: np.ndarray, y: np.ndarray, groups: np.ndarray | None, order: np.ndarray | None, folds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The arrays that the checksum of a data set covers, by name; other index arrays have a checksum of their own."""
    arrays = {"X": X, "y": y, "groups": groups, "order": order, "fixed": folds.get("fixed")}
    return {name: array for name, array in arrays.items() if array is not None}


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """The sha256 of arrays over names, shapes, types and bytes (little-endian, C order), equal on all machines."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()
