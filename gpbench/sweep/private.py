"""A folder that is the user's alone, for the jobs that submitit keeps in files of Python's pickle.  A pickle is a
program: who can write one that another user's process reads can run anything there."""

import io
import os
import pickle
import stat
from pathlib import Path
from typing import Any

from gpbench.errors import StorageError, require


def make_folder(folder: Path) -> None:
    """Makes a folder with mode 700.  Raises StorageError: it cannot be made, or others could write into it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        _check_folder(folder)
    except OSError as error:
        raise StorageError(
            f"cannot use the folder {folder}: {error.strerror}; name another results folder with run.results=DIR"
        ) from error


def _check_folder(folder: Path) -> None:
    """Raises StorageError unless a folder is the user's alone, and nobody else can put another one in its place."""
    own, user = folder.lstat(), os.geteuid()
    is_own = stat.S_ISDIR(own.st_mode) and own.st_uid == user and not own.st_mode & 0o077
    fault = f"{folder} must be a folder of yours with mode 700, since its files are programs"
    require(is_own, fault, StorageError)
    for above in folder.parents:
        state = above.stat()
        is_open = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX
        fault = f"others can write into {above}, and so replace the jobs of a cluster"
        mend = "chmod go-w it, or name a results folder of your own with run.results=DIR"
        require(not is_open and state.st_uid in (0, user), f"{fault}: {mend}", StorageError)


def read_result(path: Path) -> tuple[str, str]:
    """The result of a job of submitit: "success" or "error", and the text that the job returned or the traceback.
    Raises ValueError: it is anything else, or damaged; StorageError: its folder is not the user's alone."""
    _check_folder(path.parent)
    try:
        status, text = _Texts(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # pickle raises almost any on a damaged file
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not (isinstance(status, str) and isinstance(text, str)):
        raise ValueError("no texts")
    return status, text


class _Texts(pickle.Unpickler):
    """Reads texts, numbers, lists and tuples.  An object needs the import of its class, which is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Raises UnpicklingError."""
        raise pickle.UnpicklingError(f"an object of {module}.{name}")
