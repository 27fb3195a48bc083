"""The airline set, YearPredictionMSD, ctslice and song, from small files of the form that their sites describe."""

import bz2
import gzip
import hashlib
import tracemalloc

import numpy as np
import pytest
from bombs import zipped
from small_tables import npz

from gpbench.data import archives, cards, files, load, readers, sources, splits
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import checksum
from gpbench.data.readers import airline_csv, airline_npz
from gpbench.errors import DataError

RNG = np.random.default_rng(0)
ROW = b",".join([b"2001", *[b"1.5"] * 90])


def archive(*rows: bytes, name: str = "YearPredictionMSD.txt") -> bytes:
    return zipped({name: b"".join(row + b"\n" for row in rows)})


def songs(count: int) -> tuple[np.ndarray, bytes]:
    """A table and its archive: years, and inputs of five decimals as the official file has them."""
    table = np.column_stack([RNG.integers(1922, 2012, count), RNG.normal(0, 100, (count, 90)).round(5)])
    return table, archive(*(b",".join([b"%d" % row[0], *(b"%.5f" % x for x in row[1:])]) for row in table))


def test_the_year_is_the_first_column_and_90_inputs_follow_whatever_the_line_ends_and_463715_songs_train():
    table, content = songs(7)
    raw = readers.year_zip([content], {"rows": 7})
    np.testing.assert_array_equal(raw.target, table[:, 0])
    np.testing.assert_array_equal(raw.X, table[:, 1:].astype(np.float32))
    dataset = from_raw(cards.read("year"), raw)
    assert dataset.X.shape == (7, 90)
    assert (dataset.columns[0], dataset.columns[-1]) == ("timbre_mean1", "timbre_covariance78")
    content = archive(ROW + b"\r", ROW)
    assert readers.year_zip([content], {"rows": 2}).target.tolist() == [2001, 2001]
    assert cards.read("year")["splits"]["set"] == "official" and splits.sizes(cards.read("year")) == (463_715, 51_630)


WHOLE = archive(*[ROW] * 300)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (archive(ROW, ROW, ROW[:-4], ROW), "line 3 of YearPredictionMSD.txt has 90 numbers, not 91"),
        (archive(*[ROW + b",1"] * 4), "line 1 of YearPredictionMSD.txt has 92 numbers, not 91"),
        (archive(ROW, ROW, ROW, ROW[:-3] + b"red"), "line 4 of YearPredictionMSD.txt: could not convert .* b'red"),
        (archive(*[ROW] * 3), "has 3 lines, not 4"),
        (archive(*[ROW] * 5), "has more than 4 lines"),
        (archive(ROW, name="other.txt"), r"no member 'YearPredictionMSD.txt'"),
        (WHOLE[: len(WHOLE) // 2], "no archive, or is damaged"),
        (WHOLE.replace(WHOLE[60:90], bytes(30)), "no archive, or is damaged"),
    ],
)
def test_another_file_is_one_clear_line(content, message, one_line):
    with one_line(DataError, match=message):
        readers.year_zip([content], {"rows": 4})


def test_the_text_is_never_whole_in_memory_and_refused_beyond_the_cap(monkeypatch):
    content = archive(*[ROW.replace(b"1.5", b"-1.2345678")] * 20_000)
    text = 20_000 * 995
    tracemalloc.start()
    raw = readers.year_zip([content], {"rows": 20_000})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert raw.X.nbytes < peak < raw.X.nbytes + text / 8  # X itself is a quarter of the text
    monkeypatch.setattr(archives, "LARGEST", 1092)  # the size of the table
    for rows in ([ROW] * 3, [bytes(2000)]):
        with pytest.raises(DataError, match="unpacks to more than 1,092 bytes"):
            readers.year_zip([archive(*rows)], {"rows": 3})


NAMES = ("ctslice", "song")
ROWS = [b"1,2,3\n", b"4,5,6\n", b"7,8,9\n"]


def table(*rows: bytes) -> bytes:
    return gzip.compress(b"".join(rows), mtime=0)


FILES = {"data.csv.gz": table(*ROWS), "test_mask.csv.gz": table(b"1,0\n", b"0,1\n", b"0,1\n")}


def toy(of: str, monkeypatch, **served: bytes) -> dict:
    """The card of a data set with `FILES` instead of its own, whose address serves `data` in place of theirs."""
    answers = FILES | ({"data.csv.gz": served["data"]} if served else {})
    monkeypatch.setattr(files, "from_address", lambda at, name, sha256: files.check(answers[name], sha256, name))
    card = cards.read(of)
    first, *others = (source for source in card["sources"] if "data1.csv.gz" not in source["files"])
    first = {**first, "files": {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}}
    return {**card, "sources": [first, *others], "folds_checksum": checksum({"yang": np.array([0, 1, 1], "<i8")})}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_is_read_has_a_checksum_and_the_others_are_for_people(name):
    card = cards.read(name)
    for source in card["sources"]:
        if source["kind"] == "copy":
            assert all(source["files"].values()) and list(source["files"])[-1] == "test_mask.csv.gz"
        else:
            with pytest.raises(files.Absent, match=r"without the .*folds of the cop"):
                sources.obtain(card, source, mirror=None)


@pytest.mark.parametrize(("name", "archive"), [("ctslice", "slice"), ("song", "song")])
def test_the_folds_are_those_of_the_mirror(name, archive, mirror):
    card = cards.read(name)
    with np.load(mirror / f"{archive}_splits_only.npz") as arrays:
        fold = arrays["fold"].astype("<i8")
    assert fold.shape == (card["rows"],) and checksum({"yang": fold}) == card["folds_checksum"]
    counts = np.bincount(fold)
    assert len(counts) == splits.count(card) and counts.max() - counts.min() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_the_card_give_rows_and_folds_and_the_store_keeps_both(name, monkeypatch):
    card = toy(name, monkeypatch)
    dataset = load(card)
    assert dataset.y.tolist() == [3, 6, 9] and splits.indices(card, dataset, 0)[1].tolist() == [0]
    again = load(card, offline=True)
    assert again.folds["yang"].tolist() == [0, 1, 1] and again.checksum == dataset.checksum


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
    rows = [[1, 3, 4, 5, 130, 60, 810, 1998, 1999, 0], [2, 2, 6, 800, 900, 50, 810, 0, 2007, 3]]
    rows += [[4, 30, 3, 2359, 2400, 41, 200, 2008, 2004, 1], [2, 1, 5, 800, 900, 50, 810, -1, -1, 3]]
    rows += [[1, 3, 4, 2003, 2211, 116, 810, 1998, 1999, -14]]
    names = ["month", "day_of_month", "day_of_week", "dep_time_hhmm", "arr_time_hhmm", "air_time_min", "distance_mi"]
    names += ["plane_year", "plane_issue_year", "arr_delay_min"]
    return [npz(**dict(zip(names, np.array(rows, np.int16).T)))]


def test_official_files_give_complete_flights_in_minutes_and_years_of_age_or_since_registration():
    raw = airline_csv(official(), {"variant": "plane_year"})
    assert raw.X.tolist() == BUILT
    assert raw.target.tolist() == [0, 0, 1]  # on time counts as not delayed
    assert raw.columns == tuple(cards.read("airline")["columns"])
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
        official(planes="tail,year\nN1,1998\n"),
        [official()[0][:60], PLANES.encode()],
    ],
    ids=["empty", "short", "text", "planes", "cut"],
)
def test_other_files_are_one_clear_line(blobs, one_line):
    with one_line(DataError, match=r"not the flights and planes of the 2009 data expo: .+"):
        airline_csv(blobs, {"variant": "plane_year"})


@pytest.mark.parametrize(("variant", "late"), [("plane_year", 0.476), ("issue_year", 0.475)])
def test_the_mirror_has_the_rows_of_the_papers(variant, late, mirror):
    card = cards.checked({**cards.read("airline"), "variant": variant})
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)  # compares the checksum with the card's
    assert len(dataset.y) == card["rows"] == sum(card["counts"].values())
    assert round((dataset.y > 0).mean(), 3) == late
    assert dataset.X[:, [0, 3, 4]].max(axis=0).tolist() == [4, 1440, 1440] and dataset.X.min() == 0
    train, test = splits.indices(card, dataset, 0)
    assert len(test) == 10_000 and len({*train, *test}) == card["rows"]
