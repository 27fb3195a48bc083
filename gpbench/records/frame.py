"""Records as a pandas DataFrame: a row for each run, or for each run and metric."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from gpbench.arguments import checked
from gpbench.records.record import Record, field_types
from gpbench.records.store import latest, recorded
from gpbench.records.unions import Results, open_stores

if TYPE_CHECKING:
    import pandas as pd

_CELL = ("id", "dataset", "output", "method", "setting", "protocol", "precision", "preset", "split_set")
_RUN = (*_CELL, "split", "seed", "status", "imported", "held_out")
_ORIGIN = ("device", "commit", "dirty", "created", "shipped", "source", "schema", "cell", "data_checksum")
_TRAINING = ("steps", "objective", "converged", "train_rows", "test_rows")


@checked
def frame(results: Results = None, *, long: bool = False) -> "pd.DataFrame":
    """The records of results folders or of collected Parquet files, oldest first.

    A run whose column `held_out` is False was tested on rows that it was trained on.

    Args:
        results: one of them or several, or "shipped", the runs that ship with gpbench, in which a run has `shipped`
            where they stand beside others; by default the results folder, or without runs there the shipped ones.  Of
            a run in several the latest record counts.
        long: one row for each run and metric, with the columns `metric`, `value` (float) and `undefined` (the reason
            for which it does not exist) and `row_stderr` (its standard error over the test rows), instead of one row
            for each run with a column `metrics.NAME` for each metric, `seconds.PART` for each part of the time,
            `undefined.NAME` for each metric that a run has undefined, and `row_stderr.NAME` for each that has an error
            over test rows.

    Returns:
        The frame.  A missing value is NaN in a column of floats, and otherwise `pandas.NA`: whole numbers stay whole,
        and truth values stay truth values (`Int64`, `boolean`, `string`).  A metric that is not finite, or does not
        exist, is NaN, as where it was not recorded.

    Raises:
        ConfigError: a folder does not exist, or nothing is recorded.
    """
    records = latest(recorded(open_stores(results)))
    return _long(records) if long else wide(records)


def wide(records: Sequence[Record]) -> "pd.DataFrame":
    """A row for each of these records, with the columns that `frame` describes."""
    columns = {name: [_field(record, name) for record in records] for name in (*_RUN, *_ORIGIN, *_TRAINING)}
    for field in ("metrics", "seconds", "undefined", "row_stderr"):
        tables = [getattr(record, field) or {} for record in records]
        columns |= {
            f"{field}.{name}": [entries.get(name) for entries in tables] for name in dict.fromkeys(chain(*tables))
        }
    return _typed(columns)


def _long(records: list[Record]) -> "pd.DataFrame":
    pairs = [(record, name, value) for record in records for name, value in record.metrics.items()]
    columns = {name: [_field(record, name) for record, _, _ in pairs] for name in _RUN}
    columns |= {"metric": [name for _, name, _ in pairs], "value": [value for _, _, value in pairs]}
    for field in ("undefined", "row_stderr"):
        columns[field] = [(getattr(record, field) or {}).get(name) for record, name, _ in pairs]
    return _typed(columns)


def _field(record: Record, name: str) -> object:
    value = getattr(record, name)
    if name == "output" and value is not None:
        return str(value)
    return bool(value) if name == "imported" else value


def _typed(columns: Mapping[str, Sequence[object]]) -> "pd.DataFrame":
    """A frame whose columns have the type of their field, whatever is missing."""
    import pandas as pd

    types = field_types()
    dtypes = {bool: "boolean", int: "Int64", float: "float64", str: "string"}

    def dtype(name: str) -> str:
        if name not in types or name in ("undefined", "row_stderr"):
            return "string" if name.partition(".")[0] in ("metric", "undefined") else "float64"
        return next(dtype for kind, dtype in reversed(dtypes.items()) if kind in types[name])

    return pd.DataFrame({name: pd.array(values, dtype=dtype(name)) for name, values in columns.items()})
