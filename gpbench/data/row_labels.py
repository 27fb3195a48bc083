"""Columns that say something about rows and are no inputs: groups, the order in time, and fixed splits."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from jaxtyping import Bool, Float, Int

from gpbench.data.cells import number
from gpbench.errors import DataError

TRAIN, TEST = 1, 2
"""Codes of the rows of a fixed split; 0 is a row that it leaves out."""
_PARTS = {"": 0, "-": 0, "train": TRAIN, "test": TEST}


def missing(cells: np.ndarray) -> Bool[np.ndarray, "N ..."]:
    """Finds the cells without a label: "" in text, NaN in numbers."""
    if cells.dtype.kind == "U":
        return cells == ""
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(cells.shape, bool)


def require(name: str, noun: str, lacking: Bool[np.ndarray, " N"]) -> None:
    """Raises DataError that names the first rows that lack a label."""
    if lacking.any():
        rows = (np.flatnonzero(lacking) + 1).tolist()
        raise DataError(
            f"{name}: the {noun} is missing in {len(rows)} rows ({', '.join(map(str, rows[:5]))}"
            f"{', ...' if len(rows) > 5 else ''}); fill it in, or drop such rows by `incomplete: drop` in the card"
        )


def times(name: str, cells: Sequence | np.ndarray) -> Float[np.ndarray, " N"]:
    """The order of rows as numbers: numbers themselves, or the seconds of dates; NaN for a missing one.

    Args:
        name: name of the data set, for messages.
        cells: numbers, or text such as "3.5", "2024-01-31" or "2024-01-31T12:30"; UTC where there is no time zone.

    Raises:
        DataError: other text, an infinite number, or numbers among dates; the message names the row.
    """
    if (array := np.asarray(cells)).dtype.kind in "biuf":
        return array.astype(float)
    parse = _seconds if any(cell and number(cell) is None for cell in cells[:1]) else number
    values = np.full(len(cells), np.nan)
    for row, cell in enumerate(cells):
        if cell == "":
            continue
        value = parse(cell)
        if value is None or not np.isfinite(value):
            kind = "date, as 2024-01-31 or 2024-01-31T12:30" if parse is _seconds else "number"
            raise DataError(f"{name}: the column of `order`, row {row + 1}: {cell!r} is no {kind}")
        values[row] = value
    return values


def _seconds(cell: str) -> float | None:
    """Seconds since 1970 of a date of ISO 8601; None for other text."""
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def fixed_parts(name: str, columns: np.ndarray) -> Int[np.ndarray, "N splits"]:
    """The part of each row in each fixed split, 0, `TRAIN` or `TEST`.

    Args:
        name: name of the data set, for messages.
        columns: text (N, splits): `train`, `test`, and `-` or nothing for neither; a single column may have the numbers
            of folds instead, each of which tests in a split of its own.

    Raises:
        DataError: other text, or a split without training or test rows.
    """
    if columns.shape[1] == 1 and all(number(cell) is not None for cell in columns[:, 0]):
        folds = columns[:, 0].astype(float)
        return np.where(folds[:, None] == np.unique(folds), TEST, TRAIN)
    parts = np.empty(columns.shape, int)
    for (row, split), cell in np.ndenumerate(columns):
        if (code := _PARTS.get(cell.lower())) is None:
            kinds = "train, test or -" + (", nor is the column one of numbers of folds" if not split else "")
            raise DataError(f"{name}: the column of `split`, row {row + 1}: {str(cell)!r} is not {kinds}")
        parts[row, split] = code
    for code, text in ((TRAIN, "train"), (TEST, "test")):
        if (empty := ~(parts == code).any(axis=0)).any():
            raise DataError(f"{name}: split {int(empty.argmax())} of the column of `split` has no row {text!r}")
    return parts
