"""Excel sheets and Parquet tables as rows of text, so that a user's table is read alike whatever holds it."""

import io
import zipfile
from typing import Any

from gpbench.data.archives import LARGEST
from gpbench.errors import DataError

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"


def is_spreadsheet(content: bytes) -> bool:
    """Whether it is an Excel file or a Parquet file, by its first bytes."""
    return content[:4] in (_PARQUET, _ZIP)


def rows(content: bytes, sheet: str | None = None) -> list[list[str]]:
    """The header and the rows below it; an empty cell is "".  Of an Excel file one sheet, by default the first.

    Raises DataError for a damaged file, an unknown sheet, a file that unpacks to too much, and without openpyxl.
    """
    return _parquet(content) if content[:4] == _PARQUET else _excel(content, sheet)


def _parquet(content: bytes) -> list[list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(content))
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        _check_size(sum(group.total_byte_size for group in groups))
        table = file.read()
        columns = [[cell_text(cell) for cell in column.to_pylist()] for column in table.columns]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {' '.join(str(error).split())}") from None
    return [list(table.column_names), *map(list, zip(*columns))]


def _excel(content: bytes, sheet: str | None) -> list[list[str]]:
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            "an Excel file needs openpyxl: pip install -c constraints.txt -e '.[excel]', or save it as csv"
        ) from None
    try:
        _check_size(sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        found = [list(map(cell_text, row)) for row in book[sheet or book.sheetnames[0]].values]
    except DataError:
        raise
    except Exception as error:  # a parser of XML raises of any kind, and the content is the user's
        raise DataError(f"not a readable Excel file: {type(error).__name__}") from None
    return [row for row in found if any(row)]


def cell_text(cell: Any) -> str:
    """A cell as a csv file would have it: whole numbers without a point, others with all their digits."""
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise DataError(f"the table unpacks to {size} bytes, and {LARGEST} is the most")
