"""Parquet files that never mislead: a flipped bit is an error, whichever byte it is in.

Parquet's own checksums are those of pages, and nothing covers the footer, which has names, types and places.  Its
digest stands before it, where other readers pass over it.  A file without either is read without a check.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpbench.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

_MARK = b"gpbench:"
_END = 8
"""Bytes of the length of the footer, and of Parquet's own mark."""


def content(table: "pa.Table") -> bytes:
    """The file of a table, with checksums."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    whole = file.getvalue().to_pybytes()
    start = len(whole) - _END - int.from_bytes(whole[-_END:-4], "little")
    return whole[:start] + _MARK + hashlib.sha256(whole[start:]).digest() + whole[start:]


def read(path: Path, *, names: Sequence[str] = (), without: Sequence[str] = ()) -> "pa.Table":
    """The columns of these names, or all but those `without`.  Raises ConfigError for a file that cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        _check_footer(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            there = file.schema_arrow.names
            table = file.read([name for name in there if (name in names if names else name not in without)])
            table.validate(full=True)
            return table
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error).partition("\n")[0]
        raise ConfigError(f"cannot read {path} ({why}); `gpbench collect DIR --out {path}` makes one") from error


def _check_footer(path: Path) -> None:
    with open(path, "rb") as file:
        whole = file.seek(0, 2)
        file.seek(max(0, whole - _END))
        length = _END + int.from_bytes(file.read(_END)[:4], "little")
        digest = hashlib.sha256().digest_size
        if whole < length + len(_MARK) + digest:
            return  # too short to have one: Parquet says what is wrong with it
        file.seek(whole - length - digest - len(_MARK))
        mark, expected, footer = file.read(len(_MARK)), file.read(digest), file.read()
    if mark == _MARK and hashlib.sha256(footer).digest() != expected:
        raise ValueError("the checksum of its footer differs")
