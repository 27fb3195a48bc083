"""Rows of text from users' tables: delimited text, Excel sheets, Parquet, Feather and ARFF; and numbers in cells."""

import codecs
import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from gpbench.data import archives
from gpbench.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_PARQUET, _ZIP, _FEATHER = b"PAR1", b"PK\x03\x04", b"ARROW1"
_ARFF = re.compile(rb"(\s*%[^\n]*\n|\s)*@relation\b", re.IGNORECASE)
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the bytes with which a file begins; of two that begin alike the longer is first."""


class Cells(NamedTuple):
    """A table as text.

    Attributes:
        rows: Rows of cells, the header among them where there is one; "" is an empty cell.
        labels: Names of the columns that hold the index of a pandas DataFrame.
        nominal: Names of the columns that the file says are classes.
    """

    rows: list[list[str]]
    labels: frozenset[str] = frozenset()
    nominal: frozenset[str] = frozenset()


def has_header(content: bytes) -> bool:
    """Recognises a format whose columns always have names: Excel, Parquet, Feather or ARFF."""
    return content.startswith((_PARQUET, _ZIP, _FEATHER)) or _ARFF.match(content) is not None


def read(content: bytes, options: Mapping[str, Any], levels: int = 2) -> Cells:
    """Reads a table.

    Args:
        content: The file; text may be compressed by gzip, bzip2, xz, or be the one member of a zip archive.
        options: `delimiter` (default ","; "space" for runs of white space), `encoding` (default UTF-8, or what the
            file's byte order mark says), `comment` with which lines begin that are left out, `skip` first rows, and
            `sheet` of an Excel file (default: the first).
        levels: number of times that a packed file may be packed.

    Raises:
        DataError: The file is damaged, of another encoding, or unpacks to too much.
    """
    skip = options.get("skip", 0)
    if content.startswith(_ZIP):
        with _reading("Excel file or zip archive"):
            names = [name for name in zipfile.ZipFile(io.BytesIO(content)).namelist() if not name.endswith("/")]
        if "[Content_Types].xml" in names:
            return Cells(_excel(content, options.get("sheet"))[skip:])
        if len(names) != 1:
            raise DataError(f"a zip archive of {len(names)} files ({', '.join(names[:5])}); name one by `member`")
        return _unpacked(archives.member(content, names[0]), options, levels)
    if content.startswith(_PARQUET):
        rows, index = _parquet(content)
        return Cells(rows[skip:], index)
    if content.startswith(_FEATHER):
        rows, index = _feather(content)
        return Cells(rows[skip:], index)
    if archives.is_packed(content):
        return _unpacked(archives.decompressed(content).read(), options, levels)
    text = _decoded(content, options.get("encoding"))
    if _ARFF.match(content):
        rows, nominal = _arff(text)
        return Cells(rows[skip:], nominal=nominal)
    return Cells(list(_delimited(text, skip, options.get("delimiter", ","), options.get("comment"))))


def _unpacked(content: bytes, options: Mapping[str, Any], levels: int) -> Cells:
    """The table in a packed file.  Some archives hold themselves, and so without end."""
    if levels == 0:
        raise DataError("packed more than twice: unpack it")
    return read(content, options, levels - 1)


def text_of(cell: Any) -> str:
    """Writes a cell as a csv file has it: "" for none, 1 and 0 for true and false, numbers with all their digits."""
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


def number(cell: str) -> float | None:
    """Reads a number with a decimal point; None where the text is none.

    Unlike Python's `float` it takes no 1_000, and no whole number of which a float loses digits.
    """
    if "_" in cell or not cell.isascii():
        return None
    try:
        value = float(cell)
    except ValueError:
        return None
    if len(cell) > 15 and cell.lstrip("+-").isdigit() and math.isfinite(value) and int(cell) != value:
        return None
    return value


class Numbers:
    """Spelling of numbers and of missing cells in a table.

    Args:
        missing: A marker of missing cells, or several; "-200" is also "-200.0".
        decimal: The decimal sign.
        thousands: The sign between groups of three digits, None for none.
    """

    def __init__(self, missing: Any = None, decimal: str = ".", thousands: str | None = None):
        self._signs = (decimal, thousands)
        digits = rf"\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d*" if thousands else r"\d*"
        self._pattern = re.compile(rf"[+-]?(?:{digits})(?:{re.escape(decimal)}\d*)?(?:[eE][+-]?\d+)?")
        markers = [] if missing is None else missing if isinstance(missing, list | tuple) else [missing]
        self._markers = {str(marker).strip() for marker in markers}
        self._values = {value for marker in self._markers if (value := self.parse(marker)) is not None}

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> "Numbers":
        """The spelling that a source of a card states."""
        return cls(options.get("missing"), options.get("decimal", "."), options.get("thousands"))

    def parse(self, cell: str) -> float | None:
        """Reads a number; None where the cell is none."""
        if self._signs != (".", None):
            if not self._pattern.fullmatch(cell) and cell.lower().lstrip("+-") not in ("nan", "inf", "infinity"):
                return None
            decimal, thousands = self._signs
            cell = (cell.replace(thousands, "") if thousands else cell).replace(decimal, ".")
        return number(cell)

    def is_missing(self, cell: str) -> bool:
        """Recognises an empty cell or a marker; markers that are numbers are compared as numbers."""
        return cell in ("", *self._markers) or (bool(self._values) and self.parse(cell) in self._values)

    def plain(self, cell: str) -> str:
        """Rewrites a number with a point and without separators; other text and missing cells ("") stay."""
        if self.is_missing(cell):
            return ""
        if self._signs == (".", None) or (value := self.parse(cell)) is None:
            return cell
        return repr(value)


def _decoded(content: bytes, encoding: str | None) -> str:
    """The text of a file.  Raises DataError that names the first byte of another encoding, and its line."""
    marked = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None)
    encoding = marked or encoding or "utf-8"
    try:
        return content.decode(encoding)
    except LookupError:
        raise DataError(f"encoding: {encoding!r} is unknown; examples are utf-8, latin-1, cp1252, utf-16") from None
    except UnicodeDecodeError as error:
        if b"\0" in content[:1000]:
            raise DataError("null bytes, as UTF-16 has them; state it in the card by `encoding: utf-16`") from None
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"line {line}: byte 0x{content[error.start]:02x} is not {encoding.upper()}; state the encoding in the card,"
            " as in `encoding: latin-1`"
        ) from None


def _delimited(text: str, skip: int, delimiter: str, comment: str | None) -> Iterator[list[str]]:
    """The rows of delimited text that are not blank; line ends within quotation marks belong to their cell."""
    stream = io.StringIO(text, newline="")  # a line ends at \n, \r or \r\n, and at no form feed or U+2028
    lines: Iterable[str] = (line for number, line in enumerate(stream) if number >= skip)
    if comment:
        lines = (line for line in lines if not line.startswith(comment))
    try:
        rows = (line.split() for line in lines) if delimiter == "space" else csv.reader(lines, delimiter=delimiter)
        for row in rows:
            if any(map(str.strip, row)) or (len(row) > 1 and not delimiter.isspace()):
                yield row
    except (csv.Error, TypeError) as error:
        raise DataError(f"not a table with delimiter {delimiter!r}: {error}") from None


@contextmanager
def _reading(kind: str) -> Iterator[None]:
    """Makes a DataError of every error of a parser: it raises of any kind, and the content is the user's."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"not a readable {kind}: {reason or type(error).__name__}") from None


def _parquet(content: bytes) -> tuple[list[list[str]], frozenset[str]]:
    import pyarrow.parquet as pq

    with _reading("Parquet file"):
        file = pq.ParquetFile(io.BytesIO(content), pre_buffer=False)
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        archives.require_size(sum(group.total_byte_size for group in groups))
        archives.require_size(8 * file.metadata.num_rows * file.metadata.num_columns)  # equal cells take no space
        return _arrow(file.read(use_threads=False))


def _feather(content: bytes) -> tuple[list[list[str]], frozenset[str]]:
    import pyarrow as pa

    with _reading("Feather file"), pa.ipc.open_file(io.BytesIO(content)) as file:
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


def _arff(text: str) -> tuple[list[list[str]], frozenset[str]]:
    """Header and rows of an ARFF file, and its nominal columns; SciPy reads neither strings nor sparse rows."""
    from scipy.io import arff

    with _reading("ARFF file of numbers and nominal values"):
        data, meta = arff.loadarff(io.StringIO(text))
        # whole numbers without a point, as codes and columns that count the rows have them
        plain = lambda value: str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
        rows = [[cell.decode() if isinstance(cell, bytes) else plain(float(cell)) for cell in row] for row in data]
    cleaned = [[cell if cell not in ("?", "nan") else "" for cell in row] for row in rows]
    nominal = frozenset(name for name, kind in zip(meta.names(), meta.types()) if kind == "nominal")
    return [list(meta.names()), *cleaned], nominal


def _excel(content: bytes, sheet: str | None) -> list[list[str]]:
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            "an Excel file needs openpyxl: pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
        ) from None
    with _reading("Excel file"):
        archives.require_size(sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        table = [list(map(text_of, row)) for row in book[sheet or book.sheetnames[0]].values]
    return [row for row in table if any(row)]


def bookkeeping(header: Sequence[str], columns: Sequence[Sequence[str]], index: frozenset[str]) -> dict[int, str]:
    """Finds columns that number or label the rows, and so are no inputs unless a card keeps them.

    Args:
        header: Names of the columns, "" for none.
        columns: Their cells, stripped.
        index: Columns that hold the index of a DataFrame.

    Returns:
        The reason for each of these columns, by its position.
    """
    reasons = {}
    for i, (name, cells) in enumerate(zip(header, columns)):
        if name in index or re.fullmatch(r"__index_level_\d+__", name):
            reasons[i] = f"{name!r} is the index of a DataFrame"
        elif not name or re.fullmatch(r"Unnamed: \d+", name):
            reasons[i] = f"column {i + 1} has no name"
        elif len(cells) >= 10 and cells[0] in ("0", "1") and _counts(cells):
            reasons[i] = f"{name!r} numbers the rows"
    return reasons


def _counts(cells: Sequence[str]) -> bool:
    first = int(cells[0])
    return all(cell == str(first + i) for i, cell in enumerate(cells))
