"""The one door for rows that a Python program hands over: tables with names of any library, columns, arrays and lists.

Tables are read by Arrow's interface (`__arrow_c_stream__`), which polars, pyarrow, duckdb and others have.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpbench.errors import DataError, require


def as_pandas(rows: Any, subject: str = "X") -> Any:
    """Tables and columns as those of pandas, missing cells of NumPy's masks as NaN, and all else as it is."""
    if isinstance(rows, np.ma.MaskedArray):
        return np.ma.filled(rows.astype(np.float64), np.nan)
    import pandas as pd

    if isinstance(rows, np.ndarray) and rows.dtype.names:
        return pd.DataFrame(rows)
    if isinstance(rows, np.ndarray | pd.DataFrame | pd.Series):
        return rows
    reason = ""
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
    if reason:
        name = f"{type(rows).__module__.partition('.')[0]}.{type(rows).__name__}"
        mend = "give a DataFrame of pandas or polars, or a table of pyarrow"
        raise DataError(f"{subject}: the columns of a {name} cannot be read ({reason}): {mend}")
    return rows


_TIMES = {"datetime", "datetime64", "date", "time", "timedelta", "timedelta64", "period", "interval"}


def check_dates(rows: Any, subject: str = "X", mend: str = "leave the column out, or make numbers of it") -> None:
    """Raises DataError for a column of dates or times, which arrays take for numbers of their unit."""
    import pandas as pd
    from pandas.api.types import infer_dtype

    if isinstance(rows, pd.DataFrame):
        columns = [(f", column {str(name)!r}:", rows.iloc[:, i]) for i, name in enumerate(rows.columns)]
    else:
        columns = [(":", rows if hasattr(rows, "dtype") else np.asarray(rows, object))]
    for name, cells in columns:
        is_object = cells.dtype.kind == "O"
        kind = infer_dtype(np.ravel(np.asarray(cells, object)), skipna=True) if is_object else ""
        is_time = cells.dtype.kind in "mM" or kind in _TIMES
        require(not is_time, f"{subject}{name} dates and times are no numbers: {mend}")
