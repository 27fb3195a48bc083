"""Many records in one Parquet file, a column for each field, and read back as the records they were.

Not made by pandas, which does not return records as they were: it reads null as NaN, gives every record every field,
makes whole numbers with gaps floats, and refuses a column of texts and numbers.  Mappings of numbers in a record
(`metrics`, `seconds`) become a column for each number, as in `metrics.nll`; whatever else is no number, truth value or
text is kept as JSON.
"""

import contextlib
import functools
import gc
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from gpbench.errors import ConfigError, StorageError
from gpbench.records import arrays, folder
from gpbench.records.rows import with_rows
from gpbench.records.store import Store

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

SUFFIX = ".parquet"
_FIELDS = "_fields"
"""The column that says which fields a record has: null in another column may mean null, or no such field."""
_CONFIG = "_config"
"""The column with the run's config.yaml."""
_TRACE = "_trace"
"""The column with the run's thinned arrays; absent where no run has any."""


class Collected(Store):
    """The records in a Parquet file that `gpbench collect` made: a results folder to read from, with thinned traces
    (`gpbench.records.arrays`) and without predictions."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path)
        self.runs = Path(path)
        self._records: dict[str, dict] | None = None
        self._configs: dict[str, str | None] = {}
        self._traces: dict[str, bytes | None] | None = None

    def _ids(self) -> Iterator[str]:
        yield from self._loaded()

    def _read(self, id: str) -> tuple[dict | None, str]:
        record = self._loaded().get(id)
        return record, "" if record else f"{self.runs} has no such record"

    def config_text(self, id: str) -> str:
        self._loaded()
        return self._configs.get(id) or ""

    def trace(self, id: str) -> "dict[str, np.ndarray]":
        """The thinned arrays of a run; empty in a file from before there were any."""
        if self._traces is None:
            self._traces = read_traces(self.runs)
        return arrays.unpack(self._traces.get(id))

    def predictions(self, id: str) -> dict:
        return {}

    def state(self, id: str) -> dict:
        return {}

    def write(self, record: Mapping[str, Any], *args: Any, **kwargs: Any) -> Path:
        """Refused: raises ConfigError."""
        raise ConfigError(f"{self.runs} is a collection to read from; name a folder with run.results=DIR")

    def delete(self, id: str) -> None:
        """Refused: raises ConfigError."""
        raise ConfigError(f"{self.runs} is a collection to read from; runs are deleted from results folders")

    def _loaded(self) -> dict[str, dict]:
        if self._records is None:
            rows = read(self.runs)
            self._configs = {record["id"]: config for record, config in rows}
            self._records = {
                record["id"]: with_rows(record, functools.partial(self._configs.get, record["id"]))
                for record, _ in rows
                if not folder.newer(record)
            }
            if faults := [fault for record, _ in rows if (fault := folder.newer(record))]:
                print(f"gpbench: skipped {len(faults)} records in {self.runs}: {faults[0]}", file=sys.stderr)
        return self._records


def open_store(results: Path | str) -> Store:
    """The records in a results folder, or in a Parquet file of them."""
    return Collected(results) if str(results).endswith(SUFFIX) else Store(results)


def write(
    path: Path, rows: Sequence[tuple[Mapping[str, Any], str | None]], traces: Mapping[str, bytes] | None = None
) -> None:
    """Writes records, each with the text of its config.yaml, beside and renames into place.

    `traces` are packed arrays (`gpbench.records.arrays`) by id; optional.  Raises StorageError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = [_flat(record) for record, _ in rows]
    names = list(dict.fromkeys(name for record in flat for name in record))
    columns = {name: _column([record.get(name) for record in flat]) for name in names}
    columns[_FIELDS] = _texts([json.dumps(list(record)) for record in flat])
    columns[_CONFIG] = _texts([config for _, config in rows])
    if traces:
        columns[_TRACE] = pa.array([traces.get(record["id"]) for record, _ in rows], pa.binary())
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), beside, compression="zstd")
        beside.replace(path)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; free some space, or name another file"
                           " with --out") from error  # fmt: skip
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def read(path: Path) -> list[tuple[dict, str | None]]:
    """Every record, with the text of its config.yaml.  Raises ConfigError for a file that is no collection."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=[name for name in pq.read_schema(path).names if name != _TRACE])
        columns = {name: table.column(name) for name in table.column_names}
        shapes, configs = (_values(columns.pop(name)) for name in (_FIELDS, _CONFIG))
    except (OSError, KeyError, pa.ArrowException) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error).partition("\n")[0]
        raise ConfigError(f"cannot read {path} ({why}); `gpbench collect DIR --out {path}` makes one") from error
    values = {name: _values(column) for name, column in columns.items()}
    rows_of: dict[str, list[int]] = {}
    for row, shape in enumerate(shapes):
        rows_of.setdefault(shape, []).append(row)
    records: list[dict] = [{}] * len(shapes)
    with _no_garbage_collection():
        for shape, rows in rows_of.items():
            for row, record in zip(rows, _records(json.loads(shape), values, rows), strict=True):
                records[row] = record
    return list(zip(records, configs, strict=True))


def read_traces(path: Path) -> dict[str, bytes | None]:
    """The packed arrays of every record by its id; empty where the file has none."""
    import pyarrow.parquet as pq

    if _TRACE not in pq.read_schema(path).names:
        return {}
    table = pq.read_table(path, columns=["id", _TRACE])
    return dict(zip(table.column("id").to_pylist(), table.column(_TRACE).to_pylist(), strict=True))


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Making a hundred thousand records would set it off again and again, for nothing: a third of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _records(fields: Sequence[str], values: Mapping[str, list], rows: Sequence[int]) -> Iterator[dict]:
    """The records of these rows, which all have these fields."""
    parts: dict[str, list[str]] = {}
    for field in fields:
        parts.setdefault(field.partition(".")[0], []).append(field)

    def column(fields: Sequence[str]) -> Iterable[Any]:
        if "." not in fields[0]:
            return [values[fields[0]][row] for row in rows]
        keys = [field.partition(".")[2] for field in fields]
        return (dict(zip(keys, row)) for row in zip(*([values[field][row] for row in rows] for field in fields)))

    yield from (dict(zip(parts, row)) for row in zip(*map(column, parts.values())))


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings of numbers spread out."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        numbers = value and isinstance(value, Mapping) and {type(v) for v in value.values()} <= {int, float, NoneType}
        if numbers:
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def _column(values: list) -> "pa.Array":
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return _texts(values)
    if kinds in ({bool}, {int}, {float}, {int, float}):
        return pa.array(values, pa.float64() if float in kinds else None)
    texts = pa.array([None if value is None else json.dumps(value).encode() for value in values], pa.binary())
    return texts.dictionary_encode()  # bytes, and so not a text


def _texts(values: list) -> "pa.Array":
    import pyarrow as pa

    return pa.array(values, pa.string()).dictionary_encode()


def _values(column: "pa.ChunkedArray") -> list:
    """A column as Python's values.  Equal values of JSON are one object."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        if column.null_count or pa.types.is_boolean(column.type):
            return column.to_pylist()
        return column.to_numpy().tolist()
    whole = column.combine_chunks()
    known = whole.dictionary.to_pylist()
    if pa.types.is_binary(column.type.value_type):
        known = [json.loads(value) for value in known]
    known.append(None)
    return [known[i] for i in whole.indices.fill_null(len(known) - 1).to_numpy().tolist()]
