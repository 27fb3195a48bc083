"""Rows of text from files that are no delimited text: Excel sheets, Parquet, Feather and ARFF."""

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpbench.data import archives
from gpbench.errors import DataError, GpbenchError

if TYPE_CHECKING:
    import pyarrow as pa


def text_of(cell: Any) -> str:
    """Writes a cell as a csv file has it: "" for none, 1 and 0 for true and false, numbers with all their digits."""
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Makes a DataError of every error of a parser: it raises of any kind, and the content is the user's."""
    try:
        yield
    except GpbenchError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"not a readable {kind}: {reason or type(error).__name__}") from None


def parquet(content: bytes) -> tuple[list[list[str]], frozenset[str]]:
    """Reads a Parquet file: header and rows, and the names of columns that hold the index of a pandas DataFrame."""
    import pyarrow.parquet as pq

    with reading("Parquet file"):
        file = pq.ParquetFile(io.BytesIO(content), pre_buffer=False)
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        archives.require_size(sum(group.total_byte_size for group in groups))
        archives.require_size(8 * file.metadata.num_rows * file.metadata.num_columns)  # equal cells take no space
        return _arrow(file.read(use_threads=False))


def feather(content: bytes) -> tuple[list[list[str]], frozenset[str]]:
    """Reads a Feather file, as `parquet` does."""
    import pyarrow as pa

    with reading("Feather file"), pa.ipc.open_file(io.BytesIO(content)) as file:
        batches = []
        for i in range(file.num_record_batches):
            batches.append(file.get_batch(i))
            archives.require_size(sum(batch.nbytes for batch in batches))
        return _arrow(pa.Table.from_batches(batches, schema=file.schema))


def _arrow(table: "pa.Table") -> tuple[list[list[str]], frozenset[str]]:
    """Header and rows, and the columns that pandas says are the index."""
    columns = [[text_of(cell) for cell in column.to_pylist()] for column in table.columns]
    metadata = json.loads((table.schema.metadata or {}).get(b"pandas", b"{}"))
    index = frozenset(name for name in metadata.get("index_columns", []) if isinstance(name, str))
    return [list(table.column_names), *map(list, zip(*columns))], index


def arff(text: str) -> tuple[list[list[str]], frozenset[str]]:
    """Header and rows of an ARFF file, and its nominal columns; SciPy reads neither strings nor sparse rows."""
    from scipy.io import arff

    with reading("ARFF file of numbers and nominal values in ASCII"):
        data, meta = arff.loadarff(io.StringIO(text))
        # whole numbers without a point, as codes and columns that count the rows have them
        plain = lambda value: str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
        rows = [[cell.decode() if isinstance(cell, bytes) else plain(float(cell)) for cell in row] for row in data]
    cleaned = [[cell if cell not in ("?", "nan") else "" for cell in row] for row in rows]
    nominal = frozenset(name for name, kind in zip(meta.names(), meta.types()) if kind == "nominal")
    return [list(meta.names()), *cleaned], nominal


def excel(content: bytes, sheet: str | None) -> list[list[str]]:
    """Reads the rows of a sheet, by default the first, that are not blank."""
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            "an Excel file needs openpyxl: pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
        ) from None
    with reading("Excel file"):
        archives.require_size(sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        table = [list(map(text_of, row)) for row in book[sheet or book.sheetnames[0]].values]
    return [row for row in table if any(row)]
