"""Tables too large for memory: maps of files, of which a few rows are read at a time, and given back after it."""

import ctypes
import hashlib
import mmap
import os
import signal
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from gpbench import limits, npz, pages
from gpbench.data import archives
from gpbench.data.dataset import Dataset
from gpbench.data.scaling import Scaler
from gpbench.errors import DataError, StorageError, failure, require
from gpbench.outputs import whole_file

_BLOCK = 2**17  # rows of a pass over a table at a time
_SCATTERED = 2**11  # rows that are read at a time in any order


@dataclass(frozen=True)
class _WatchedFile:
    """A file that is read for as long as a run trains, with its inode, size and time of change when it was opened."""

    path: Path
    state: tuple[int, ...]

    def check(self) -> None:
        """Raises DataError where the file is not what it was."""
        mend = "nothing is recorded: run the same command again, and leave the file alone"
        require(_state(self.path) == self.state, f"{self.path} was changed while it was in use, and {mend}")


_watched: dict[Path, _WatchedFile] = {}


def _watch(path: Path) -> _WatchedFile:
    """The file as it is now; where it is cut short, SIGBUS in the middle of a read ends this process in one line."""
    path = path.absolute()
    _watched[path] = _WatchedFile(path, _state(path))
    ctypes.CDLL(None).signal(signal.SIGBUS, _on_bus_error)
    return _watched[path]


def _state(path: Path) -> tuple[int, ...]:
    """Facts that tell a file from another one, or from itself after a change; none of one that is not there."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _on_bus_error(number: Any) -> None:
    """Ends the process by the error of a file that has changed, else by the signal, when the read is tried again."""
    try:
        for file in _watched.values():
            file.check()
    except DataError as error:
        os.write(2, f"gpbench: {error}\n".encode())
        os._exit(error.exit_code)
    ctypes.CDLL(None).signal(number, signal.SIG_DFL)


def mapped(path: Path, options: Mapping, *, card: Mapping, store: Path) -> Dataset:
    """A table of numbers that is opened and not read: its arrays are maps of the file, float32 or float64."""
    name, task, target = card["name"], card["task"], options.get("target", -1)
    for key in ("incomplete", "impute", "labels"):
        require(not card.get(key), f"{name}: the reader `mapped` knows no `{key}`: change the file instead")
    columns: Sequence[str] = ()
    file = _watch(path)
    with open(path, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if path.suffix.lower() in (".parquet", ".pq"):
        path, columns, target = *_converted(path, target, store / "mapped" / f"{digest[:16]}-{target}.npy"), -1
        file.check()
        file = _watch(path)
    with archives.parsing("a readable table for the reader `mapped`"):
        X, y = _pair(path, target)
    are_floats = {X.dtype, y.dtype} <= {np.dtype(np.float32), np.dtype(np.float64)}
    require(are_floats, f"{name}: {path.name} has arrays of {X.dtype} and {y.dtype}: must be float32 or float64")
    lengths = f"{len(X)} rows in X and {len(y)} in y"
    require(len(X) == len(y), f"{name}: {path.name} has {lengths}: save both of the same rows")
    values: set[float] = set()
    for start in range(0, len(y), _BLOCK) if task != "regression" else ():
        values |= {*np.unique(y[start : start + _BLOCK]).tolist()}
        _release(y)
    classes = _classes(name, task, values)
    columns = tuple(columns or card.get("columns") or (f"x{i + 1}" for i in range(X.shape[1])))
    fault = f"{name}: {X.shape[1]} inputs, but its card names {len(columns)} columns"
    require(len(columns) == X.shape[1], fault)
    label = options["target"] if isinstance(options.get("target"), str) else card.get("target") or "target"
    return Dataset(name, task, X, y, columns, classes, digest, target=label, file=file)


def _pair(path: Path, target: Any) -> tuple[np.ndarray, np.ndarray]:
    if path.suffix.lower() == ".npz":
        return _member(path, "X", 2), _member(path, "y", 1)
    table = np.load(path, mmap_mode="r", allow_pickle=False)
    if table.ndim != 2 or table.shape[1] < 2 or len(table) < 2:
        raise ValueError(f"an array of shape {table.shape}: must have rows, and columns with the target among them")
    if target not in (0, -1, table.shape[1] - 1):
        raise ValueError(f"target={target}: must be the first column, 0, or the last one, -1")
    return (table[:, 1:], table[:, 0]) if target == 0 else (table[:, :-1], table[:, -1])


def _member(path: Path, name: str, dimensions: int) -> np.ndarray:
    """An array of an archive, mapped where it lies in the file."""
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo(f"{name}.npy")
        if entry.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"array {name} is compressed; write the file by numpy.savez")
        with archive.open(entry) as member:
            shape, is_fortran, dtype = npz.header(member)
            header = member.tell()
    if dtype.hasobject or len(shape) != dimensions or (is_fortran and dimensions > 1):
        raise ValueError(f"array {name} of {dtype} and shape {shape}: must be numbers, in C order")
    with open(path, "rb") as file:
        file.seek(entry.header_offset + 26)
        lengths = np.frombuffer(file.read(4), "<u2")
    return np.memmap(path, dtype, "r", entry.header_offset + 30 + int(lengths.sum()) + header, shape)


def _converted(path: Path, target: Any, copy: Path) -> tuple[Path, list[str]]:
    """A Parquet file as a .npy file with the target as last column, and the names of the inputs."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # opened, since pyarrow takes no path that is not UTF-8
    with archives.parsing("a readable Parquet file of numbers"), open(path, "rb") as content:
        file = pq.ParquetFile(content)
        names = file.schema_arrow.names
        last = names[target] if isinstance(target, int) else target
        if last not in names:
            raise ValueError(f"no column {target!r}; the file has {', '.join(names[:20])}")
        columns = [*(name for name in names if name != last), last]
        if copy.exists():
            return copy, columns[:-1]
        for name, kind in zip(names, file.schema_arrow.types):
            if not (pa.types.is_primitive(kind) or pa.types.is_decimal(kind)):
                raise ValueError(f"column {name!r} is not of numbers: leave it out")
        rows, content_map = file.metadata.num_rows, mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ)
        size = max(pages.unpacked_size(content_map, file.metadata), 8 * rows * len(names))
        limits.check(size, limits.most_unpacked(path.stat().st_size, 2**63), "it unpacks to", mend="save it as .npy")
        is_single = all(str(file.schema_arrow.field(name).type) == "float" for name in columns)
        dtype = np.dtype(np.float32 if is_single else np.float64)
        try:
            with whole_file(copy) as out:
                shape = (file.metadata.num_rows, len(columns))
                np.lib.format.write_array_header_1_0(out, {"descr": dtype.str, "fortran_order": False, "shape": shape})
                for batch in file.iter_batches(_BLOCK, columns=columns):
                    cells = [batch.column(name).to_numpy(zero_copy_only=False) for name in columns]
                    out.write(np.column_stack(cells).astype(dtype).tobytes())
        except OSError as error:
            if error.errno is None:  # of a damaged file
                raise
            mend = failure(error, "set GPBENCH_STORE to another folder")
            raise StorageError(f"cannot write {copy}: {mend}") from error
    return copy, columns[:-1]


def _classes(name: str, task: str, values: set[float]) -> tuple[str, ...]:
    """The names of the classes.  Raises DataError for targets that are no counts, or no codes of classes."""
    codes = {"binary": {-1.0, 1.0}, "multiclass": set(map(float, range(len(values))))}.get(task, values)
    forms = {"binary": "-1 and 1", "multiclass": "0, 1, 2, ..., each of them", "count": "0, 1, 2, ..."}
    is_fit = values == codes and not (task == "count" and any(value < 0 or value % 1 for value in values))
    require(is_fit, f"{name}: the targets of task {task} in a mapped table must be {forms.get(task)}")
    return () if task in ("regression", "count") else tuple(f"{value:g}" for value in sorted(values))


def _release(*arrays: Any) -> None:
    """Gives back the memory of what was read of mapped arrays, which can be read again."""
    for base in arrays:
        while isinstance(base, np.ndarray):
            base = base.base
        if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            base.madvise(mmap.MADV_DONTNEED)


def gather(
    X: Shaped[np.ndarray, "N D"], y: Shaped[np.ndarray, " N"], rows: Int[np.ndarray, "*B"]
) -> tuple[Float[np.ndarray, "*B D"], Float[np.ndarray, "*B"]]:
    """Rows of a mapped table in any order, copied in float64, a few at a time, as each maps 64 kB of the file."""
    flat = rows.ravel()
    copies = np.empty((len(flat), X.shape[1])), np.empty(len(flat))
    for start in range(0, len(flat), _SCATTERED):
        section = slice(start, start + _SCATTERED)
        for copy, array in zip(copies, (X, y)):
            copy[section] = array[flat[section]]
        _release(X, y)
    return copies[0].reshape(*rows.shape, -1), copies[1].reshape(rows.shape)


def blocks(
    X: Shaped[np.ndarray, "N D"], y: Shaped[np.ndarray, " N"], rows: Int[np.ndarray, " n"]
) -> Iterator[Float[np.ndarray, "B C"]]:
    """Rows of a mapped table in the order of the file, a few at a time: inputs, and the target as the last column."""
    is_training = np.zeros(len(X), bool)
    is_training[rows] = True
    for start in range(0, len(X), _BLOCK):
        section = slice(start, start + _BLOCK)
        yield np.column_stack([X[section], y[section]])[is_training[section]].astype(np.float64)
        _release(X, y)


@dataclass(frozen=True)
class MappedRows:
    """Training rows of a mapped table: a function that reads some of them, scaled."""

    X: Shaped[np.ndarray, "N D"]
    y: Shaped[np.ndarray, " N"]
    rows: Int[np.ndarray, " n"]  # numbers of the training rows
    scalers: tuple[Scaler, Scaler]  # of inputs and targets
    y_variance: float  # of the scaled targets
    file: _WatchedFile

    def __call__(self, index: Int[np.ndarray, "*B"]) -> tuple[Float[np.ndarray, "*B D"], Float[np.ndarray, "*B"]]:
        X, y = gather(self.X, self.y, self.rows[index])
        self.file.check()
        for scaler, array in zip(self.scalers, (X, y)):
            scaler.transform(array)
        return X, y
