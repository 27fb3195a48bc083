"""Faults of tables: doubtful things, and cells that are no numbers, each with its mend."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from gpbench.errors import DataError, GpbenchError

UNKNOWN = frozenset(
    {"?", "-", ".", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown"}
    | {"#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"}  # errors of spreadsheets
)
"""Texts that mark missing cells in many files, in lower case."""
_DATE = r"\d{4}-\d\d?-\d\d?([T ].*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}( .*)?|(\d+ days?,? )?\d{1,2}:\d\d(:.*)?"
_NO = "is not a number"
_THOUSANDS = 'state the sign between thousands, as in `thousands: ","`'
_ONE_SIGN = 'state the sign between thousands, `thousands: ","`, or the decimal sign, `decimal: ","`'
_TWO_SIGNS = 'state the signs between thousands and of decimals, `thousands: "."` and `decimal: ","`'
_UNIT = "or name the column in `drop`, or number its texts in `codes`"
_LARGE, _LABEL = "has more digits than a number can hold (2^53)", "name the column in `drop` if it labels the rows"
_KINDS = {
    r"=.*": ("is a formula whose value the file lacks: save it by a spreadsheet program", ""),
    r"[+-]?\d{16,}": (_LARGE, _LABEL),
    r"[+-]?\d{1,3},\d{3}": (_NO, _ONE_SIGN),
    r"[+-]?\d{1,3}(\.\d{3})+,\d+": (_NO, _TWO_SIGNS),
    r"[+-]?[\d.]*,\d+": (_NO, 'state the decimal sign, as in `decimal: ","`'),
    r"[+-]?\d{1,3}([,.' \u00a0\u2009\u202f]\d{3})+([.,]\d*)?": (_NO, _THOUSANDS),
    r"[+-]?\d+(_\d+)+": (f"{_NO}: take out its underscores", ""),
    r"[\u2010-\u2015\u2212][\d.,]+": (f"{_NO}: its minus sign is not `-`", ""),
    _DATE: ("is a date or a time", "name the column in `drop`, or in `order` for splits by time"),
    r"[+-]?[\d.,]+\s*[^\d\s:/+-]{1,5}|[^\w\s.+(-]\s*[\d.,]+": (f"{_NO}: take out what is no digit", _UNIT),
}
"""What is wrong with a text, and what a card would say, by the pattern that it has; of several the first."""


class Finding(NamedTuple):
    """A doubtful thing in a data set, and the line of the card that mends it, "" where nothing is to be changed."""

    text: str
    mend: str = ""


def reject(faults: Iterable[str], error: type[GpbenchError] = DataError) -> None:
    """Raises an error with the first of some messages, if there is one."""
    for fault in faults:
        raise error(fault)


class SpellingError(DataError):
    """A table that is spelled in another way than its card says; `fact` leaves out what the card would say."""

    def __init__(self, fact: str, mend: str):
        super().__init__(f"{fact}; {mend}" if mend else fact)
        self.fact = fact


def fault(cell: str) -> tuple[str, str]:
    """Says why a cell is no number, and what its card would say."""
    if re.fullmatch(r"\W+", cell) or cell.lower() in UNKNOWN:
        return f"{cell!r} is not a number", f'if it marks a missing cell, state it, as in `missing: "{cell}"`'
    short = repr(cell if len(cell) <= 60 else f"{cell[:60]}...")
    for pattern, (reason, mend) in _KINDS.items():
        if re.fullmatch(pattern, cell, re.ASCII):
            return f"{short} {reason}", mend
    return f"{short} is not a number", "name the column in `drop`, or encode its texts by `encode` or `codes`"


def is_misspelt(cell: str) -> bool:
    """Whether a text is a number, but for its signs; one with a unit may as well name something."""
    reasons = (reason for pattern, (reason, _) in _KINDS.items() if re.fullmatch(pattern, cell, re.ASCII))
    return next(reasons, "").startswith("is not a number") and not re.search(r"[^\W\d_]", cell)


def first_rows(rows: Iterable[int]) -> str:
    """Names the first of some rows, counted from 0: "row 3", or "rows 3, 5, 9, 12, 14, ..."."""
    numbers = [row + 1 for row in rows]
    more = ", ..." if len(numbers) > 5 else ""
    return f"row{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers[:5]))}{more}"
