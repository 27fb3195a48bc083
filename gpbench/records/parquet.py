"""Parquet files of texts in which a flipped bit is an error, whichever byte it is in: a digest of the footer, which has
no checksum of its own, stands before it, where other readers pass over it."""

import hashlib
import mmap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits, pages
from gpbench.errors import require

if TYPE_CHECKING:
    import pyarrow as pa

_LEVEL = 16  # level of zstd's compression: 3 % smaller than at 12; 0.4 ms a record
_MARK = b"gpbench:"
_END = 8  # bytes of the length of the footer, and of Parquet's own mark


def column(values: list[Any]) -> "pa.Array":
    """A column of whole numbers, or of texts."""
    import pyarrow as pa

    if {type(value) for value in values} == {int}:
        return pa.array(values, pa.int64())
    return pa.array([None if value is None else str(value) for value in values], pa.string()).dictionary_encode()


def content(table: "pa.Table", dictionaries: Sequence[str]) -> bytes:
    """The bytes of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    options = {"compression": "zstd", "compression_level": _LEVEL, "write_statistics": False}
    pq.write_table(table, file, write_page_checksum=True, use_dictionary=[*dictionaries], **options)
    whole: bytes = file.getvalue().to_pybytes()
    start = len(whole) - _END - int.from_bytes(whole[-_END:-4], "little")
    return whole[:start] + _MARK + hashlib.sha256(whole[start:]).digest() + whole[start:]


def read(path: Path, names: Sequence[str], dictionaries: Sequence[str]) -> "pa.Table":
    """Columns of a file, all of them checked.  Raises ValueError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        _check_footer(path)
        with open(path, "rb") as content:  # pyarrow takes no path that is not UTF-8
            facts = pq.read_metadata(content)
            limits.check(facts.num_rows, limits.ROWS, "it has", "records")
            size = pages.unpacked_size(mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ), facts)
            limits.check(size, limits.most_unpacked(path.stat().st_size, limits.COLLECTION), "it unpacks to")
            texts = {facts.schema.column(i).path for i in range(facts.num_columns)} & {*dictionaries}
            options = {"page_checksum_verification": True, "pre_buffer": False, "read_dictionary": [*texts]}
            with pq.ParquetFile(content, metadata=facts, **options) as file:
                # without its threads, which gain nothing here and have once ended a process by abort (code 134) at exit
                table = file.read([name for name in file.schema_arrow.names if name in names], use_threads=False)
                table.validate(full=True)
                return table
    except (OSError, ValueError, LookupError, RecursionError, pa.ArrowException) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error).partition("\n")[0]
        raise ValueError(reason) from error


def values(column: "pa.ChunkedArray") -> list[Any]:
    """The texts of a column; equal ones are one object, since a few bytes of a file stand for any number of them."""
    whole = column.combine_chunks()
    if not hasattr(whole, "dictionary"):
        return list(whole.to_pylist())
    known = [*whole.dictionary.to_pylist(), None]
    return [known[-1 if index is None else index] for index in whole.indices.to_pylist()]


def check_texts(column: "pa.ChunkedArray", most: int) -> None:
    """Raises ValueError for texts of more bytes than these in all rows, of which each is parsed."""
    import pyarrow.compute as pc

    whole = column.combine_chunks()
    if hasattr(whole, "dictionary"):
        size = pc.sum(pc.binary_length(whole.dictionary).take(whole.indices)).as_py() or 0
        limits.check(size, most, "a column unpacks to")


def _check_footer(path: Path) -> None:
    """Raises ValueError for a pipe, and where the file has a digest of its footer, and the footer is another one."""
    with limits.opened(path) as file:
        whole = file.seek(0, 2)
        file.seek(max(0, whole - _END))
        length = _END + int.from_bytes(file.read(_END)[:4], "little")
        digest = hashlib.sha256().digest_size
        if whole < length + len(_MARK) + digest:
            return  # too short to have one: Parquet says what is wrong with it
        file.seek(whole - length - digest - len(_MARK))
        mark, expected, footer = file.read(len(_MARK)), file.read(digest), file.read()
    is_same = mark != _MARK or hashlib.sha256(footer).digest() == expected
    require(is_same, "the checksum of its footer differs", ValueError)
