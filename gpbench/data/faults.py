"""Cells that are no numbers: what each of them is, and how to mend it."""

import re

_DATE = r"\d{4}-\d\d?-\d\d?([T ].*)?|\d{1,2}([./-])\d{1,2}\2\d{2,4}( .*)?|(\d+ days?,? )?\d{1,2}:\d\d(:.*)?"
_KINDS = {
    r"[+-]?\d{16,}": "has more digits than a number can hold (2^53): name the column in `drop` if it labels the rows",
    r"[+-]?[\d.]*,\d+": 'is not a number; state the decimal sign, as in `decimal: ","`',
    r"[+-]?\d{1,3}([,.' \u00a0\u2009\u202f]\d{3})+([.,]\d*)?": (
        'is not a number; state the sign between thousands, as in `thousands: ","`'
    ),
    r"[+-]?\d+(_\d+)+": "is not a number: take out its underscores",
    r"[\u2010-\u2015\u2212][\d.,]+": "is not a number: its minus sign is not `-`",
    _DATE: "is a date or a time: name the column in `drop`, or in `order` for splits by time",
    r"[+-]?[\d.,]+\s*[^\d\s:/+-]{1,5}|[^\w\s.+(-]\s*[\d.,]+": (
        "is not a number: take out what is no digit; or name the column in `drop`, or number its texts in `codes`"
    ),
}
"""What is wrong with a text, by the pattern that it has; of several the first."""


def fault(cell: str) -> str:
    """Says why a cell is no number, and how to mend it.

    Args:
        cell: The text of the cell.
    """
    if re.fullmatch(r"\W+|n/?a|null|none|nil|missing|unknown", cell.lower()):
        return f'{cell!r} is not a number; if it marks a missing cell, state it, as in `missing: "{cell}"`'
    for pattern, reason in _KINDS.items():
        if re.fullmatch(pattern, cell, re.ASCII):
            return f"{_short(cell)} {reason}"
    return f"{_short(cell)} is not a number; name the column in `drop`, or encode its texts by `encode` or `codes`"


def _short(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else f"{cell[:60]}...")
