"""The airline set: which flights count, what their columns hold, and that both formats give the same arrays."""

import bz2

import numpy as np
import pytest
from small_tables import npz

from gpbench.data import cards, sources, splits
from gpbench.data.conversion import from_raw
from gpbench.data.formats import airline_csv, airline_npz
from gpbench.errors import DataError

HEADER = "Year,Month,DayofMonth,DayOfWeek,DepTime,ArrTime,TailNum,AirTime,ArrDelay,Distance,Cancelled,Diverted"
FLIGHTS = [
    "2008,4,30,3,2359,2400,N2,41,1,200,0,0",
    "2008,1,3,4,2003,2211,N1,116,-14,810,0,0",
    "2008,1,3,4,5,130,N1,60,0,810,0,0",
    "2008,2,1,5,NA,NA,N1,NA,NA,810,1,0",  # cancelled
    "2008,2,1,5,800,NA,N1,NA,NA,810,0,1",  # diverted
    "2008,2,1,5,800,900,N9,50,3,810,0,0",  # an unknown plane
    "2008,2,1,5,800,900,N3,50,3,810,0,0",  # a plane of no known year
    "2008,2,2,6,800,900,N4,50,3,810,0,0",  # built in year 0, registered in 2007
    "2008,5,1,4,800,900,N1,50,3,810,0,0",  # May
]
PLANES = "tailnum,type,issue_date,year\nN1,Corporation,05/08/1999,1998\nN2,,01/02/2004,2008\nN3\nN4,,11/30/2007,0000\n"
# month, day, day of week, departure, arrival, air time, distance, age
BUILT = [[1, 3, 4, 5, 90, 60, 810, 10], [1, 3, 4, 1203, 1331, 116, 810, 10], [4, 30, 3, 1439, 1440, 41, 200, 0]]


def official(lines=FLIGHTS, planes=PLANES, pack=bz2.compress) -> list[bytes]:
    return [pack("\n".join([HEADER, *lines, ""]).encode()), planes.encode()]


def mirrored() -> list[bytes]:
    """The flights of known planes as arrays, in an order of their own."""
    rows = np.array(
        [
            [1, 3, 4, 5, 130, 60, 810, 1998, 1999, 0],
            [2, 2, 6, 800, 900, 50, 810, 0, 2007, 3],
            [4, 30, 3, 2359, 2400, 41, 200, 2008, 2004, 1],
            [2, 1, 5, 800, 900, 50, 810, -1, -1, 3],
            [1, 3, 4, 2003, 2211, 116, 810, 1998, 1999, -14],
        ],
        dtype=np.int16,
    )
    names = ["month", "day_of_month", "day_of_week", "dep_time_hhmm", "arr_time_hhmm", "air_time_min", "distance_mi"]
    names += ["plane_year", "plane_issue_year", "arr_delay_min"]
    return [npz(**dict(zip(names, rows.T)))]


def test_official_files_give_complete_flights_of_january_to_april_in_minutes_and_years_of_age():
    raw = airline_csv(official(), {"variant": "plane_year"})
    assert raw.X.tolist() == BUILT
    assert raw.target.tolist() == [0, 0, 1]  # on time counts as not delayed
    assert raw.columns == tuple(cards.read("airline")["columns"])


def test_the_age_since_registration_keeps_other_flights():
    raw = airline_csv(official(), {"variant": "issue_year"})
    assert raw.X[:, -1].tolist() == [9, 9, 1, 4] and raw.target.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("variant", ["plane_year", "issue_year"])
def test_both_formats_and_any_order_of_rows_give_the_same_arrays(variant):
    card = {"name": "airline", "task": "binary", "labels": {"0": -1, "1": 1}}
    tables = [(airline_csv, official()), (airline_csv, official(FLIGHTS[::-1], pack=bytes)), (airline_npz, mirrored())]
    checksums = {from_raw(card, read(blobs, {"variant": variant})).checksum for read, blobs in tables}
    assert len(checksums) == 1


@pytest.mark.parametrize(
    "blobs",
    [
        [b"", b""],
        official(["2008,1,3,4,2003"]),
        official(["2008,1,3,4,20:03,2211,N1,116,-14,810,0,0"]),
        official(["2008,1,3,4,2003,2211,N1,116,-14,99999,0,0"]),
        official(planes="tail,year\nN1,1998\n"),
        [official()[0][:60], PLANES.encode()],
    ],
    ids=["empty", "short", "text", "large", "planes", "cut"],
)
def test_other_files_are_one_clear_line(blobs):
    with pytest.raises(DataError, match=r"not the flights and planes of the 2009 data expo: .+") as caught:
        airline_csv(blobs, {"variant": "plane_year"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("variant", "late"), [("plane_year", 0.476), ("issue_year", 0.475)])
def test_the_mirror_has_the_rows_of_the_papers(variant, late, mirror):
    card = cards.checked({**cards.read("airline"), "variant": variant})
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)  # compares the checksum with the card's
    assert len(dataset.y) == card["rows"] == sum(card["counts"].values())
    assert round((dataset.y > 0).mean(), 3) == late
    assert dataset.X[:, [0, 3, 4]].max(axis=0).tolist() == [4, 1440, 1440] and dataset.X.min() == 0
    train, test = splits.indices(card, dataset, 0)
    assert len(test) == 10_000 and len({*train, *test}) == card["rows"]
