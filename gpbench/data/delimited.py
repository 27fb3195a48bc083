"""Rows of delimited text.  A stray quotation mark, which would take rows into a cell, is refused with its line."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpbench.data.lines import BLANK, COMMENTS, FURTHER, Cells, kept
from gpbench.errors import DataError

COMMENT_MARKS = ("#", "%", "//")
"""Texts with which lines of comments begin in many files."""
_LONGEST = 2**31 - 1
"""Most characters of a cell: as many as a file may have."""


def read(text: str, skip: int | Sequence[int], delimiter: str, comment: str | None) -> Cells:
    """The rows that are not blank; line ends within quotation marks belong to their cell."""
    is_space = delimiter == "space"
    others: Counter[str] = Counter()
    lines: list[str] = []  # of the row that is read
    first, number, is_over = 0, 0, False

    def source() -> Iterator[str]:
        nonlocal first, number, is_over
        for number, line in kept(text, skip, others):
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
        form = {"delimiter": " " if is_space else delimiter, "skipinitialspace": not str(delimiter).isspace()}
        for row in csv.reader(source(), **form):
            if is_over:
                raise DataError(f"line {first}: a quotation mark is opened and never closed; mend it in the file")
            if len(lines) > 1:
                if _holds_rows(row, len(rows[0] if rows else row), lines, form):
                    raise DataError(
                        f"line {first}: a quotation mark opens a cell that ends in line {number} and has rows in it;"
                        " mend it in the file"
                    )
                others[FURTHER] += len(lines) - 1
            if any(map(str.strip, row)) or (len(row) > 1 and not delimiter.isspace()):
                rows.append(row)
                begins.append(first)
            else:
                others[BLANK] += 1
            lines.clear()
    except (csv.Error, TypeError) as error:
        raise DataError(f"not a table with delimiter {delimiter!r}: {error}") from None
    return Cells(rows, lines=begins, others=others)


def _holds_rows(row: Sequence[str], width: int, lines: Sequence[str], form: Mapping[str, Any]) -> bool:
    """Whether a row of several lines has more rows in its cells: text behind a closing mark, or a line like the row."""
    try:
        next(csv.reader(lines, strict=True, **form))
    except csv.Error:
        return True
    for cell in row:
        for line in re.split(r"[\r\n]+", cell)[1:]:
            cells = next(csv.reader([line], quoting=csv.QUOTE_NONE, **form), [])
            alike = [_is_numeric(other) for other, ours in zip(cells, row) if other and _is_numeric(ours)]
            if len(cells) == width > 1 and alike and all(alike):
                return True
    return False


def _is_numeric(cell: str) -> bool:
    """Whether a cell may be a number, whatever its signs."""
    return bool(re.search(r"\d", cell)) and not re.search(r"[^\d.,eE+\s-]", cell)
