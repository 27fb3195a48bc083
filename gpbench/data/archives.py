"""Contents of archives and compressed files.

Nothing is ever extracted to disk, so a member's path can do no harm; content of more than `LARGEST` bytes is refused
before it is in memory.
"""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import numpy as np

from gpbench import limits, npz
from gpbench.errors import DataError

LARGEST = limits.DATA
# RuntimeError: encrypted, or of a compression that zipfile does not know
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)
_COMPRESSED: Mapping[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
"""By the first bytes."""


@contextlib.contextmanager
def parsing(kind: str, *more: type[Exception]) -> Iterator[None]:
    """Makes a DataError of one line of every error of a parser: which one it is depends on the damaged byte.

    Args:
        kind: the expected content, for the message, as in "an idx file".
        more: errors that only this parser raises.

    Returns:
        A context, or a decorator of a reader.
    """
    errors: tuple[type[Exception], ...] = (ArithmeticError, AttributeError, Warning, csv.Error, *npz.damaged(), *more)
    try:
        yield
    except errors as error:
        raise DataError(f"not {kind}: {npz.reason(error)}") from None


def require_size(size: int) -> None:
    """Refuses a table of more than `LARGEST` bytes.  Raises DataError.

    Args:
        size: bytes of its cells.
    """
    try:
        limits.check(size, LARGEST, "the table unpacks to")
    except ValueError as error:
        raise DataError(str(error)) from None


def require_dense(cells: int, size: int) -> None:
    """Refuses a sparse table of far more cells than its file has bytes.  Raises DataError."""
    try:
        limits.check(cells, 10**7 + 20 * size, f"a sparse file of {size:,} bytes has", "cells")
    except ValueError as error:
        raise DataError(str(error)) from None


def member(content: bytes, name: str) -> bytes:
    """Returns the content of a member of a zip or tar archive.

    Args:
        content: the archive.
        name: the path of the member in it.

    Raises:
        DataError: the member is absent, damaged or too large.
    """
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as stream:
                return _Limited(stream, name, content).read()
        limited = _Limited(_opened(content), "the archive", content)
        with tarfile.open(fileobj=limited, mode="r|") as tar:  # from its beginning to the member, and never back
            for entry in tar:
                if entry.size > LARGEST:  # of holes, perhaps
                    raise _too_large(entry.name, content, f"{entry.size:,}")
                if entry.name == name and (extracted := tar.extractfile(entry)) is not None:
                    return extracted.read()
        raise KeyError(name)
    except KeyError:
        raise _no_member(name) from None
    except _DAMAGED as error:
        raise DataError(f"the archive is damaged: {error}") from None


def lines(content: bytes, name: str) -> Iterator[bytes]:
    """Yields the lines of a member of a zip archive, unpacked as they are read.

    Args:
        content: the archive.
        name: the path of the member in it.

    Raises:
        DataError: the member is absent, damaged or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(name) as packed:
            yield from io.BufferedReader(_Limited(packed, name, content), 2**16)
    except KeyError:
        raise _no_member(name) from None
    except _DAMAGED as error:
        raise DataError(f"the archive is damaged: {error}") from None


def unzipped(content: bytes) -> bytes:
    """Returns the content of a gzip file, or the content itself where it is none.

    Args:
        content: the file.

    Raises:
        DataError: the file is damaged, or unpacks to too much.
    """
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return _Limited(_opened(content), "the gzip file", content).read()
    except _DAMAGED as error:
        raise DataError(f"the gzip file is damaged: {error}") from None


def is_packed(content: bytes) -> bool:
    """Recognises a file that is compressed by gzip, bzip2 or xz.

    Args:
        content: the file.
    """
    return content.startswith((*_COMPRESSED,))


def decompressed(content: bytes) -> io.BufferedReader:
    """Opens a file, compressed by gzip, bzip2 or xz or not at all, which is unpacked as it is read.

    Args:
        content: the file.

    Returns:
        The open file, whose reads raise DataError beyond `LARGEST` bytes.
    """
    return io.BufferedReader(_Limited(_opened(content), "the file", content), 2**16)


def arrays(content: bytes, *names: str, optional: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """Returns arrays of an npz file by name.

    Args:
        content: the file.
        names: names of arrays that must be there.
        optional: names of arrays that may be.

    Raises:
        DataError: an array is absent, damaged, or of Python's objects, or the file holds too much.
    """
    if content.startswith(b"\x93NUMPY"):
        raise DataError("an array (.npy), not an archive (.npz): write one with numpy.savez(FILE, X=X, y=y)")
    with parsing("the expected npz file"), npz.opened(content, LARGEST) as file:
        if absent := [name for name in names if name not in file]:
            raise DataError(f"no array {absent[0]!r}; the archive has {', '.join(map(repr, file)) or 'none'}")
        return {name: file[name] for name in (*names, *(name for name in optional if name in file))}


def check_matlab(content: bytes) -> None:
    """Checks that the compressed elements of a MATLAB 5 file do not hold too much.

    A header of 128 bytes; then elements, each with its kind and its length, of which kind 15 is compressed by zlib.

    Args:
        content: the file.

    Raises:
        DataError: the elements hold more than `LARGEST` bytes.
    """
    size, start = len(content), 128
    while start + 8 <= len(content):
        kind, length = np.frombuffer(content, "<u4" if content[126:128] == b"IM" else ">u4", 2, start).tolist()
        if kind == 15:
            packed, stream = content[start + 8 : start + 8 + length], zlib.decompressobj()
            while packed and not stream.eof:
                size += len(stream.decompress(packed, 2**20))
                packed = stream.unconsumed_tail
                if size > LARGEST:
                    raise _too_large("the MATLAB file", content)
        start += 8 + length


class _Limited(io.RawIOBase):
    """A stream that raises DataError beyond `LARGEST` bytes, whatever size its file states."""

    def __init__(self, stream: IO[bytes] | Any, name: str, packed: bytes):
        self._stream, self._name, self._packed, self._size = stream, name, packed, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        content = self._stream.read(LARGEST + 1 - self._size if size < 0 else size)
        self._size += len(content)
        if self._size > LARGEST:
            raise _too_large(self._name, self._packed)
        return content

    def readinto(self, buffer: Any) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _opened(content: bytes) -> IO[bytes] | Any:
    opens = next((opens for start, opens in _COMPRESSED.items() if content.startswith(start)), None)
    return opens(io.BytesIO(content)) if opens else io.BytesIO(content)


def _too_large(name: str, packed: bytes, size: str | None = None) -> DataError:
    holds = f"{size} bytes" if size else f"more than {LARGEST:,} bytes"
    limit = f", more than the {LARGEST:,} that are read" if size else ""
    return DataError(f"{name} of {len(packed):,} bytes unpacks to {holds}{limit}")


def _no_member(name: str) -> DataError:
    return DataError(f"the archive has no member {name!r}")
