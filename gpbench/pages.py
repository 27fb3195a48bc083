"""The size of a Parquet file's pages by their own headers of Thrift, since the file's footer may be forged."""

from typing import TYPE_CHECKING

from gpbench.errors import require

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_UNPACKED, _PACKED = 2, 3  # fields of a header: bytes of the page, unpacked and as it stands in the file
_END, _WHOLE, _TEXT, _STRUCTURE = 0, (4, 5, 6), 8, 12  # kinds of fields
_SIZES = {1: 0, 2: 0, 3: 1, 7: 8}  # bytes of a flag, which is in the kind, of a byte and of a real number
_DAMAGED = "it is damaged ({}): write it again"


def unpacked_size(content: "bytes | pa.Buffer", facts: "pq.FileMetaData") -> int:
    """The bytes to which all pages of a file unpack.  Raises ValueError, LookupError where a header is none."""
    content = memoryview(content).cast("B")
    groups = map(facts.row_group, range(facts.num_row_groups))
    columns = [group.column(k) for group in groups for k in range(facts.num_columns)]
    packed = sum(column.total_compressed_size for column in columns)
    require(packed <= len(content), _DAMAGED.format("its columns overlap"), ValueError)
    size = 0
    for column in (column for column in columns if column.num_values):  # of no values none is read
        start = min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
        end = start + column.total_compressed_size
        while start < end:
            header, start = _structure(content, start)
            is_sized = header[_PACKED] >= 0 and header[_UNPACKED] >= 0
            require(is_sized, _DAMAGED.format("a page has a negative size"), ValueError)
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
        else:
            require(kind in _SIZES, _DAMAGED.format("a page has no header"), ValueError)
            start += _SIZES[kind]
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
