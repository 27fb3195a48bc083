"""The year of a song from its timbre, YearPredictionMSD (Bertin-Mahieux, Ellis, Whitman and Lamere 2011).

The text of 448 MB is unpacked, parsed and put into a float32 table block by block, and is never whole in memory.
"""

import itertools
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float32

from gpbench.data.archives import lines
from gpbench.data.dataset import Raw
from gpbench.errors import DataError

COLUMNS = (*(f"timbre_mean{i}" for i in range(1, 13)), *(f"timbre_covariance{i}" for i in range(1, 79)))
_MEMBER = "YearPredictionMSD.txt"
_BLOCK = 10_000  # lines


def year_zip(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """The official zip archive: `rows` lines of 91 numbers between commas, the year and then 90 inputs.

    Raises DataError that names the first line that is something else, or the number of lines.
    """
    rows, text = options["rows"], lines(blobs[0], _MEMBER)
    table = np.empty((rows, 1 + len(COLUMNS)), np.float32)
    read = 0
    while block := list(itertools.islice(text, _BLOCK)):
        if read + len(block) > rows:
            raise DataError(f"{_MEMBER} has more than {rows} lines")
        table[read : read + len(block)] = _parsed(block, read + 1)
        read += len(block)
    if read < rows:
        raise DataError(f"{_MEMBER} has {read} lines, not {rows}")
    return Raw(table[:, 1:], table[:, 0], COLUMNS)


def _parsed(block: list[bytes], first: int) -> Float32[np.ndarray, "rows 91"]:
    """The numbers of some lines, of which `first` is the number of the first."""
    try:
        with warnings.catch_warnings(action="error"):  # of lines without numbers
            table = np.loadtxt(block, np.float32, comments=None, delimiter=",", ndmin=2)
    except (ValueError, Warning):
        raise DataError(_fault(block, first)) from None
    if table.shape != (len(block), 1 + len(COLUMNS)):
        raise DataError(_fault(block, first))
    return table


def _fault(block: list[bytes], first: int) -> str:
    """The message for the first line that is not 91 numbers."""
    for number, line in enumerate(block, first):
        cells = line.decode("latin-1").split(",") if line.strip() else []
        if len(cells) != 1 + len(COLUMNS):
            return f"line {number} of {_MEMBER} has {len(cells)} numbers, not {1 + len(COLUMNS)}"
        for cell in cells:
            try:
                float(cell)
            except ValueError:
                return f"line {number} of {_MEMBER}: {cell.strip()[:20]!r} is not a number"
    return f"lines {first} to {first + len(block) - 1} of {_MEMBER} are not numbers between commas"
