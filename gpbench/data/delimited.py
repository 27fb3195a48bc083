"""Rows of delimited text.  A stray quotation mark, which would take rows into a cell, is refused with its line."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gpbench.data.lines import BLANK, COMMENTS, FURTHER, Cells, numbered_lines
from gpbench.errors import DataError

COMMENT_MARKS = ("#", "%", "//")
"""Texts with which lines of comments begin in many files."""
_LONGEST = 2**31 - 1  # most characters of a cell: as many as a file may have


class DelimiterError(DataError):
    """Text that is no table with its delimiter; with another one it may be."""


def read(text: str, skip: int | Sequence[int], delimiter: str, options: Mapping[str, Any]) -> Cells:
    """The rows that are not blank; line ends within quotation marks belong to their cell."""
    is_space, comment = delimiter == "space", options.get("comment")
    others: Counter[str] = Counter()
    lines: list[str] = []  # of the row that is read
    first, number, is_over = 0, 0, False

    def source() -> Iterator[str]:
        nonlocal first, number, is_over
        for number, line in numbered_lines(text, skip, others):
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
                others[FURTHER] += len(lines) - 1
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
