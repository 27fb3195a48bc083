"""Rows that a Python program hands over, of any library's tables and arrays; and inputs of new rows to predict."""

from collections.abc import Mapping, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from pandas.api.types import infer_dtype

from gpbench.data import cells as text
from gpbench.data import encoding
from gpbench.data.cells import Numbers
from gpbench.data.conversion import check_finite
from gpbench.data.dataset import Dataset
from gpbench.data.faults import SpellingError
from gpbench.data.lines import text_of, whole
from gpbench.data.tables import by_column, columns_of, require_different
from gpbench.errors import DataError, require

_SPELLING = ("delimiter", "missing", "codes", "encode", "sheet", "encoding", "comment", "decimal", "thousands")
"""Options of a source that hold for new rows too."""
_MEND = "mend them, or leave these rows out"


def new_inputs(
    rows: Any, card: Mapping[str, Any], dataset: Dataset, *, header: bool = True
) -> Float[np.ndarray, "T D"]:
    """The inputs of the rows of an array, a table of any library or a file, in the order of the data set's columns."""
    subject, count = "", dataset.X.shape[1] - len(dataset.indicators)
    options = {key: value for source in card["sources"] for key, value in source.items() if key in _SPELLING}
    try:
        if isinstance(rows, str | PathLike):
            subject = f"{rows}: "
            try:
                content = Path(rows).read_bytes()
            except OSError as error:
                raise DataError(f"the file cannot be read: {error.strerror or error}") from None
            return _from_cells(text.read(content, options).rows, options, dataset, header)
        rows = as_pandas(rows)
        if hasattr(rows, "itertuples"):
            cells = rows_of_frame(rows, options.get("decimal", "."))
            has_names = list(rows.columns) != list(range(len(rows.columns)))  # what pandas calls columns without names
            table = [[str(name) for name in rows.columns], *cells] if has_names else cells
            return _from_cells(table, options, dataset, has_names)
    except SpellingError as error:
        raise DataError(f"{subject}{error.fact}; write it as the table of {dataset.name} has it") from None
    except DataError as error:
        raise DataError(f"{subject}{str(error).removeprefix(f'{dataset.name}: ' if subject else '')}") from None
    check_dates(rows)
    try:
        X = np.asarray(rows).astype(np.float64, casting="same_kind" if np.iscomplexobj(rows) else "unsafe")
    except (TypeError, ValueError) as error:
        raise DataError(f"X is no array of numbers (T, {dataset.X.shape[1]}): {error}") from None
    is_fit = X.ndim == 2 and X.shape[1] == count
    require(is_fit, f"X has the shape {X.shape}; rows of {dataset.name} have {count} inputs")
    require(len(X), "X has no rows")
    return _complete(X, dataset)


def rows_of_frame(frame: pd.DataFrame, decimal: str = ".") -> list[list[str]]:
    """The cells of a DataFrame as a csv file has them: "" for a missing one, 3 for 3.0, as a gap makes floats of 3."""
    cells = frame.astype(object).where(frame.notna(), None)

    def written(cell: Any) -> str:
        text = text_of(whole(cell))
        return text.replace(".", decimal) if isinstance(cell, Real) else text

    return [list(map(written, row)) for row in cells.itertuples(index=False, name=None)]


def _from_cells(
    rows: list[list[str]], options: Mapping[str, Any], dataset: Dataset, header: bool
) -> Float[np.ndarray, "T D"]:
    """The inputs from rows of text, of which the first is a header where `header`."""
    numbers, specs, codes = Numbers.from_options(options), by_column(options, "encode"), by_column(options, "codes")
    first = [cell.strip() for cell in rows[0]] if rows else []
    is_numeric = bool(rows) and all(numbers.parse(cell) is not None for cell in first)
    require(len(rows) > header or is_numeric, "the table has no rows")
    inputs = [name for name in dataset.columns if name not in dataset.indicators]
    names = tuple(dict.fromkeys(encoding.columns_of_table(inputs, dataset.levels)))
    if header:
        mend = "--no-header (header=False in Python) reads a table without a header, whose columns must be the inputs"
        fact = f"the first row is of numbers, not of names ({', '.join(names[:20])}); {mend} in their order"
        require(not is_numeric, fact)
        positions, rows = _by_name(first, names), rows[1:]
    else:
        fault = f"{dataset.name} has an exposure, whose column only a header tells: give the rows a header"
        require(not dataset.exposure, fault)
        positions = list(range(len(names)))
        fault = f"the first row has {len(first)} cells; {dataset.name} has {len(names)} inputs"
        require(len(first) == len(names), fault)
    columns = columns_of(rows, len(first))
    of_inputs = {name: columns[i] for i, name in zip(positions, names)}
    X, *_ = encoding.inputs_of(of_inputs, numbers, specs, codes, dataset.levels)
    return _complete(np.array(X).T, dataset)


def _complete(X: Float[np.ndarray, "T D"], dataset: Dataset) -> Float[np.ndarray, "T C"]:
    """The rows with the inputs that say which cells are missing.  Raises DataError for cells that may not be."""
    columns = dataset.columns or tuple(f"x{i + 1}" for i in range(X.shape[1]))
    missing = np.isnan(X)
    filled = np.where(missing & [name in dataset.impute for name in columns[: X.shape[1]]], 0.0, X)
    names, rows = encoding.columns_of_table(columns, dataset.levels), np.arange(len(X))
    check_finite(dataset.name, filled, np.zeros(len(X)), names, rows=rows, mend=_MEND)
    return np.column_stack([X, *(missing[:, columns.index(column)] for column in dataset.indicators.values())])


def _by_name(header: Sequence[str], names: Sequence[str]) -> list[int]:
    """The position of each input in a header, in any case.  Raises DataError for inputs that lack or stand twice."""
    folded = [cell.casefold() for cell in header]
    positions: list[int] = []
    for name in names:
        matches = [i for i, cell in enumerate(header) if cell == name]
        matches = matches or [i for i, cell in enumerate(folded) if cell == name.casefold()]
        require_different([name] * len(matches))
        positions += matches
    lacking = ", ".join([repr(name) for name in names if name.casefold() not in folded][:20])
    hint = "; is its delimiter that of the data set?" if len(header) == 1 < len(names) else ""
    require(not lacking, f"no column {lacking}; the table has {', '.join(header[:20])}{hint}")
    return positions


def as_pandas(rows: Any, subject: str = "X") -> Any:
    """Tables and columns, of whatever library has Arrow's interface (`__arrow_c_stream__`), as those of pandas."""
    if isinstance(rows, np.ma.MaskedArray):
        return np.ma.filled(rows.astype(np.float64), np.nan)
    if isinstance(rows, np.ndarray) and rows.dtype.names:
        return pd.DataFrame(rows)
    if isinstance(rows, np.ndarray | pd.DataFrame | pd.Series):
        return rows
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        import pyarrow as pa

        try:
            try:
                table = pa.chunked_array([rows]) if isinstance(rows, pa.Array) else pa.table(rows)
            except (pa.ArrowInvalid, TypeError):  # a column
                table = pa.chunked_array(rows)
            return table.to_pandas(integer_object_nulls=True)
        except Exception as error:  # of whatever kind the library of the table raises
            reason = " ".join(str(error).split())[:200]
    elif hasattr(type(rows), "columns") or (isinstance(rows, Mapping) and not hasattr(rows, "shape")):  # sparse ones do
        reason = "it has no __arrow_c_stream__"
    else:
        return rows
    name = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
    mend = "give a DataFrame of pandas or polars, or a table of pyarrow"
    raise DataError(f"{subject}: the columns of a {name} cannot be read ({reason}): {mend}")


_TIMES = {"datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period", "interval"}


def check_dates(rows: Any, subject: str = "X", mend: str = "leave the column out, or make numbers of it") -> None:
    """Raises DataError for a column of dates or times, which arrays take for numbers of their unit."""
    if isinstance(rows, pd.DataFrame):
        columns = [(f", column {str(name)!r}:", rows.iloc[:, i]) for i, name in enumerate(rows.columns)]
    else:
        columns = [(":", rows if hasattr(rows, "dtype") else np.asarray(rows, object))]
    for name, cells in columns:
        kind = infer_dtype(np.ravel(np.asarray(cells, object)), skipna=True) if cells.dtype.kind == "O" else ""
        is_time = cells.dtype.kind in "mM" or kind in _TIMES
        require(not is_time, f"{subject}{name} dates and times are no numbers: {mend}")
