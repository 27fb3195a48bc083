"""Tables in Excel files.

What a workbook holds is counted before openpyxl reads it, which keeps trees of XML, and makes rows that are not there.
Its streams of rows know neither hidden rows, nor merged cells, nor formulas without values.
"""

import contextlib
import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any
from xml.parsers import expat

from gpbench import limits
from gpbench.data import archives
from gpbench.data.lines import Cells, of_rows, text_of
from gpbench.errors import DataError, listed, require

_ROWS, _COLUMNS = 2**20, 2**14  # largest numbers of rows and columns of a sheet
_ROW, _INNER, _OUTER, _CHARACTER = 500, 100, 400, 4
"""Bytes of memory: of a row, of an element or attribute in a row, of one elsewhere, of a character."""
_MEND = "save the file again by a spreadsheet program"
_FORMULA = 200  # characters of a formula without a value that are kept


def read(content: bytes, sheet: str | None, skip: int | Sequence[int]) -> Cells:
    """Reads the rows of a sheet, by default the first."""
    try:
        import openpyxl
    except ImportError:
        mend = "pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
        raise DataError(f"an Excel file needs openpyxl: {mend}") from None
    with archives.parsing("a readable Excel file"):
        parts, total = dict[str, _Part](), 0
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archives.require_memory(4 * sum(member.file_size for member in archive.infolist()), content)
            for name in archive.namelist():
                parts[name] = _Part(content, total, is_sheet=name.startswith("xl/worksheets/"))
                with archive.open(name) as stream:
                    parts[name].scan(stream)
                total = parts[name].needed
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        is_there = sheet is None or sheet in book.sheetnames
        require(is_there, f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        worksheet = book[sheet or book.sheetnames[0]]
        scan = parts[worksheet._worksheet_path]
        needed = scan.needed + archives.memory_of_rows(scan.rows, scan.rows * scan.width)
        archives.require_memory(needed, content)
        worksheet.reset_dimensions()  # those that the file states may be stale
        rows = [scan.cells(number, values) for number, values in enumerate(worksheet.values, 1)]
    others = listed(book.sheetnames[1:]) if sheet is None else ""
    choice = (f"the file has other sheets: `sheet` names one of {others}",) if others else ()
    return of_rows(rows, skip, is_sheet=True)._replace(notes=(*scan.notes, *choice))


class _Part:
    """A file of a workbook, scanned and not held."""

    def __init__(self, content: bytes, needed: int, *, is_sheet: bool):
        self._content, self.needed, self._is_sheet = content, needed, is_sheet
        self._most = limits.memory(archives.size_of(content), archives.LARGEST)
        self.rows = self.width = self._hidden = 0
        self._merged: list[str] = []
        self._formulas: dict[int, dict[int, str]] = {}
        self._in_row, self._row, self._column = False, 0, 0
        self._element, self._kind, self._formula = "", "", ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sheet says beside its cells."""
        hidden = f"{self._hidden:,} rows of the sheet are hidden, as by a filter, and read like the others"
        merged = f"merged cells ({listed(self._merged, 3)}): the first has the value, and the others are empty"
        return tuple(note for note, is_there in ((hidden, self._hidden), (merged, self._merged)) if is_there)

    def cells(self, number: int, values: Sequence[Any]) -> list[str]:
        """The cells of a row, where they have no value their formulas; none of a row that is not there."""
        if not values:
            return []
        cells = [*map(text_of, values), *[""] * (self.width - len(values))][: self.width]
        for column, formula in self._formulas.get(number, {}).items():
            cells[column - 1] = formula
        return cells

    def scan(self, stream: Any) -> None:
        """Counts elements.  Raises DataError for more than memory can hold, and for rows or cells in no order."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._text
        with contextlib.suppress(expat.ExpatError):  # no XML, as a picture, or refused by openpyxl too
            parser.ParseFile(stream)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._element = name = name.rpartition(":")[2]
        if name == "row" and self._is_sheet:
            self._begin_row(attributes)
        elif name == "c" and self._in_row:
            self._begin_cell(attributes)
        else:
            self.needed += (_INNER if self._in_row else _OUTER) * (1 + len(attributes))
            if name in ("v", "is", "f"):
                self.width = max(self.width, self._column)
            if name == "f":
                self._formula = "="
            elif name == "mergeCell":
                self._merged.append(attributes.get("ref", ""))
            elif name in ("Override", "Relationship"):
                _check_use(attributes)
        if self.needed > self._most:
            archives.require_memory(self.needed, self._content)

    def _begin_row(self, attributes: dict[str, str]) -> None:
        above, self._in_row, self._column = self._row, True, 0
        self._row = int(float(attributes.get("r", above + 1)))
        order = f"stands below row {above:,}" if self._row <= above else f"is beyond the last, {_ROWS:,}"
        require(above < self._row <= _ROWS, f"row {self._row:,} of the sheet {order}: {_MEND}")
        self.rows += 1
        self._hidden += attributes.get("hidden") in ("1", "true")
        self.needed += _ROW

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        before, self._kind, self._formula = self._column, attributes.get("t", "n"), ""
        self._column = _column_of(attributes["r"]) if "r" in attributes else before + 1
        is_fit = before < self._column <= _COLUMNS
        require(is_fit, f"row {self._row:,} of the sheet has cells in no order, or beyond the last column: {_MEND}")
        self.needed += archives.memory_of_rows(1, 1)

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "row":
            self._in_row = False
        elif name == "c" and self._formula and self._kind != "str":
            self._formulas.setdefault(self._row, {})[self._column] = self._formula[:_FORMULA].strip()
            self.needed += _OUTER

    def _text(self, text: str) -> None:
        self.needed += _CHARACTER * len(text)
        if self._element == "f" and len(self._formula) < _FORMULA:
            self._formula += text
        elif self._element in ("v", "t") and text.strip():  # a value
            self._formula = ""


def _column_of(reference: str) -> int:
    """The number of a column, from 1, in a reference such as AB7."""
    column = 0
    for letter in reference.rstrip("0123456789").upper():
        column = 26 * column + ord(letter) - ord("A") + 1
    return column


def _check_use(attributes: dict[str, str]) -> None:
    """Raises DataError for a sheet that is said to be something else, of which openpyxl holds all elements."""
    path = attributes.get("PartName", attributes.get("Target", ""))
    kind = attributes.get("ContentType", attributes.get("Type", ""))
    is_fit = "worksheets/" not in path or re.search(r"worksheet(\+xml)?$", kind)
    require(is_fit, f"the workbook calls its sheet {path} {kind[:60]}: {_MEND}")
