"""Data sets in memory: tables as readers return them, data sets with their names, and checksums of their arrays."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from gpbench.data.cells import DECIMAL_POINT, Numbers
from gpbench.data.faults import Finding


def brief(value: Any) -> str:
    """A value as `repr` shows it; of arrays, and those in dataclasses and mappings, the shape and the type."""
    if is_dataclass(value):
        texts = [f"{field.name}={brief(getattr(value, field.name))}" for field in fields(value) if field.repr]
        return f"{type(value).__name__}({', '.join(texts)})"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, Mapping):
        return str({key: brief(entry) for key, entry in value.items()})
    return f"{len(value)} names" if isinstance(value, tuple) and len(value) > 10 else repr(value)


@dataclass(frozen=True)
class Raw:
    """A table as a reader returns it, before its card is applied."""

    X: np.ndarray  # cells as numbers, NaN for a missing one
    target: np.ndarray  # labels as text, "" for a missing one, or numbers; a column for each of several outputs
    columns: tuple[str, ...] = ()  # names of the inputs, () where the file has none, as for outputs
    folds: Mapping[str, np.ndarray] = field(default_factory=dict)  # index arrays that came with the file
    outputs: tuple[str, ...] = ()
    groups: Sequence | np.ndarray = ()  # the group of each row, "" or NaN for a missing one; () for none
    left_out: tuple[str, ...] = ()  # columns that are no inputs because they only label the rows, each with the reason
    order: Sequence | np.ndarray = ()  # the place of each row in time, as for groups
    split: Sequence | np.ndarray = ()  # the part of each row in fixed splits (N, splits): text, or codes of row_labels
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of encoded columns of the table
    account: str = ""  # the rows of the table beside the lines of its files, "" where these have none
    notes: tuple[Finding, ...] = ()  # doubtful things in the file
    numbers: Numbers = DECIMAL_POINT  # spelling of numbers in text of target and groups


@dataclass(frozen=True)
class Dataset:
    """All rows of a data set in original units."""

    name: str  # that of the data card
    task: str  # "regression", "count", "binary" or "multiclass"
    X: Float[np.ndarray, "N D"]  # inputs
    # float64: -1/+1 (binary), 0 to C-1 (multiclass) or original units; (N, O) for O > 1 outputs, NaN where one lacks
    y: Float[np.ndarray, " N *O"]
    columns: tuple[str, ...]  # names of the inputs, () where there are none
    classes: tuple[str, ...]  # original labels in the order of their codes, those of one code joined by "/"; else ()
    checksum: str  # sha256 of the arrays
    # index arrays: `yang` (N,), folds; `raetsch_train`, `raetsch_test` (realisations, rows); `fixed` (N, splits), parts
    folds: Mapping[str, np.ndarray] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()  # names of the outputs, () for a single one
    groups: Int[np.ndarray, " N"] | None = None  # numbers 0 to G-1 of the groups of rows, such as trajectories
    target: str = "target"  # name of the target, where there is one output
    order: Float[np.ndarray, " N"] | None = None  # the place of each row in time
    left_out: tuple[str, ...] = ()  # as in Raw
    missing: Mapping[str, int] = field(default_factory=dict)  # missing cells by column that are left out or filled
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # those of a column `city` are `city=LEVEL`
    impute: Mapping[str, str] = field(default_factory=dict)  # "mean" or "median" by input with filled cells (NaN)
    indicators: Mapping[str, str] = field(default_factory=dict)  # last inputs, which say where another one is missing
    account: str = ""  # as in Raw, and so are the notes
    notes: tuple[Finding, ...] = ()
    exposure: bool = False  # the last input is the exposure of counts
    file: Any = None  # file, watched for changes, of which X and y are maps; None where they are in memory

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


def differences(card: Mapping, digest: str, folds: Mapping[str, np.ndarray]) -> dict[str, tuple[str, str]]:
    """The checksums of arrays that are not those of their card, with these."""
    checksums = {"checksum": digest, "folds_checksum": checksum(folds) if folds else ""}
    known = {key: (actual, card[key]) for key, actual in checksums.items() if actual and card.get(key)}
    return {key: pair for key, pair in known.items() if pair[0] != pair[1]}
