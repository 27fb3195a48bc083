"""The airline set: US flights of January to April 2008, delayed or not (Hensman, Fusi & Lawrence 2013).

Two files make it: flights (`2008.csv.bz2`, read row by row, so that only numbers stay in memory) and planes
(`plane-data.csv`), joined by tail number.  A flight counts if no cell that is used is missing, which cancelled and
diverted flights always have, and if its plane's year is known: the `variant` of the card says which year, `plane_year`
(when the plane was built) or `issue_year` (when it was registered).  Times of day, hhmm, become minutes since midnight.

Rows are put in lexicographic order, since files with the same rows need not have them in the same order.
"""

import csv
import io
from array import array
from collections.abc import Mapping, Sequence

import numpy as np

from gpbench.data import archives
from gpbench.data.dataset import Raw
from gpbench.errors import DataError

COLUMNS = ("month", "day_of_month", "day_of_week", "departure", "arrival", "air_time", "distance", "plane_age")
_FLIGHTS = ("Month", "DayofMonth", "DayOfWeek", "DepTime", "ArrTime", "AirTime", "Distance", "ArrDelay")
_ARRAYS = (
    "month",
    "day_of_month",
    "day_of_week",
    "dep_time_hhmm",
    "arr_time_hhmm",
    "air_time_min",
    "distance_mi",
    "arr_delay_min",
)
_YEARS = ("plane_year", "issue_year")


def airline_npz(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """One NumPy array per column, flights and planes joined already; a year of 0 or less is unknown."""
    columns = archives.arrays(blobs[0], *_ARRAYS, "plane_year", "plane_issue_year")
    years = dict(zip(_YEARS, (columns["plane_year"], columns["plane_issue_year"])))
    return _raw([columns[name] for name in _ARRAYS], years, options)


def airline_csv(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """The official files: flights, compressed or not, then planes.  Raises DataError where one is something else."""
    flights, planes = blobs
    try:
        year_of = _planes(planes)
        table = array("h")  # 16 bits hold every cell of the rows that are used: 43 MB in all
        rows = csv.reader(io.TextIOWrapper(archives.decompressed(flights), encoding="latin-1", newline=""))
        header = next(rows)
        positions, tail = [header.index(name) for name in _FLIGHTS], header.index("TailNum")
        for row in rows:
            if row[tail] in year_of and "NA" not in (cells := [row[i] for i in positions]) and int(cells[0]) <= 4:
                table.extend([*map(int, cells), *year_of[row[tail]]])
    except (ValueError, IndexError, OverflowError, StopIteration, EOFError, OSError, csv.Error) as error:
        raise DataError(f"not the flights and planes of the 2009 data expo: {error or 'no rows'}") from None
    columns = np.frombuffer(table, np.int16).reshape(-1, len(_FLIGHTS) + len(_YEARS)).T
    return _raw(list(columns[: len(_FLIGHTS)]), dict(zip(_YEARS, columns[len(_FLIGHTS) :])), options)


def _planes(content: bytes) -> dict[str, tuple[int, int]]:
    """Tail number -> year built, year registered; 0 where unknown."""
    planes = csv.DictReader(io.StringIO(content.decode("latin-1"), newline=""))
    if missing := {"tailnum", "year", "issue_date"} - set(planes.fieldnames or ()):
        raise ValueError(f"the table of planes has no column {sorted(missing)[0]!r}")
    return {plane["tailnum"]: (_year(plane["year"]), _year(plane["issue_date"])) for plane in planes}


def _year(text: str | None) -> int:
    """The year at the end of `2004` or `05/08/1986`; 0 for `None` and nothing."""
    digits = (text or "").strip()[-4:]
    return int(digits) if digits.isdecimal() else 0


def _raw(flights: Sequence[np.ndarray], years: Mapping[str, np.ndarray], options: Mapping) -> Raw:
    """The rows whose plane's year is known, in order, and whether each was late (1) or not (0)."""
    year = years[options["variant"]]
    known = year > 0
    inputs: list[np.ndarray] = [column[known].astype(np.int16) for column in flights]
    late = (inputs.pop() > 0).astype(np.int8)
    for i in (COLUMNS.index("departure"), COLUMNS.index("arrival")):
        inputs[i] = 60 * (inputs[i] // 100) + inputs[i] % 100
    inputs.append((2008 - year[known]).astype(np.int16))
    order = np.lexsort(np.stack([late, *inputs[::-1]]))
    return Raw(np.stack([column[order] for column in inputs], axis=1), late[order], COLUMNS)
