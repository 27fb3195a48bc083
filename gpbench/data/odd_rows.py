"""Rows of a table that are no data: units in the first one, totals in the last one."""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from gpbench.data.cells import Numbers
from gpbench.data.faults import UNKNOWN

_TOTAL = re.compile(
    r"(grand |sub)?-?(total|sum|mean|average|median|summe|gesamt|mittelwert|somme|moyenne)s?[ .:]*", re.IGNORECASE
)
_UNIT = re.compile(r"\W*[^\W\d_]|\W?[%°‰]")


def has_units(columns: Iterable[Sequence[str]], numbers: Numbers) -> bool:
    """Whether the first row has a text, and no number, in the columns whose other cells are numbers."""
    first = [column[0] for column in columns]
    if any(numbers.parse(cell) is not None for cell in first) or len(next(iter(columns), ())) < 2:
        return False
    of_numbers = [
        column[0]
        for column in columns
        if len(known := [c for c in column[1:] if c.lower() not in UNKNOWN and not numbers.is_missing(c)])
        and all(numbers.parse(cell) is not None for cell in known)
    ]
    return any(_UNIT.match(cell) and cell.lower() not in UNKNOWN for cell in of_numbers)


def has_totals(texts: Iterable[Sequence[str]], columns: Sequence[Float[np.ndarray, " N"]]) -> bool:
    """Whether the last row is named so in a column of text, or has the sums or means of most columns of numbers."""
    for cells in texts:
        if _TOTAL.fullmatch(cells[-1]) and sum(map(bool, map(_TOTAL.fullmatch, cells))) <= 1 + len(cells) // 50:
            return True
    is_sum, is_mean = [], []
    for column in columns:
        others, last = column[:-1][~np.isnan(column[:-1])], column[-1]
        if np.isnan(last) or len(others) < 3 or not np.ptp(others):
            continue
        with np.errstate(all="ignore"):  # of numbers near the largest
            is_sum.append(abs(last) > np.abs(others).max() and abs(last - others.sum()) <= 1e-4 * abs(last))
            is_mean.append(abs(last - others.mean()) <= 1e-4 * np.ptp(others))
    return any(len(kind) / 2 < sum(kind) > 1 for kind in (is_sum, is_mean))
