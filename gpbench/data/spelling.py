"""The spelling of a table as a first look guesses it: the delimiter, the mark of comments and the decimal sign."""

import re
from collections.abc import Sequence, Set
from typing import Any

from gpbench.data.cells import Cells, number, read
from gpbench.data.lines import COMMENT_MARKS, DelimiterError
from gpbench.errors import DataError

_SOME = 50  # rows by which a delimiter is chosen


def guess(content: bytes, target: Any) -> tuple[dict[str, Any], Cells]:
    """The options of a source where they are not the usual ones, and the table.  Raises DataError."""
    targets = {*map(str, target if isinstance(target, list) else [target])}
    if sign := re.match(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", content):  # Excel's own first line
        options: dict[str, Any] = {"skip": 1, "delimiter": sign[1].decode(errors="replace")}
        return options, read(content, options)
    readings: list[tuple[tuple[bool, bool, float], dict[str, Any], list[list[str]]]] = []
    faults: dict[str, DelimiterError] = {}
    for delimiter in (",", ";", "\t", "|", "space"):
        if delimiter == "space" and any(merits[0] for merits, _, _ in readings):
            continue  # there may be blanks in the names and texts of any table
        options = {"delimiter": delimiter} if delimiter != "," else {}
        try:
            table = read(content, options)
            if table.is_named:
                return {}, table
            options |= (comments := _comments(table, targets))
            rows = (read(content, options) if comments else table).rows[:_SOME]
        except DelimiterError as error:
            faults[delimiter] = error.with_traceback(None)  # which would keep what was read
        else:
            readings.append((_merits(rows, targets), options, rows))
    fits = [reading for reading in readings if reading[0][0] or (any(reading[0]) and "," not in faults)]
    if not fits and faults:
        raise next(iter(faults.values()))
    _, options, rows = max(fits, key=lambda reading: reading[0]) if fits else readings[0]
    if "delimiter" in options:
        options |= _decimal(rows)
    return options, read(content, options)


def _merits(rows: Sequence[Sequence[str]], targets: Set[str]) -> tuple[bool, bool, float]:
    """What speaks for a delimiter: it makes the targets a name each, rows of one width, and cells that are numbers."""
    if {*map(len, rows)} <= {1}:
        return False, False, 0.0
    stripped = [[cell.strip() for cell in row] for row in rows]
    some = [number(cell.replace(",", ".", 1)) is not None for row in stripped[1:] for cell in row]
    has_targets = any(targets <= {*row} for row in stripped[:20])
    return has_targets, len({*map(len, rows)}) == 1, sum(some) / max(1, len(some))


def _comments(table: Cells, targets: Set[str]) -> dict[str, Any]:
    """The option that leaves out comments at the top; none where the first line names the targets."""
    first = [cell.strip() for cell in table.rows[0]] if table.rows else [""]
    mark = next((mark for mark in COMMENT_MARKS if first[0].startswith(mark)), None)
    if mark is None or targets <= {*first}:
        return {}
    start = next((i for i, row in enumerate(table.rows) if not row[0].startswith(mark)), 0)
    rows = table.rows[start:]
    is_in_cells = any(row[0].startswith(mark) and len(row) == len(rows[0]) for row in rows)
    return {"skip": table.lines[start] - 1} if is_in_cells else {"comment": mark}


def _decimal(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The option for a comma in most rows.  Raises DataError where it may separate thousands."""
    split = [cell.strip() for row in rows for cell in row if re.fullmatch(r"[+-]?\d+,\d+", cell.strip())]
    if len(split) <= len(rows) // 2:
        return {}
    if all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in split):
        signs = '`thousands: ","` or `decimal: ","`'
        raise DataError(f"{split[0]!r}: its comma may separate thousands or decimals: write a card that states {signs}")
    return {"decimal": ","}
