"""Reading of .npz files that somebody else may have made: no pickles, a limit, and one kind of error."""

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits

if TYPE_CHECKING:
    import numpy as np
    from numpy.lib.npyio import NpzFile


@contextlib.contextmanager
def opened(file: Path | bytes, most: int, mend: str = "") -> "Iterator[NpzFile]":
    """The arrays of a file by name, read when asked for; any fault of the file is a ValueError of one line."""
    import numpy as np

    try:
        with io.BytesIO(file) if isinstance(file, bytes) else open(file, "rb") as stream:
            with zipfile.ZipFile(stream) as archive:  # which reads no more of a member than it says here
                size = sum(member.file_size for member in archive.infolist())
            limits.check(size, most, f"a file of {stream.seek(0, io.SEEK_END):,} bytes unpacks to", mend=mend)
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as arrays:
                yield arrays
    except damaged() as error:
        raise ValueError(reason(error)) from error


def headers(content: bytes) -> "dict[str, tuple[tuple[int, ...], np.dtype]]":
    """The shape and the type of each array of a file, of which none is read.  Raises ValueError as `opened` does."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = {}
            for name in archive.namelist():
                with archive.open(name) as stream:
                    shape, _, dtype = header(stream)
                entries[name.removesuffix(".npy")] = (shape, dtype)
            return entries
    except damaged() as error:
        raise ValueError(reason(error)) from error


def header(stream: Any) -> "tuple[tuple[int, ...], bool, np.dtype]":
    """The shape of an array, whether it is in the order of Fortran, and its type; the numbers follow in the stream."""
    from numpy.lib import format

    version = format.read_magic(stream)
    return (format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0)(stream)


def reason(error: Exception) -> str:
    """The text of an error of a parser in one line, without end of a long one; its type where it has none."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def damaged() -> tuple[type[Exception], ...]:
    """The errors of `numpy.load` and of its archives' arrays on a damaged file: which one depends on the byte."""
    import struct
    import tokenize
    import zlib

    arrays: tuple[Any, ...] = (OSError, LookupError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError)
    headers = (SyntaxError, tokenize.TokenError)
    return (*arrays, *headers, struct.error, zlib.error, zipfile.BadZipFile, MemoryError)
