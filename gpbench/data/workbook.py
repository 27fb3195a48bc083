"""Prints the facts of a workbook and the rows of a sheet as lines of JSON.  A program of its own: a few bytes can stand
for any number of cells, so it may take so much memory and no more, and calamine may crash."""

import contextlib
import functools
import io
import json
import posixpath
import re
import resource
import sys
import zipfile
from datetime import date, datetime, time
from typing import Any
from xml.etree import ElementTree

import python_calamine

from gpbench.data.lines import text_of, whole

_CELL = 60  # bytes of memory of an empty cell in the table that is made of the lines
_FORMULA = 200  # characters of a formula without a value that are kept


def main(most: str, sheet: str) -> None:
    """Prints a sheet, by default the first, of the workbook in stdin within so many bytes of memory."""
    with contextlib.suppress(ValueError):  # a lower limit holds
        resource.setrlimit(resource.RLIMIT_AS, (int(most), int(most)))
    file = io.BytesIO(sys.stdin.buffer.read())
    book = python_calamine.load_workbook(file)
    names = [s.name for s in book.sheets_metadata if s.typ == python_calamine.SheetTypeEnum.WorkSheet]
    facts: dict[str, Any] = {"sheets": names, "hidden": 0, "merged": [], "unread": True}
    table: list[list[Any]] = []
    if (name := sheet or names[0]) in names:
        table = book.get_sheet_by_name(name).to_python(skip_empty_area=False)
        if zipfile.is_zipfile(file) and "xl/workbook.xml" in (archive := zipfile.ZipFile(file)).namelist():
            facts["unread"] = False
            _add_unread(archive, name, facts, table)
    width = max(map(len, table), default=0)
    if len(table) * width * _CELL > int(most):
        raise MemoryError
    print(json.dumps(facts))
    for row in table:
        print(json.dumps([*map(_text, row), *[""] * (width - len(row))]))


def _text(cell: Any) -> str:
    is_day = isinstance(cell, date) and not isinstance(cell, datetime)
    return text_of(datetime.combine(cell, time()) if is_day else whole(cell))


def _add_unread(archive: zipfile.ZipFile, sheet: str, facts: dict[str, Any], table: list[list[Any]]) -> None:
    """Adds what calamine leaves out: errors, formulas without values, hidden rows, and where cells are merged."""
    nodes = lambda path: ElementTree.parse(archive.open(path)).iter()
    attributes = next(element.attrib for element in nodes("xl/workbook.xml") if element.get("name") == sheet)
    id = next(value for key, value in attributes.items() if key.endswith("}id"))
    target = next(e.attrib["Target"] for e in nodes("xl/_rels/workbook.xml.rels") if e.get("Id") == id)
    for _, element in ElementTree.iterparse(archive.open(posixpath.join("/xl", target)[1:])):
        name = element.tag.rpartition("}")[2]
        if name == "mergeCell":
            facts["merged"].append(element.get("ref", ""))
        elif name == "row":
            facts["hidden"] += element.get("hidden") in ("1", "true")
            element.clear()
        elif name == "c" and (text := _unread(element)):
            letters, number = re.findall(r"\d+|[A-Z]+", element.attrib["r"])
            column = functools.reduce(lambda number, letter: 26 * number + ord(letter) - 64, letters, 0)
            table += [[] for _ in range(int(number) - len(table))]
            row = table[int(number) - 1]
            row += [""] * (column - len(row))
            row[column - 1] = text


def _unread(cell: ElementTree.Element) -> str:
    """The error of a cell, or its formula where it has no value; else "".  A formula is the first of its parts."""
    kind, is_formula = cell.get("t"), len(cell) > 0 and cell[0].tag.endswith("}f")
    value = cell.findtext("{*}v", "").strip() if kind == "e" or is_formula else ""
    if is_formula and kind != "str" and not value:
        return f"={cell[0].text or ''}"[:_FORMULA].strip()
    return value if kind == "e" else ""


if __name__ == "__main__":
    main(*sys.argv[1:])
