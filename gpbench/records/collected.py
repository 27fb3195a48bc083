"""Many records in one Parquet file, a column for each field, and read back as the records they were.

Not made by pandas, which does not return records as they were: it reads null as NaN, gives every record every field,
makes whole numbers with gaps floats, and refuses a column of texts and numbers.
"""

import contextlib
import functools
import gc
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from gpbench.errors import ConfigError, StorageError
from gpbench.records import arrays, columns, parquet
from gpbench.records.record import Record
from gpbench.records.rows import with_rows
from gpbench.records.store import Store

if TYPE_CHECKING:
    import numpy as np

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
        self._records: dict[str, Record] | None = None
        self._configs: dict[str, str | None] = {}
        self._traces: dict[str, bytes | None] | None = None

    def _ids(self) -> Iterator[str]:
        yield from self._loaded()

    def _read(self, id: str, *, whole: bool = False) -> tuple[Record | None, str]:
        record = self._loaded().get(id)
        return record, "" if record else f"{self.runs} has no such record"

    def config_text(self, id: str) -> str:
        self._loaded()
        return self._configs.get(id) or ""

    def trace(self, id: str) -> "dict[str, np.ndarray]":
        """The thinned arrays of a run; empty in a file from before there were any."""
        if self._traces is None:
            try:
                self._traces = read_traces(self.runs)
            except ConfigError as error:
                self._traces = {}
                self._say("", f"no traces: {error}")
        try:
            packed = self._traces.get(id)
            return {} if packed is None else arrays.unpack(packed)
        except ValueError as error:
            self._say(id, f"{self.runs}, run {id}: {error}")
            return {}

    def predictions(self, id: str) -> dict:
        return {}

    def state(self, id: str) -> dict:
        return {}

    def write(self, record: Record, *args: Any, **kwargs: Any) -> Path:
        """Refused: raises ConfigError."""
        raise ConfigError(f"{self.runs} is a collection to read from; name a folder with run.results=DIR")

    def delete(self, id: str) -> None:
        """Refused: raises ConfigError."""
        raise ConfigError(f"{self.runs} is a collection to read from; runs are deleted from results folders")

    def _loaded(self) -> dict[str, Record]:
        if self._records is None:
            rows, faults = read(self.runs)
            self._configs = {record.id: config for record, config in rows}
            self._records = {
                record.id: with_rows(record, functools.partial(self._configs.get, record.id)) for record, _ in rows
            }
            if faults:
                some = "; ".join(faults[:3]) + ("; ..." if len(faults) > 3 else "")
                print(f"gpbench: skipped {len(faults)} records in {self.runs}: {some}", file=sys.stderr)
        return self._records


def open_store(results: Path | str) -> Store:
    """The records in a results folder, or in a Parquet file of them."""
    return Collected(results) if str(results).endswith(SUFFIX) else Store(results)


def write(path: Path, rows: Sequence[tuple[Record, str | None]], traces: Mapping[str, bytes] | None = None) -> None:
    """Writes records, each with the text of its config.yaml, beside and renames into place.

    `traces` are packed arrays (`gpbench.records.arrays`) by id; optional.  Raises StorageError.
    """
    import pyarrow as pa

    flat = [columns.flat(record.to_json()) for record, _ in rows]
    names = list(dict.fromkeys(name for record in flat for name in record))
    table = {name: columns.column([record.get(name) for record in flat]) for name in names}
    table[_FIELDS] = columns.texts([json.dumps(list(record)) for record in flat])
    table[_CONFIG] = columns.texts([config for _, config in rows])
    if traces:
        table[_TRACE] = pa.array([traces.get(record.id) for record, _ in rows], pa.binary())
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(parquet.content(pa.table(table)))
        beside.replace(path)
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free some space, or name another file with --out"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def read(path: Path) -> tuple[list[tuple[Record, str | None]], list[str]]:
    """Every record with the text of its config.yaml, and what is wrong with those left out, each with its row.

    Raises ConfigError for a file that is no collection.
    """
    table = parquet.read(path, without=[_TRACE])
    if missing := {_FIELDS, _CONFIG} - {*table.column_names}:
        raise ConfigError(f"{path} is no collection: it has no column {min(missing)}; `gpbench collect` makes one")
    bad: dict[int, str] = {}
    values = {name: columns.values(path, name, table.column(name), bad) for name in table.column_names}
    shapes, configs = values.pop(_FIELDS), values.pop(_CONFIG)
    if not {*map(type, shapes), *map(type, configs)} <= {str, NoneType}:
        raise ConfigError(f"{path} is no collection: {_FIELDS} or {_CONFIG} has no texts; `gpbench collect` makes one")
    rows_of: dict[str, list[int]] = {}
    for row, shape in enumerate(shapes):
        rows_of.setdefault(shape, []).append(row)
    values_of: list[dict | None] = [None] * len(shapes)
    with _no_garbage_collection():
        for shape, rows in rows_of.items():
            for row, record in zip(rows, columns.records(_fields(shape, values), values, rows)):
                values_of[row] = record
    pairs: list[tuple[Record, str | None]] = []
    ids: set[str] = set()
    for row, value in enumerate(values_of):
        if row not in bad:
            try:
                pairs.append((_record(value, ids), configs[row]))
            except ValueError as error:
                bad[row] = str(error)
    return pairs, [f"row {row}: {bad[row]}" for row in sorted(bad)]


def read_traces(path: Path) -> dict[str, bytes | None]:
    """The packed arrays of every record by its id; empty where the file has none.  Raises ConfigError."""
    table = parquet.read(path, names=["id", _TRACE])
    if _TRACE not in table.column_names:
        return {}
    return dict(zip(table.column("id").to_pylist(), table.column(_TRACE).to_pylist(), strict=True))


def _fields(shape: Any, values: Mapping[str, list]) -> list[str]:
    """The fields that a record of this shape has; none where that is not a list of columns."""
    try:
        fields = json.loads(shape)
    except (ValueError, TypeError, RecursionError):
        return []
    good = isinstance(fields, list) and all(isinstance(field, str) and field in values for field in fields)
    return fields if good else []


def _record(value: dict | None, ids: set[str]) -> Record:
    """The record of a row, whose id is put among those seen.  Raises ValueError that says what is wrong."""
    if value is None:
        raise ValueError("its list of fields cannot be read")
    record = Record.from_json(value)
    if record.id in ids:
        raise ValueError(f"another row has the id {record.id}")
    ids.add(record.id)
    return record


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
