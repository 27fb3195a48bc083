"""Files that are complete or as they were: written under another name, and renamed into place."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpbench.errors import StorageError, failure


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that is written beside, with its folder, and renamed into place when it is complete.  Raises OSError."""
    beside = path.with_name(f".{path.name[:60]}.{os.getpid()}.tmp")  # of a name that may be as long as names can be
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Writes a `whole_file`."""
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def output(path: Path) -> Iterator[IO[bytes]]:
    """A file that the user names: complete or as it was; a link stays one, and a device or a pipe is written to."""
    try:
        is_stream = path.exists() and not path.is_file()
        with open(path, "wb") if is_stream else whole_file(Path(os.path.realpath(path))) as file:
            yield file
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StorageError:
    """The error of a file that a user names."""
    return StorageError(f"cannot write {path}: {failure(error, 'name another file')}")
