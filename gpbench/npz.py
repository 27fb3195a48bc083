"""Reading of .npz files that somebody else may have made: no pickles, no more than a limit, and one kind of error.

Imports NumPy only when a file is opened.
"""

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits

if TYPE_CHECKING:
    from numpy.lib.npyio import NpzFile


@contextlib.contextmanager
def opened(file: Path | bytes, most: int) -> "Iterator[NpzFile]":
    """Opens a file of arrays.

    Args:
        file: The file, or its content.
        most: Largest size of all its arrays, in bytes.

    Returns:
        A context with the arrays by name, each of which is read when it is asked for.

    Raises:
        ValueError: The file cannot be read, is damaged, has Python's objects, or unpacks to more; also for such an
            error of an array that is read inside.  Its text is one line.
    """
    import numpy as np

    try:
        with io.BytesIO(file) if isinstance(file, bytes) else open(file, "rb") as stream:
            with zipfile.ZipFile(stream) as archive:  # which reads no more of a member than it says here
                size = sum(member.file_size for member in archive.infolist())
            limits.check(size, most, f"a file of {stream.seek(0, io.SEEK_END):,} bytes unpacks to")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as arrays:
                yield arrays
    except damaged() as error:
        raise ValueError(reason(error)) from error


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
