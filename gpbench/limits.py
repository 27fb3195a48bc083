"""Limits of the files that others may bring, in bytes of what a file unpacks to, compared before the content is in
memory.  The largest records so far are a thousandth of them."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

DATA = 2**31  # a data file, and a table that is made from one
RECORD = 2**20  # record.json, or a row's record in a collection
NAMES = 1_000  # entries of one mapping or list in a record: metrics, settings, diagnostics
DEPTH = 16  # levels of a record
YAML = 2**22  # a card, and any other YAML file of a user's; gpbench's largest has 30 kB
CONFIG = 2**20  # config.yaml, or a row's configuration in a collection
CONFIG_DEPTH = 32  # levels of a configuration
TRACE = 2**28  # trace.npz with the arrays of pictures, and a row's in a collection
PREDICTIONS = 2**30  # predictions.parquet: 40 million test rows of regression
IMPORTED = 2**28  # a file of predictions of another program
IMPORTED_ROWS = 2**24  # rows of it
DOWNLOAD = 240 * 10**6  # a file from an http(s) address
SPLITS = 10_000  # splits of a split set of a card
PACKAGES = 2**20  # a list of installed packages: some ten thousand of them
STATE = 2**33  # state.npz, and a checkpoint of a group of runs
COLLECTION = 2**31  # all columns of a collection: half a million records
ROWS = 2**20  # records of a collection
CLAIM = 2**12  # a claim (`gpbench.records.locks`)

_SMALL, _RATIO = 2**26, 64  # bytes that any file may unpack to, and those for each byte of a larger one


def most_unpacked(size: int, most: int = DATA) -> int:
    """Most bytes that a packed file of this size may unpack to: a few bytes can stand for any number of them."""
    return min(most, max(_SMALL, _RATIO * size))


def memory(size: int, most: int = DATA) -> int:
    """Most bytes of memory that the table in a file of this size may need."""
    return max(3 * most_unpacked(0, most), min(4 * _RATIO * size, 16 * most))


def check(
    size: int, most: int, subject: str, unit: str = "bytes", mend: str = "", error: type[Exception] = ValueError
) -> None:
    """Raises an error where something is larger than it may be, with both sizes in its line."""
    if size > most:
        raise error(f"{subject} {size:,} {unit}, and {most:,} are the most{f': {mend}' if mend else ''}")


def opened(path: Path | str) -> BinaryIO:
    """Opens a regular file, and no pipe or device, which may have no end.  Raises ValueError, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(mode := os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise ValueError("it is a folder, and a file is needed there" if stat.S_ISDIR(mode) else "it is no regular file")


def read(path: Path | str, most: int, mend: str = "") -> bytes:
    """Reads a regular file of limited size; any other one is a ValueError."""
    with opened(path) as file:
        check(os.fstat(file.fileno()).st_size, most, "the file has", mend=mend)
        return file.read()
