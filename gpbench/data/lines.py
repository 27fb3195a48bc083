"""Tables as text.  Each line is a row, or counted among the others; one with a stray quotation mark is refused."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from gpbench.errors import DataError, require

_LEFT_OUT, _FURTHER = "left out by `skip`", "in cells of several lines"
BLANK, COMMENTS, DECLARATIONS = "blank", "comments", "declarations"  # kinds of lines that begin no row
COMMENT_MARKS = ("#", "%", "//")
"""Texts with which lines of comments begin in many files."""
_LONGEST = 2**31 - 1  # most characters of a cell: as many as a file may have
_Skip = int | Sequence[int]  # so many lines at the top, or the numbers of lines


class DelimiterError(DataError):
    """Text that is no table with its delimiter; with another one it may be."""


class Cells(NamedTuple):
    """A table as text."""

    rows: list[list[str]]  # the header among them where there is one; "" is an empty cell
    labels: frozenset[str] = frozenset()  # names of the columns that hold the index of a pandas DataFrame
    nominal: frozenset[str] = frozenset()  # names of the columns that the file says are classes
    is_named: bool = False  # the columns of the format always have names, which are the first row
    lines: Sequence[int] = ()  # number of the line with which each row begins, from 1
    other_lines: Mapping[str, int] | None = None  # of each kind that begin no row; None where a file has no lines
    notes: tuple[str, ...] = ()  # what the file says and gpbench does not use


def numbered(lines: str | Sequence[Any], skip: _Skip, others: Counter[str]) -> Iterator[tuple[int, Any]]:
    """The lines of a text, or rows, that `skip` does not leave out, with their numbers; others are counted."""
    number, left_out = 0, range(1, skip + 1) if isinstance(skip, int) else skip
    text = io.StringIO(lines, newline="") if isinstance(lines, str) else lines  # ends at \n, \r or \r\n, not at U+2028
    for number, line in enumerate(text, 1):
        if number in left_out:
            others[_LEFT_OUT] += 1
        else:
            yield number, line
    for line in () if isinstance(skip, int) else skip:
        require(line <= number, f"`skip` lists line {line:,}, and the file has {number:,}: take it out, or correct it")


def skip_also(line: int, skip: _Skip = 0) -> list[int]:
    """The value of `skip` that leaves out one line more."""
    return sorted({*(range(1, skip + 1) if isinstance(skip, int) else skip), line})


def text_of(cell: Any) -> str:
    """Writes a cell as a csv file has it: "" for none, 1 and 0 for true and false, numbers with all their digits."""
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")
    return "" if cell is None else str(int(cell)) if isinstance(cell, bool) else str(cell)


def whole(cell: Any) -> Any:
    """A cell, with 3 for 3.0, of a table that has floats alone."""
    is_whole = isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53
    return int(cell) if is_whole else cell


def of_rows(rows: Sequence[list[str]], skip: _Skip, *, is_sheet: bool) -> Cells:
    """The table of rows, numbered as the lines that they would be in a text; blank ones of a sheet are none."""
    others: Counter[str] = Counter()
    table, lines = [], []
    for number, row in numbered(rows, skip, others):
        if is_sheet and not any(row):
            others[BLANK] += 1
        else:
            table.append(row)
            lines.append(number)
    return Cells(table, is_named=True, lines=lines, other_lines=others if is_sheet or others else None)


def account(files: Sequence[Cells], header: int, rows: int) -> str:
    """The rows that were read, beside the lines of their files."""
    others = Counter({"of names": header})
    for file in files:
        if file.other_lines is None:
            return f"{rows:,} rows"
        others.update(file.other_lines)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in others.items() if count)
    return f"{rows:,} rows of {rows + others.total():,} lines" + (f" ({kinds})" if kinds else "")


def delimited(text: str, skip: _Skip, delimiter: str, options: Mapping[str, Any]) -> Cells:
    """The rows that are not blank; line ends within quotation marks belong to their cell."""
    is_space, comment = delimiter == "space", options.get("comment")
    others: Counter[str] = Counter()
    lines: list[str] = []  # of the row that is read
    first, number, is_over = 0, 0, False

    def source() -> Iterator[str]:
        nonlocal first, number, is_over
        for number, line in numbered(text, skip, others):
            if comment and line.startswith(comment):
                others[COMMENTS] += 1
                continue
            first = first if lines else number
            lines.append(" ".join(line.split()) + "\n" if is_space else line)
            yield lines[-1]
        is_over = True

    csv.field_size_limit(_LONGEST)
    rows: list[list[str]] = []
    begins: list[int] = []
    try:
        form = partial(csv.reader, delimiter=" " if is_space else delimiter, skipinitialspace=not delimiter.isspace())
        for row in form(source()):
            fault = "is opened and never closed: close it, or take it out" if is_over else ""
            if len(lines) > 1 and not is_over:
                cell = f"opens a cell that ends in line {number} and has rows in it"
                is_wrong = _holds_rows(row, len(rows[0] if rows else row), lines, form)
                fault = f"{cell}: take it out, or write it twice" if is_wrong else ""
                others[_FURTHER] += len(lines) - 1
            if fault:
                raise DelimiterError(f"line {first}: a quotation mark {fault}")
            if any(map(str.strip, row)) or (len(row) > 1 and not delimiter.isspace()):
                rows.append(row)
                begins.append(first)
            else:
                others[BLANK] += 1
            lines.clear()
    except (csv.Error, TypeError) as error:
        raise DelimiterError(f"not a table with delimiter {delimiter!r}: {error}") from None
    return Cells(rows, lines=begins, other_lines=others)


def _holds_rows(row: Sequence[str], width: int, lines: Sequence[str], form: Callable) -> bool:
    """Whether a row of several lines has others in its cells: text behind a closing mark, or two lines like rows."""
    try:
        next(form(lines, strict=True))
    except csv.Error:
        return True
    alike = 0
    for cells in form(lines, quoting=csv.QUOTE_NONE):
        kinds = [_is_numeric(cell) for cell, ours in zip(cells, row) if cell and _is_numeric(ours)]
        alike += len(cells) == width > 1 and any(kinds) and all(kinds)
    return alike > 1


def _is_numeric(cell: str) -> bool:
    """Whether a cell may be a number, whatever its signs."""
    return bool(re.search(r"\d", cell)) and not re.search(r'[^\d.,eE+\s"-]', cell)
