"""The size of a Parquet file's pages by their own headers: its footer, which says it too, may be forged.

A header is a structure of Thrift's compact protocol, of numbers, texts and structures.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_UNPACKED, _PACKED = 2, 3  # fields of a header: bytes of the page, unpacked and as it stands in the file
_END, _FLAGS, _BYTE, _WHOLE, _REAL, _TEXT, _STRUCTURE = 0, (1, 2), 3, (4, 5, 6), 7, 8, 12  # kinds of fields
_DAMAGED = "it is damaged ({}): write it again"


def unpacked_size(content: "bytes | pa.Buffer", facts: "pq.FileMetaData") -> int:
    """The bytes to which all pages of a file unpack.  Raises ValueError, LookupError where a header is none."""
    content = memoryview(content).cast("B")
    groups = map(facts.row_group, range(facts.num_row_groups))
    columns = [group.column(k) for group in groups for k in range(facts.num_columns)]
    if sum(column.total_compressed_size for column in columns) > len(content):
        raise ValueError(_DAMAGED.format("its columns overlap"))
    size = 0
    for column in (column for column in columns if column.num_values):  # of no values none is read
        start = min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
        end = start + column.total_compressed_size
        while start < end:
            header, start = _structure(content, start)
            if header[_PACKED] < 0 or header[_UNPACKED] < 0:
                raise ValueError(_DAMAGED.format("a page has a negative size"))
            start += header[_PACKED]
            size += header[_UNPACKED]
    return size


def _structure(content: memoryview, start: int) -> tuple[dict[int, int], int]:
    """The whole numbers of a structure by their fields, and where it ends."""
    numbers: dict[int, int] = {}
    field = 0
    while (head := content[start]) != _END:
        start += 1
        kind, step = head & 15, head >> 4
        if step:
            field += step
        else:
            field, start = _number(content, start)
        if kind in _WHOLE:
            numbers[field], start = _number(content, start)
        elif kind == _STRUCTURE:
            _, start = _structure(content, start)
        elif kind == _TEXT:
            length, start = _varint(content, start)
            start += length
        elif kind in (*_FLAGS, _BYTE, _REAL):
            start += {_BYTE: 1, _REAL: 8}.get(kind, 0)
        else:
            raise ValueError(_DAMAGED.format("a page has no header"))
    return numbers, start + 1


def _number(content: memoryview, start: int) -> tuple[int, int]:
    value, start = _varint(content, start)
    return (value >> 1) ^ -(value & 1), start


def _varint(content: memoryview, start: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        byte = content[start]
        start += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, start
    raise ValueError(_DAMAGED.format("a number has more than ten bytes"))
