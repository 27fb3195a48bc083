"""Tables in Parquet and Feather files, whose sizes are known before anything is unpacked."""

import json
import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gpbench import pages
from gpbench.data import archives
from gpbench.data.lines import Cells, of_rows, text_of
from gpbench.errors import listed, require

_MAGIC = 8  # bytes before the messages of a Feather file
_TEXTS = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")  # types of texts


@archives.parsing("a readable Parquet file")
def parquet(content: bytes, skip: int | Sequence[int]) -> Cells:
    """Reads a Parquet file: header and rows, and the names of columns that hold the index of a pandas DataFrame."""
    return _cells(content, *_parquet(content), skip)


@archives.parsing("a readable Parquet file")
def check_parquet(content: bytes) -> int:
    """The rows of a Parquet file.  Raises DataError for columns without numbers or texts, and for more than memory."""
    table, needed, notes = _parquet(content)
    require(not notes, f"columns {''.join(notes)}")
    for chunk in (chunk for column in table.columns for chunk in column.chunks if _is_text(column.type)):
        needed += pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
    archives.require_memory(needed, content)
    return int(table.num_rows)


def _is_text(kind: pa.DataType) -> bool:
    return str(getattr(kind, "value_type", kind)) in _TEXTS


def _parquet(content: bytes) -> tuple[pa.Table, int, tuple[str, ...]]:
    """The columns of numbers and texts, the memory that they need without their texts, and what is said of others."""
    source = pa.BufferReader(content)
    facts = pq.read_metadata(source)
    flat, notes = _flat(schema := facts.schema.to_arrow_schema())
    size = pages.unpacked_size(content, facts)
    kinds = {name: kind for i, (name, kind) in enumerate(zip(schema.names, schema.types)) if i in flat}
    size += facts.num_rows * sum(t.byte_width for t in kinds.values() if pa.types.is_fixed_size_binary(t))
    needed = _require(content, facts.num_rows, len(flat), size)
    texts = [name for name, kind in kinds.items() if _is_text(kind)]  # of which equal ones take no space
    with pq.ParquetFile(source, metadata=facts, pre_buffer=False, read_dictionary=texts) as file:
        return file.read([*kinds], use_threads=False), needed, notes


@archives.parsing("a readable Feather file")
def feather(content: bytes, skip: int | Sequence[int]) -> Cells:
    """Reads a Feather file, as `parquet` does: as a stream, so that no message is read but those that are counted."""
    messages = pa.py_buffer(content)[_MAGIC:]
    flat, notes = _flat(pa.ipc.open_stream(messages).schema)
    sizes = [_sizes(message) for message in pa.ipc.MessageReader.open_stream(messages)]
    needed = _require(content, sum(rows for rows, _ in sizes), len(flat), sum(size for _, size in sizes))
    options = pa.ipc.IpcReadOptions(included_fields=flat, use_threads=False)
    table = pa.ipc.open_stream(messages, options=options).read_all()
    table.validate(full=True)
    return _cells(content, table, needed, notes, skip)


def _flat(schema: pa.Schema) -> tuple[list[int], tuple[str, ...]]:
    """The numbers of the columns of which a cell is a number or a text, and what is said of the others."""
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in schema.types]
    is_flat = [
        not (pa.types.is_nested(kind) or pa.types.is_run_end_encoded(kind) or isinstance(kind, pa.BaseExtensionType))
        for kind in kinds
    ]
    others = [f"{name} ({str(kind)[:40]})" for name, kind, keep in zip(schema.names, kinds, is_flat) if not keep]
    note = f"left out, since a cell is no number or text: {listed(others)}; make plain columns of them"
    require(any(is_flat), f"no column is of numbers or texts: {listed(others)}")
    return [i for i, keep in enumerate(is_flat) if keep], (note,) if others else ()


def _require(content: bytes, rows: int, columns: int, unpacked: int) -> int:
    """The bytes of memory of a table without its texts.  Raises DataError where they are too many."""
    needed = archives.memory_of_rows(rows, rows * columns) + 4 * unpacked
    archives.require_memory(needed, content)
    return needed


def _sizes(message: pa.ipc.Message) -> tuple[int, int]:
    """The rows of a message of Arrow's, and the bytes that its buffers unpack to."""
    if message.type not in ("dictionary", "record batch"):
        return 0, 0
    content, is_batch = bytes(message.metadata), message.type == "record batch"
    read = lambda form, position: struct.unpack_from(form, content, position)[0]

    def position(table: int, field: int) -> int:
        """The position of a field of a table of FlatBuffers; 0 where the table has none."""
        fields = table - read("<i", table)
        offset = read("<H", fields + 4 + 2 * field) if 4 + 2 * field < read("<H", fields) else 0
        return table + offset if offset else 0

    def target(position: int) -> int:
        return position + read("<I", position)

    batch = target(position(target(0), 2))
    batch = batch if is_batch else target(position(batch, 1))
    rows = read("<q", length) if (length := position(batch, 0)) else 0
    buffers = target(position(batch, 2))
    places = [*struct.iter_unpack("<qq", content[buffers + 4 : buffers + 4 + 16 * read("<I", buffers)])]
    size = sum(length for _, length in places)
    if position(batch, 3):  # compressed: each buffer begins with its size, or -1 where it is not
        starts = [struct.unpack_from("<q", message.body, start)[0] if length else 0 for start, length in places]
        size = sum(length - 8 if start < 0 else start for start, (_, length) in zip(starts, places))
    return (rows, size) if is_batch else (0, size + archives.TEXT * rows)


def _cells(content: bytes, table: pa.Table, needed: int, notes: tuple[str, ...], skip: int | Sequence[int]) -> Cells:
    """Header and rows, and the columns that pandas says are the index."""
    columns: list[list[str]] = [[] for _ in table.columns]
    for cells, column in zip(columns, table.columns):
        for chunk in column.chunks:
            chunk = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
            needed += archives.TEXT * len(chunk.dictionary)
            archives.require_memory(needed, content)
            texts = [*map(text_of, chunk.dictionary.to_pylist()), ""]
            rows = chunk.indices.cast("int64").fill_null(len(texts) - 1).to_numpy()
            needed += int(np.bincount(rows, minlength=len(texts)) @ [*map(len, texts)])
            archives.require_memory(needed, content)
            cells += [texts[row] for row in rows.tolist()]
    metadata = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = frozenset(name for name in metadata.get("index_columns", []) if isinstance(name, str))
    table_rows = [list(table.column_names), *map(list, zip(*columns))]
    return of_rows(table_rows, skip, is_sheet=False)._replace(labels=index, notes=notes)
