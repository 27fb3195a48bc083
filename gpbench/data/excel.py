"""Tables in Excel files.  What a workbook holds is counted before openpyxl reads it, which keeps trees of XML, and
whose streams of rows know neither hidden rows, nor merged cells, nor formulas without values."""

import contextlib
import io
import re
import zipfile
from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

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
        parts, needed = dict[str, _Part](), 0
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archives.require_memory(4 * sum(member.file_size for member in archive.infolist()), content)
            for name in archive.namelist():
                with archive.open(name) as stream:
                    parts[name] = _Part(content, needed, stream, is_sheet=name.startswith("xl/worksheets/"))
                needed = parts[name].needed
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        is_there = sheet is None or sheet in book.sheetnames
        require(is_there, f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        worksheet = book[sheet or book.sheetnames[0]]
        scan = parts[worksheet._worksheet_path]
        archives.require_memory(scan.needed + archives.memory_of_rows(scan.rows, scan.rows * scan.width), content)
        worksheet.reset_dimensions()  # those that the file states may be stale
        rows = [scan.cells(number, values) for number, values in enumerate(worksheet.values, 1)]
    others = listed(book.sheetnames[1:]) if sheet is None else ""
    notes = {
        f"{scan.hidden:,} rows of the sheet are hidden, as by a filter, and read like the others": scan.hidden,
        f"merged cells ({listed(scan.merged, 3)}): the first has the value, and the others are empty": scan.merged,
        f"the file has other sheets: `sheet` names one of {others}": others,
    }
    return of_rows(rows, skip, is_sheet=True)._replace(notes=tuple(note for note, is_so in notes.items() if is_so))


class _Part:
    """A file of a workbook, of which elements are counted and let go."""

    def __init__(self, content: bytes, needed: int, stream: Any, *, is_sheet: bool):
        from openpyxl.utils import column_index_from_string

        self._number_of = column_index_from_string
        self.needed = needed  # bytes of memory of this file and those before it
        self.rows = self.width = self.hidden = 0
        self.merged: list[str] = []
        self._formulas: dict[int, dict[int, str]] = {}
        self._is_sheet, self._in_row, self._row, self._column = is_sheet, False, 0, 0
        self._cell: ElementTree.Element | None = None  # the one that is read, of the kind and with the texts below
        self._kind, self._texts = "", dict[str, str]()
        most = limits.memory(archives.size_of(content), archives.LARGEST)
        with contextlib.suppress(ElementTree.ParseError):  # no XML, as a picture, or refused by openpyxl too
            for event, element in ElementTree.iterparse(stream, ("start", "end")):
                name = element.tag.rpartition("}")[2]
                (self._begin if event == "start" else self._end)(name, element)
                if self.needed > most:
                    archives.require_memory(self.needed, content)

    def cells(self, number: int, values: Sequence[Any]) -> list[str]:
        """The cells of a row, where they have no value their formulas; none of a row that is not there."""
        if not values:
            return []
        cells = [*map(text_of, values), *[""] * (self.width - len(values))][: self.width]
        for column, formula in self._formulas.get(number, {}).items():
            cells[column - 1] = formula
        return cells

    def _begin(self, name: str, element: ElementTree.Element) -> None:
        """Counts an element.  Raises DataError for rows or cells in no order, and for a sheet that is no worksheet."""
        attributes = element.attrib
        if name == "row" and self._is_sheet:
            above, self._in_row, self._column = self._row, True, 0
            self._row = int(float(attributes.get("r", above + 1)))
            order = f"stands below row {above:,}" if self._row <= above else f"is beyond the last, {_ROWS:,}"
            require(above < self._row <= _ROWS, f"row {self._row:,} of the sheet {order}: {_MEND}")
            self.rows += 1
            self.hidden += attributes.get("hidden") in ("1", "true")
            self.needed += _ROW
        elif name == "c" and self._in_row:
            before, self._cell, self._kind, self._texts = self._column, element, attributes.get("t", "n"), {}
            self._column += 1
            if "r" in attributes:
                self._column = self._number_of(attributes["r"].rstrip("0123456789"))
            order = f"row {self._row:,} of the sheet has cells in no order, or beyond the last column"
            require(before < self._column <= _COLUMNS, f"{order}: {_MEND}")
            self.needed += archives.memory_of_rows(1, 1)
        else:
            self.needed += (_INNER if self._in_row else _OUTER) * (1 + len(attributes))
            if name == "mergeCell":
                self.merged.append(attributes.get("ref", ""))
            elif name in ("Override", "Relationship"):  # openpyxl holds all elements of what is no sheet
                path = attributes.get("PartName", attributes.get("Target", ""))
                kind = attributes.get("ContentType", attributes.get("Type", ""))
                is_fit = "worksheets/" not in path or re.search(r"worksheet(\+xml)?$", kind)
                require(is_fit, f"the workbook calls its sheet {path} {kind[:60]}: {_MEND}")

    def _end(self, name: str, element: ElementTree.Element) -> None:
        """Keeps the formula of a cell without a value, and lets an element go."""
        self.needed += _CHARACTER * len(element.text or "")
        self._in_row &= name != "row"
        if self._cell is None:
            element.clear()
        elif name != "c":
            self._texts[name] = self._texts.get(name, "").strip() or element.text or ""
            self._cell.clear()
        else:
            texts, self._cell = self._texts, None
            self.width = max(self.width, self._column if texts else 0)
            if "f" in texts and self._kind != "str" and not (texts.get("v", "") + texts.get("t", "")).strip():
                self._formulas.setdefault(self._row, {})[self._column] = f"={texts['f']}"[:_FORMULA].strip()
                self.needed += _OUTER
