"""Columns that say something about rows and are no inputs: groups, the order in time, and fixed splits."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from gpbench import limits
from gpbench.data.cells import DECIMAL_POINT, Numbers, number
from gpbench.data.faults import reject
from gpbench.errors import DataError, require

TRAIN, TEST = 1, 2
"""Codes of the rows of a fixed split; 0 is a row that it leaves out, and below 0 one whose fold is missing."""
_PARTS = {"": 0, "-": 0, "train": TRAIN, "test": TEST}


def column_of(card: Mapping[str, Any], key: str) -> str:
    """The column of groups, of order or of splits, as messages name it: "column 'day' of `order`"."""
    names = (source[key] for source in card.get("sources") or () if source.get(key) is not None)
    return label(column_and_format(next(names, None))[0], key)


def column_and_format(value: Any) -> tuple[Any, str | None]:
    """The column that a source names, and the format of its dates where it states one, as `order` may."""
    return next(iter(value.items())) if isinstance(value, Mapping) else (value, None)


def label(name: Any, key: str) -> str:
    """A column by its name and the key of the source that names it; without a name by the key."""
    return f"the column of `{key}`" if name is None or isinstance(name, list) else f"column {name!r} of `{key}`"


def missing(cells: np.ndarray) -> Bool[np.ndarray, "N ..."]:
    """Finds the cells without a label: "" in text, NaN in numbers."""
    if cells.dtype.kind == "U":
        return cells == ""
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(cells.shape, bool)


def times(
    column: str, cells: Sequence | np.ndarray, numbers: Numbers = DECIMAL_POINT, format: str | None = None
) -> Float[np.ndarray, " N"]:
    """The order of rows as numbers: numbers themselves, or the seconds of dates; NaN for a missing one."""
    if (array := np.asarray(cells)).dtype.kind in "biuf" and format is None:
        return array.astype(float)
    known = {row: cell for row, cell in enumerate(texts(array).tolist()) if not numbers.is_missing(cell)}
    are_numbers = format is None and any(numbers.parse(cell) is not None for cell in [*known.values()][:1])
    other = 'as 2024-01-31 or 2024-01-31T12:30; state another format, as in `order: {COLUMN: "%d/%m/%Y"}`'
    noun = "number" if are_numbers else f"date of the format {format!r}" if format else f"date, {other}"
    values = np.full(len(array), np.nan)
    for row, cell in known.items():
        value = numbers.parse(cell) if are_numbers else _seconds(cell, format)
        if value is None or np.isinf(value):
            raise DataError(f"{column}, row {row + 1}: {cell!r} is no {noun}")
        values[row] = value
    return values


def texts(array: np.ndarray) -> np.ndarray:
    """An array as text, "" for missing dates and numbers."""
    return np.where(np.isnat(array) if array.dtype.kind in "mM" else missing(array), "", array.astype(str))


def _seconds(cell: str, format: str | None) -> float | None:
    """Seconds since 1970 of a date of this format, or of ISO 8601; None for other text."""
    try:
        moment = datetime.strptime(cell, format) if format else datetime.fromisoformat(cell)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


_DATES = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y")
_FORMATS = (
    None,
    *(f"{date}{time}" for date in (*_DATES, "%d %b %Y", "%d-%b-%Y") for time in ("", " %H:%M", " %H:%M:%S")),
)


def formats_of(texts: Collection[str]) -> list[str | None]:
    """The usual formats of dates that all texts have, None for that of ISO 8601."""
    return [format for format in _FORMATS if all(_seconds(text, format) is not None for text in texts)]


def fixed_parts(names: Sequence[str], columns: np.ndarray) -> Int[np.ndarray, "N splits"]:
    """The part of each row in each fixed split, 0, `TRAIN` or `TEST`; -1 for a missing number of a fold."""
    if columns.shape[1] == 1 and any(number(cell) is not None for cell in columns[:, 0]):
        folds = np.array([np.nan if (value := number(cell)) is None else value for cell in columns[:, 0]])
        is_known = np.isfinite(folds)
        wrong = np.flatnonzero(~is_known & (columns[:, 0] != ""))
        fault = "is no number, as the folds of other rows are: mend it, or mark it by `missing`"
        reject(f"{names[0]}, row {row + 1}: {str(columns[row, 0])!r} {fault}" for row in wrong)
        different = np.unique(folds[is_known])
        fault = f"{names[0]} numbers {len(different):,} folds in {len(folds):,} rows: name a column with fewer"
        require(32 * len(folds) * len(different) <= limits.memory(8 * len(folds)), fault)
        parts = np.where(folds[:, None] == different, TEST, TRAIN)
        return np.where(is_known[:, None], parts, -1)
    parts = np.empty(columns.shape, int)
    for (row, split), cell in np.ndenumerate(columns):
        if (code := _PARTS.get(cell.lower())) is None:
            kinds = "train, test or -" if split else "train, test or -, nor is the column one of numbers of folds"
            raise DataError(f"{names[split]}, row {row + 1}: {str(cell)!r} is not {kinds}")
        parts[row, split] = code
    for name, codes in zip(names, parts.T):
        for text in ("train", "test"):
            require(_PARTS[text] in codes, f"{name} has no row {text!r}")
    return parts
