"""Rows of a user's file that a trained method is to predict: the inputs of a data set, without its targets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench.data import readers
from gpbench.data.dataset import Dataset, check_finite
from gpbench.errors import DataError

_OF_TABLES = ("delimiter", "missing", "codes", "sheet")


def read(path: Path, card: Mapping[str, Any], dataset: Dataset) -> Float[np.ndarray, "T D"]:
    """The inputs of every row of a table (csv, Parquet, Excel), in original units and the order of the data set.

    A header that has all names of the data set's inputs says which columns these are, and others are ignored; without
    such names the table has exactly the inputs, in their order.  Text is coded, and missing cells are marked, as in the
    card.  Raises DataError for a file that cannot be read, absent columns, and cells that are no finite numbers.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    options = {key: value for source in card["sources"] for key, value in source.items() if key in _OF_TABLES}
    try:
        return _inputs(readers.cells(content, options), options, dataset)
    except DataError as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{dataset.name}: ')}") from None


def _inputs(rows: list[list[str]], options: Mapping[str, Any], dataset: Dataset) -> Float[np.ndarray, "T D"]:
    width = dataset.X.shape[1]
    first = [cell.strip() for cell in rows[0]] if rows else []
    by_name = bool(dataset.columns) and {*dataset.columns} <= {*first}
    if not by_name and len(first) != width:
        needed = f"columns named {', '.join(dataset.columns[:20])}" if dataset.columns else f"{width} columns"
        raise DataError(f"the first row has {len(first)} cells; {dataset.name} needs {needed}, or exactly its inputs")
    if by_name or not _is_number(first[0]):
        rows = rows[1:]
    if not rows:
        raise DataError("the table has no rows")
    if ragged := [i for i, row in enumerate(rows) if len(row) != len(first)]:
        raise DataError(f"row {ragged[0] + 1} has {len(rows[ragged[0]])} cells, not {len(first)}")
    cells = list(zip(*rows))
    names = dataset.columns or [f"x{i + 1}" for i in range(width)]
    places = [first.index(name) for name in names] if by_name else range(width)
    coded, missing = options.get("codes") or {}, options.get("missing")
    columns = [readers.numbers(cells[i], name, missing, coded.get(name)) for i, name in zip(places, names)]
    X = np.array(columns).T
    check_finite(dataset.name, X, np.zeros(len(X)), names)
    return X


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
