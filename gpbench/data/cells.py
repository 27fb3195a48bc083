"""Rows of text from users' tables: delimited text, workbooks, Parquet, Feather and ARFF; and numbers in cells."""

import codecs
import importlib.util
import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from gpbench import limits
from gpbench.data import archives, arff
from gpbench.data.faults import SpellingError
from gpbench.data.lines import Cells, delimited, of_rows
from gpbench.errors import DataError, listed, require

_ZIP, _OLD_EXCEL, _PARQUET, _FEATHER = b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1", b"ARROW1"
_OTHERS = {
    b"FEA1": ("a Feather file of version 1: write it again with a newer package", ""),
    b"\xff\xff\xff\xff": ("a stream of Arrow: write a Feather file", ""),
    b"\x89HDF": ("an HDF5 file: save the table as csv or Parquet", ""),
    b"SQLite format 3": ("a database: save the table as csv or Parquet", ""),
    b"%PDF": ("a PDF file: save the table as csv", ""),
    b"\x93NUMPY": ("an array of NumPy (.npy)", "read it by `reader: mapped`"),
}
"""Forms that are not read, by the bytes with which a file begins, and what to do."""
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the bytes with which a file begins; of two that begin alike the longer is first."""
_LONG = 2**24  # bytes of plain text whose memory is counted


def read(content: bytes, options: Mapping[str, Any], levels: int = 2) -> Cells:
    """Reads a table; some archives hold themselves, and so `levels` of packed files are unpacked."""
    skip, delimiter = options.get("skip", 0), options.get("delimiter", ",")
    if other := next((text for start, text in _OTHERS.items() if content.startswith(start)), None):
        raise SpellingError(*other)
    if content.startswith((_PARQUET, _FEATHER)):
        from gpbench.data import arrow  # which takes long to import

        return (arrow.parquet if content.startswith(_PARQUET) else arrow.feather)(content, skip)
    if content.startswith(_OLD_EXCEL):
        return _workbook(content, options.get("sheet"), skip)
    unpacked = archives.decompress(content)
    if content.startswith(_ZIP):
        with archives.parsing("a readable workbook or zip archive"):
            names = [name for name in zipfile.ZipFile(io.BytesIO(content)).namelist() if not name.endswith("/")]
        if not {"[Content_Types].xml", "META-INF/manifest.xml"}.isdisjoint(names):
            return _workbook(content, options.get("sheet"), skip)
        if len(names) != 1:
            raise SpellingError(f"a zip archive of {len(names)} files ({', '.join(names[:5])})", "name one by `member`")
        unpacked = archives.member(content, names[0])
    if unpacked is not content:
        require(levels, "packed more than twice: unpack it")
        return read(unpacked, options, levels - 1)
    if archives.size_of(content) < len(content) or len(content) > _LONG:
        archives.require_memory(6 * len(content), content)  # bytes, text, and its stream
        marks = b",;\t| \r\n" + (b"" if delimiter == "space" else delimiter.encode())
        is_text = content.translate(bytes(byte not in marks for byte in range(256)))
        needed = archives.memory_of_rows(content.count(b"\n") + content.count(b"\r"), is_text.count(b"\0"))
        needed += archives.TEXT * is_text.count(b"\0\1\1")  # Python holds texts of one character once
        archives.require_memory(needed + 6 * len(content), content)
    text = _decoded(content, options.get("encoding"))
    return arff.read(text, skip) if arff.is_arff(text, skip) else delimited(text, skip, delimiter, options)


def number(cell: str) -> float | None:
    """Reads a number with a decimal point; None for other text, as 1_000, and for digits that a float loses."""
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
    """Spelling of numbers and of missing cells in a table."""

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
        value = None if self._signs == (".", None) else self.parse(cell)
        return "" if self.is_missing(cell) else cell if value is None else repr(value)


DECIMAL_POINT = Numbers()
"""The spelling of a table whose card states none: a decimal point, and only empty cells are missing."""


def _decoded(content: bytes, encoding: str | None) -> str:
    """The text of a file.  Raises DataError that names the first byte of another encoding, and its line."""
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), None) or encoding or "utf-8"
    try:
        if encoding == "utf-8" and 2 * content.count(b"\0", 0, 1000) >= max(1, len(content[:1000]) - 1):
            raise UnicodeError
        return content.decode(encoding)
    except LookupError:
        raise DataError(f"encoding: {encoding!r} is unknown; examples are utf-8, latin-1, cp1252, utf-16") from None
    except UnicodeError as error:
        start = getattr(error, "start", 0)
        line = content[:start].count(b"\n") + 1
        fact = f"line {line}: byte 0x{content[start]:02x} is not {encoding.upper()}"
        mend = "state the encoding in the card, as in `encoding: latin-1`"
        if b"\0" in content[:1000]:
            order = "le" if content[1:2] == b"\0" else "be"
            fact, mend = "null bytes, as UTF-16 has them", f"state it in the card by `encoding: utf-16-{order}`"
        raise SpellingError(fact, mend) from None


def _workbook(content: bytes, sheet: str | None, skip: int | Sequence[int]) -> Cells:
    """Reads the rows of a sheet, by default the first."""
    mend = "pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
    require(importlib.util.find_spec("python_calamine"), f"a workbook needs python-calamine: {mend}")
    if zipfile.is_zipfile(io.BytesIO(content)):
        with archives.parsing("a readable workbook"), zipfile.ZipFile(io.BytesIO(content)) as archive:
            archives.require_memory(4 * sum(member.file_size for member in archive.infolist()), content)
    most = limits.memory(archives.size_of(content), archives.LARGEST)
    command = [sys.executable, "-P", "-m", "gpbench.data.workbook", str(most), sheet or ""]
    modules = os.pathsep.join(filter(None, sys.path))  # with -P no others, which may lie beside the table
    ended = subprocess.run(command, input=content, capture_output=True, env={**os.environ, "PYTHONPATH": modules})
    if ended.returncode == -signal.SIGABRT or b"MemoryError" in ended.stderr:
        archives.require_memory(most + 1, content)
    require(ended.returncode >= 0, f"not a readable workbook: its reader ended by signal {-ended.returncode}")
    if ended.returncode:
        line = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise DataError(f"not a readable workbook: {line.rpartition(': ')[2][:200]}")
    rows, cells = ended.stdout.count(b"\n"), ended.stdout.count(b'"') // 2
    archives.require_memory(archives.memory_of_rows(rows, cells) + archives.TEXT * cells + len(ended.stdout), content)
    facts, *table = map(json.loads, ended.stdout.splitlines())
    names = facts["sheets"]
    require(sheet is None or sheet in names, f"no sheet {sheet!r}; the file has {', '.join(names)}")
    hidden, merged, others = facts["hidden"], facts["merged"], listed(names[1:]) if sheet is None else ""
    notes = {
        f"{hidden:,} rows of the sheet are hidden, as by a filter, and read like the others": hidden,
        f"merged cells ({listed(merged, 3)}): the first has the value, and the others are empty": merged,
        "errors are read as empty cells, and hidden rows and merged cells are not said, as of .xlsx": facts["unread"],
        f"the file has other sheets: `sheet` names one of {others}": others,
    }
    return of_rows(table, skip, is_sheet=True)._replace(notes=tuple(note for note, is_so in notes.items() if is_so))
