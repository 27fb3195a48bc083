"""Tables as text, and an account of the lines of their files: each is a row, or is counted among the others."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpbench.errors import require

_LEFT_OUT, FURTHER = "left out by `skip`", "in cells of several lines"
BLANK, COMMENTS, DECLARATIONS = "blank", "comments", "declarations"  # kinds of lines that begin no row


class Cells(NamedTuple):
    """A table as text."""

    rows: list[list[str]]  # the header among them where there is one; "" is an empty cell
    labels: frozenset[str] = frozenset()  # names of the columns that hold the index of a pandas DataFrame
    nominal: frozenset[str] = frozenset()  # names of the columns that the file says are classes
    is_named: bool = False  # the columns of the format always have names, which are the first row
    lines: Sequence[int] = ()  # number of the line with which each row begins, from 1
    other_lines: Mapping[str, int] | None = None  # of each kind that begin no row; None where a file has no lines
    notes: tuple[str, ...] = ()  # what the file says and gpbench does not use


def numbered_lines(text: str, skip: int | Sequence[int], others: Counter[str]) -> Iterator[tuple[int, str]]:
    """The numbers and lines of a text that `skip` does not leave out; those it leaves out are counted."""
    number = 0
    for number, line in enumerate(io.StringIO(text, newline=""), 1):  # ends at \n, \r or \r\n, and at no U+2028
        if _is_skipped(number, skip):
            others[_LEFT_OUT] += 1
        else:
            yield number, line
    _require_lines(skip, number)


def _is_skipped(number: int, skip: int | Sequence[int]) -> bool:
    """Whether a line is one of the first `skip`, or one of those that it lists."""
    return number <= skip if isinstance(skip, int) else number in skip


def _require_lines(skip: int | Sequence[int], count: int) -> None:
    """Raises DataError where `skip` lists a line that a file of so many lines lacks."""
    for line in () if isinstance(skip, int) else skip:
        fact = f"`skip` lists line {line:,}, and the file has {count:,}: take it out, or correct it"
        require(line <= count, fact)


def skip_also(line: int, skip: int | Sequence[int] = 0) -> list[int]:
    """What `skip` is where it leaves out a further line."""
    return sorted({*(range(1, skip + 1) if isinstance(skip, int) else skip), line})


def text_of(cell: Any) -> str:
    """Writes a cell as a csv file has it: "" for none, 1 and 0 for true and false, numbers with all their digits."""
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")
    return "" if cell is None else str(int(cell)) if isinstance(cell, bool) else str(cell)


def of_rows(rows: Sequence[list[str]], skip: int | Sequence[int], *, is_sheet: bool) -> Cells:
    """The table of rows, numbered as the lines that they would be in a text; blank ones of a sheet are none."""
    others: Counter[str] = Counter()
    table, lines = [], []
    for number, row in enumerate(rows, 1):
        if _is_skipped(number, skip):
            others[_LEFT_OUT] += 1
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
