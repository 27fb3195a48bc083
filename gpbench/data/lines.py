"""Tables as text, and an account of the lines of their files: each is a row, or is counted among the others."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gpbench.errors import DataError

LEFT_OUT, FURTHER = "left out by `skip`", "in cells of several lines"
BLANK, COMMENTS, DECLARATIONS = "blank", "comments", "declarations"
"""Kinds of lines that begin no row."""


class Cells(NamedTuple):
    """A table as text.

    Attributes:
        rows: Rows of cells, the header among them where there is one; "" is an empty cell.
        labels: Names of the columns that hold the index of a pandas DataFrame.
        nominal: Names of the columns that the file says are classes.
        is_named: Whether the columns of the format always have names, which are the first row.
        lines: Number of the line with which each row begins, from 1.
        other_lines: Number of lines of each kind that begin no row; None where the file has no lines.
        notes: What the file says and gpbench does not use.
    """

    rows: list[list[str]]
    labels: frozenset[str] = frozenset()
    nominal: frozenset[str] = frozenset()
    is_named: bool = False
    lines: Sequence[int] = ()
    other_lines: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()


def numbered_lines(text: str, skip: int | Sequence[int], others: Counter[str]) -> Iterator[tuple[int, str]]:
    """The numbers and lines of a text that `skip` does not leave out; those it leaves out are counted."""
    number = 0
    for number, line in enumerate(io.StringIO(text, newline=""), 1):  # ends at \n, \r or \r\n, and at no U+2028
        if _is_skipped(number, skip):
            others[LEFT_OUT] += 1
        else:
            yield number, line
    _require_lines(skip, number)


def _is_skipped(number: int, skip: int | Sequence[int]) -> bool:
    """Whether a line is one of the first `skip`, or one of those that it lists."""
    return number <= skip if isinstance(skip, int) else number in skip


def _require_lines(skip: int | Sequence[int], count: int) -> None:
    """Raises DataError where `skip` lists a line that a file of so many lines lacks."""
    if not isinstance(skip, int) and (beyond := [line for line in skip if line > count]):
        raise DataError(f"`skip` lists line {beyond[0]:,}, and the file has {count:,}: take it out, or correct it")


def skip_also(line: int, skip: int | Sequence[int] = 0) -> list[int]:
    """What `skip` is where it leaves out a further line."""
    return sorted({*(range(1, skip + 1) if isinstance(skip, int) else skip), line})


def of_rows(rows: Sequence[list[str]], skip: int | Sequence[int], *, is_sheet: bool) -> Cells:
    """The table of rows, numbered as the lines that they would be in a text; blank ones of a sheet are none."""
    others: Counter[str] = Counter()
    table, lines = [], []
    for number, row in enumerate(rows, 1):
        if _is_skipped(number, skip):
            others[LEFT_OUT] += 1
        elif is_sheet and not any(row):
            others[BLANK] += 1
        else:
            table.append(row)
            lines.append(number)
    _require_lines(skip, len(rows))
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
