"""Rows that a trained method is to predict: the inputs of a data set, without its targets."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gpbench.data import readers
from gpbench.data.dataset import Dataset, check_finite
from gpbench.data.spreadsheets import cell_text
from gpbench.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_TABLE_OPTIONS = ("delimiter", "missing", "codes", "sheet")


def inputs(
    rows: "Float[np.ndarray, 'T D'] | pd.DataFrame | str | PathLike[str]", card: Mapping[str, Any], dataset: Dataset
) -> Float[np.ndarray, "T D"]:
    """The inputs of all rows, in original units and the order of the data set's columns.

    Args:
        rows: an array (T, D), a DataFrame, or the path of a table (csv, Parquet, Excel).  A table whose header has all
            names of the data set's inputs may have other columns, which are ignored; without such names it has exactly
            the inputs, in their order.  Text is coded, and missing cells are marked, as in the card.
        card: the data card.
        dataset: the data set.

    Raises:
        DataError: a file that cannot be read, another number of columns, or cells that are not finite numbers.
    """
    if isinstance(rows, str | PathLike):
        return _from_file(Path(rows), card, dataset)
    options = _options(card)
    if not isinstance(rows, np.ndarray) and hasattr(rows, "itertuples"):
        cells = [list(map(cell_text, row)) for row in rows.itertuples(index=False, name=None)]
        return _from_cells([list(map(str, rows.columns)), *cells], options, dataset, header=True)
    X = np.asarray(rows, np.float64)
    if X.ndim != 2 or X.shape[1] != dataset.X.shape[1]:
        raise DataError(f"X has the shape {X.shape}; rows of {dataset.name} have {dataset.X.shape[1]} inputs")
    check_finite(dataset.name, X, np.zeros(len(X)), _names(dataset))
    return X


def _options(card: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for source in card["sources"] for key, value in source.items() if key in _TABLE_OPTIONS}


def _names(dataset: Dataset) -> tuple[str, ...]:
    return dataset.columns or tuple(f"x{i + 1}" for i in range(dataset.X.shape[1]))


def _from_file(path: Path, card: Mapping[str, Any], dataset: Dataset) -> Float[np.ndarray, "T D"]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    options = _options(card)
    try:
        return _from_cells(readers.cells(content, options), options, dataset)
    except DataError as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{dataset.name}: ')}") from None


def _from_cells(
    rows: list[list[str]], options: Mapping[str, Any], dataset: Dataset, *, header: bool = False
) -> Float[np.ndarray, "T D"]:
    """The inputs from rows of text.  The first row is a header where `header`, or where it has names."""
    width = dataset.X.shape[1]
    first = [cell.strip() for cell in rows[0]] if rows else []
    by_name = bool(dataset.columns) and {*dataset.columns} <= {*first}
    if not by_name and len(first) != width:
        needed = f"columns named {', '.join(dataset.columns[:20])}" if dataset.columns else f"{width} columns"
        raise DataError(f"the first row has {len(first)} cells; {dataset.name} needs {needed}, or exactly its inputs")
    if header or by_name or not _is_number(first[0]):
        rows = rows[1:]
    if not rows:
        raise DataError("the table has no rows")
    if ragged := [i for i, row in enumerate(rows) if len(row) != len(first)]:
        raise DataError(f"row {ragged[0] + 1} has {len(rows[ragged[0]])} cells, not {len(first)}")
    cells = list(zip(*rows))
    names = _names(dataset)
    positions = [first.index(name) for name in names] if by_name else range(width)
    codes, missing = options.get("codes") or {}, options.get("missing")
    columns = [readers.numbers(cells[i], name, missing, codes.get(name)) for i, name in zip(positions, names)]
    X = np.array(columns).T
    check_finite(dataset.name, X, np.zeros(len(X)), names)
    return X


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
