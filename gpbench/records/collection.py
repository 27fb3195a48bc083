"""Collections: many records in one Parquet file, which `gpbench collect` makes and every verb reads.  One row a record:
its JSON in the column `record`, the text of its config.yaml in `config`, its packed arrays in `trace`, its list of
installed packages in `package_list` (the file has each list once), and beside them columns of what is filtered by, for
other programs.  The values come from `record` alone.  A flipped bit is an error, whichever byte it is in
(`gpbench.records.parquet`)."""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits
from gpbench.errors import ConfigError, require
from gpbench.log import log
from gpbench.outputs import output
from gpbench.records import packages, parquet
from gpbench.records.folder import CONFIG, TRACE, plain
from gpbench.records.record import Record
from gpbench.records.store import Store, without_gc

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIX = ".parquet"
_TEXTS = ("id", "cell", "status", "dataset", "output", "method", "setting", "protocol", "precision", "preset")
_COLUMNS = (*_TEXTS, "split_set", "split", "seed", "created")  # the fields that have a column of their own
_RECORD, _CONFIG, _TRACE, _PACKAGES = "record", "config", "trace", "package_list"
_TEXT_COLUMNS = ("id", _RECORD, _CONFIG, _TRACE, _PACKAGES)  # the columns that are read as dictionaries
_OLD = "_fields"  # a column of the format before this one, which had a column for each field
_TEXT_TYPES = ("string", "dictionary<values=string, indices=int32, ordered=0>")
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class Collection(Store):
    """The records in a file of `gpbench collect`, to read from: with thinned traces, no predictions and no states."""

    is_folder = False
    _refusal = (
        "is a collection to read from; runs are written into results folders (run.results=DIR, or import --results"
        " DIR), and deleted there"
    )
    _mend = "`gpbench collect` makes it again"

    def __init__(self, path: Path | str, *, shipped: bool = False) -> None:
        super().__init__(path)
        self.runs = Path(path)
        self._marks = shipped

    def ids(self) -> Sequence[str]:
        """The ids of all runs, read without their records."""
        return list(self._known)

    def contains(self, id: str) -> bool:
        """True if there is a run of this id."""
        return id in self._known

    def packages(self, checksum: str) -> str:
        """The list of installed packages that records name.  Raises AbsentError; ConfigError where none can be read."""
        if checksum not in self._packages:
            raise packages.absent(checksum, self.runs)
        return self._packages[checksum]

    def _ids(self) -> Iterator[str]:
        yield from self._rows

    def _read(self, id: str, *, whole: bool = False) -> tuple[Record | None, str]:
        record, _ = self._rows.get(id, (None, ""))
        return record, "" if record else f"{self.runs} has no such record"

    def _content(self, id: str, name: str) -> bytes | None:
        if name == TRACE:
            return self._traces.get(id)
        return self._rows.get(id, (None, ""))[1].encode() if name == CONFIG else None

    @cached_property
    def _known(self) -> dict[str, None]:
        ids = vars(self).get("_rows") or _columns(self.runs, "id")[0]
        return dict.fromkeys(id for id in ids if isinstance(id, str))

    @cached_property
    def _traces(self) -> dict[str, bytes | None]:
        """The packed arrays of every record by its id; None where it has none."""
        try:
            return dict(zip(*_columns(self.runs, "id", _TRACE), strict=True))
        except ConfigError as error:
            self._say("", f"no traces: {error}")
            return {}

    @cached_property
    def _packages(self) -> dict[str, str]:
        return _read_packages(self.runs)

    @cached_property
    def _rows(self) -> dict[str, tuple[Record, str]]:
        """Each record with the text of its config.yaml, by id."""
        rows, faults = read(self.runs)
        for record, _ in rows if self._marks else ():
            record.mark_shipped()
        if faults:
            some = "; ".join(faults[:3]) + ("; ..." if len(faults) > 3 else "")
            log.warning(f"skipped {len(faults)} records in {self.runs}: {some}")
        return {record.id: (record, config) for record, config in rows}


def open_store(results: Path | str) -> Store:
    """The records in a results folder, or in a collection."""
    return Collection(results) if str(results).endswith(SUFFIX) else Store(results)


def open_existing(results: Path | str) -> Store:
    """The records in a results folder, without runs in its `records.parquet`, or in a collection."""
    folder = Path(results)
    problem = "is a file, and no results folder" if folder.exists() else "no such folder"
    require(str(results).endswith(SUFFIX) or folder.is_dir(), f"{results}: {problem}", ConfigError)
    collection = folder / f"records{SUFFIX}"
    return open_store(collection if collection.is_file() and not (folder / "runs").is_dir() else folder)


def write(path: Path, rows: Sequence[tuple[Record, str]], *more: Mapping[str, Any]) -> None:
    """Writes a collection of the arguments of `content`.  Raises StorageError: the file cannot be written."""
    whole = content(rows, *more)
    with output(path) as file:
        file.write(whole)


def content(
    rows: Sequence[tuple[Record, str]],
    traces: Mapping[str, bytes] | None = None,
    package_lists: Mapping[str, str] | None = None,
) -> bytes:
    """The bytes of a collection."""
    import pyarrow as pa

    records = [record for record, _ in rows]
    columns = {name: parquet.column([getattr(record, name) for record in records]) for name in _COLUMNS}
    columns[_RECORD] = pa.array([_JSON.encode(record.to_json()) for record in records], pa.string())
    columns[_CONFIG] = pa.array([config for _, config in rows], pa.string()).dictionary_encode()
    columns[_TRACE] = pa.array([(traces or {}).get(record.id) for record in records], pa.binary())
    if package_lists:
        columns[_PACKAGES] = parquet.column([package_lists.get(record.packages or "") for record in records])
    return parquet.content(pa.table(columns), [name for name in columns if name not in ("id", _RECORD, _TRACE)])


def read(path: Path) -> tuple[list[tuple[Record, str]], list[str]]:
    """The records of a collection, each with the text of its config.yaml, and what is wrong with those left out."""
    table = _table(path, [*_COLUMNS, _RECORD, _CONFIG, _OLD])
    mend = f"`gpbench collect DIR --out {path}` makes it again from the results folder"
    fault = f"{path} was collected by an earlier gpbench, in another format; {mend}"
    require(_OLD not in table.column_names, fault, ConfigError)
    for name in (_RECORD, _CONFIG):
        is_text = name in table.column_names and str(table.schema.field(name).type) in _TEXT_TYPES
        fault = f"{path} is no collection: it has no column {name} of texts; `gpbench collect` makes one"
        require(is_text, fault, ConfigError)
    rows: dict[str, tuple[Record, str]] = {}
    faults: list[str] = []
    with without_gc():
        texts = zip(parquet.values(table.column(_RECORD)), parquet.values(table.column(_CONFIG)))
        for row, (text, config) in enumerate(texts):
            try:
                record = Record.from_json(_parsed(text or ""))
                first, _ = rows.setdefault(record.id, (record, config or ""))
                require(first is record, f"another row has the id {record.id}", ValueError)
            except ValueError as error:
                faults.append(f"row {row}: {error}")
    return [*rows.values()], faults


def read_times(path: Path) -> list[tuple[str, str | None]]:
    """The id and the time of each record of a collection, which are not read.  Raises ConfigError."""
    return list(zip(*_columns(path, "id", "created"), strict=True))


def _read_packages(path: Path) -> dict[str, str]:
    """The lists of installed packages by checksum; what is none is left out."""
    lists = {}
    for text in {text for text in _columns(path, _PACKAGES)[0] if isinstance(text, str)}:
        with contextlib.suppress(ValueError):
            limits.check(len(text), limits.PACKAGES, "it has")
            name = packages.checksum(text)
            lists[name] = packages.verified(text.encode(), name)
    return lists


def _columns(path: Path, *names: str) -> list[list[Any]]:
    """The values of these columns; none where the file lacks one of them."""
    table = _table(path, names)
    is_whole = {*table.column_names} == {*names}
    return [parquet.values(table.column(name)) if is_whole else [] for name in names]


def _parsed(text: str) -> Any:
    """The value of a JSON text.  Raises ValueError."""
    try:
        limits.check(len(text), limits.RECORD, "it has")
        return plain(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its record is not valid JSON ({error})") from None


def _table(path: Path, names: Sequence[str]) -> "pa.Table":
    """The columns of these names that the file has.  Raises ConfigError for a file that cannot be read."""
    try:
        table = parquet.read(path, names, _TEXT_COLUMNS)
        for name in {*table.column_names} & {"id", _RECORD, _CONFIG, _TRACE}:
            parquet.check_texts(table.column(name), limits.most_unpacked(path.stat().st_size, limits.COLLECTION))
        return table
    except (ValueError, OSError) as error:
        raise ConfigError(f"cannot read {path} ({error}); `gpbench collect DIR --out {path}` makes one") from error
