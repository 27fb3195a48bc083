"""Contents of archives and compressed files, in memory alone; too large ones are refused before they are unpacked."""

import bz2
import contextlib
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

from gpbench import limits, npz
from gpbench.core import memory
from gpbench.data.faults import reject
from gpbench.errors import DataError, GpbenchError, require

LARGEST = limits.DATA
# RuntimeError: encrypted, or of a compression that zipfile does not know
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
_COMPRESSED: Mapping[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""By the first bytes."""
TEXT = 57  # bytes of memory of a text, besides its characters
_LARGE = 2**30  # bytes of memory of tables that are compared with what is free
_UNPACK = "store it without compression"
_SPARSE = "leave out columns that are always 0, or save the columns in use as csv"


class Content(bytes):
    """Content that was packed in a file of `size` bytes."""

    size: int

    def __new__(cls, content: bytes, file: bytes) -> "Content":
        result = super().__new__(cls, content)
        result.size = size_of(file)
        return result


def size_of(content: bytes) -> int:
    """The bytes of the file in which content came, packed once or several times."""
    return content.size if isinstance(content, Content) else len(content)


def memory_of_rows(rows: int, cells: int) -> int:
    """The bytes of memory of rows with so many cells in all, from texts to scaled numbers, besides those of texts."""
    return 200 * rows + 48 * cells


def require_memory(needed: int, *sources: bytes) -> None:
    """Refuses a table that needs more memory than files of their sizes may have, or than is free.  Raises DataError."""
    size = sum(map(size_of, sources))
    subject, most = f"a table of {size:,} bytes", limits.memory(size, LARGEST)
    enough = f"{most:,} are the most for its size: save it as csv that is not packed, or split it"
    require(needed <= most, f"{subject} needs {needed:,} bytes of memory, and {enough}")
    require_free(needed, subject)


def require_free(needed: int, subject: str) -> None:
    """Refuses what needs more memory than is free.  Raises DataError."""
    free = (memory.free_host_memory() if needed > _LARGE else None) or needed
    amounts = f"needs {memory.amount(needed)}, and {memory.amount(free)} of memory are free"
    require(needed <= free, f"{subject} {amounts}: split it, or save it for `reader: mapped`")


@contextlib.contextmanager
def parsing(kind: str) -> Iterator[None]:
    """A context, or a decorator of a reader, that makes a DataError of a parser's errors, which may be of any kind."""
    try:
        yield
    except GpbenchError:
        raise
    except Exception as error:
        raise DataError(f"not {kind}: {npz.reason(error)}") from None


def require_dense(cells: int, size: int) -> None:
    """Refuses a sparse table of far more cells than its file has bytes.  Raises DataError."""
    limits.check(cells, 10**7 + 20 * size, f"a sparse file of {size:,} bytes has", "cells", _SPARSE, DataError)


@contextlib.contextmanager
def _unpacking(name: str = "") -> Iterator[None]:
    """Makes a DataError of every error of unpacking a file, or a member of an archive, which may be absent."""
    try:
        yield
    except KeyError:
        raise DataError(f"the archive has no member {name!r}") from None
    except _DAMAGED as error:
        fact = f"member {name!r}: the file is no archive, or is damaged ({error})"
        raise DataError(fact if name else f"the packed file is damaged: {error}") from None


def member(content: bytes, name: str) -> bytes:
    """The content of a member of a zip or tar archive.  Raises DataError: it is absent, damaged or too large."""
    with _unpacking(name):
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as packed:
                return Content(_limited(packed, name, content).read(), content)
        limited = open_decompressed(content, "the archive")
        with tarfile.open(fileobj=limited, mode="r|") as tar:  # from its beginning to the member, and never back
            for entry in tar:
                if entry.size > _most(content):  # of holes, perhaps
                    raise _too_large(entry.name, content, f"{entry.size:,}")
                if entry.name == name and (extracted := tar.extractfile(entry)) is not None:
                    return Content(extracted.read(), content)
        raise KeyError(name)


def lines(content: bytes, name: str) -> Iterator[bytes]:
    """The lines of a member of a zip archive, unpacked as they are read.  Raises DataError as `member` does."""
    with _unpacking(name), zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as packed:
        yield from _limited(packed, name, content)


def decompress(content: bytes) -> bytes:
    """The content of a file compressed by gzip, bzip2 or xz, or the content itself where it is none."""
    if not content.startswith((*_COMPRESSED,)):
        return content
    with _unpacking():
        return Content(open_decompressed(content).read(), content)


def open_decompressed(content: bytes, name: str = "the file") -> io.BufferedReader:
    """A file, compressed by gzip, bzip2 or xz or not at all, that is unpacked as it is read, up to its limit."""
    opens = next((opens for start, opens in _COMPRESSED.items() if content.startswith(start)), lambda stream: stream)
    return _limited(opens(io.BytesIO(content)), name, content)


def arrays(content: bytes, *names: str, optional: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Arrays of an npz file by name.  Raises DataError: one is absent, damaged, of objects, or too large."""
    mend = "write one with numpy.savez(FILE, X=X, y=y)"
    require(not content.startswith(b"\x93NUMPY"), f"an array (.npy), not an archive (.npz): {mend}")
    with parsing("the expected npz file"), npz.opened(content, _most(content), _UNPACK) as file:
        known = ", ".join(map(repr, file)) or "none"
        reject(f"no array {name!r}; the archive has {known}" for name in names if name not in file)
        return {name: file[name] for name in (*names, *(name for name in optional if name in file))}


def check_matlab(content: bytes) -> None:
    """Refuses compressed elements (kind 15) of a MATLAB 5 file that hold too much; its header has 128 bytes."""
    size, start, form = len(content), 128, "<II" if content[126:128] == b"IM" else ">II"
    while start + 8 <= len(content):
        kind, length = struct.unpack_from(form, content, start)
        packed, stream = content[start + 8 : start + 8 + length] if kind == 15 else b"", zlib.decompressobj()
        while packed and not stream.eof:
            size += len(stream.decompress(packed, 2**20))
            packed = stream.unconsumed_tail
            if size > _most(content):
                raise _too_large("the MATLAB file", content)
        start += 8 + length


def _limited(stream: IO[bytes] | Any, name: str, packed: bytes) -> io.BufferedReader:
    return io.BufferedReader(_Limited(stream, name, packed), 2**16)


class _Limited(io.RawIOBase):
    """A stream that raises DataError beyond the limit of its file, whatever size this states."""

    def __init__(self, stream: IO[bytes] | Any, name: str, packed: bytes):
        self._stream, self._name, self._packed, self._size = stream, name, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        self._size += len(content)
        if self._size > _most(self._packed):
            raise _too_large(self._name, self._packed)
        buffer[: len(content)] = content
        return len(content)


def _most(content: bytes) -> int:
    return limits.most_unpacked(size_of(content), LARGEST)


def _too_large(name: str, packed: bytes, size: str | None = None) -> DataError:
    most = f"{_most(packed):,}"
    holds = f"{size} bytes, more than the {most} that are read" if size else f"more than {most} bytes"
    mend = f": {_UNPACK}" if _most(packed) < LARGEST else ""
    return DataError(f"{name} of {size_of(packed):,} bytes unpacks to {holds}{mend}")
