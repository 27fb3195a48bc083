"""Odd tables: each is read right, or refused in one line that says what is wrong."""

import datetime
import decimal
import gzip
import io
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpbench.data import tables
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset
from gpbench.errors import DataError

CSV = b"a,y\n1,2\n3,4\n"


def read(content: bytes, task: str = "regression", **options) -> Dataset:
    """The data set of a table with the target y."""
    return from_raw({"name": "odd", "task": task}, tables.table([content], {"target": "y", **options}))


def csv(*cells: str) -> bytes:
    """A table with these cells in the column a."""
    return "".join(["a,y\n", *(f'"{cell}",{2 * k + 2}\n' for k, cell in enumerate(cells))]).encode()


def parquet(*columns, names=("a", "y")) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays([*map(pa.array, columns)], [*names]), file)
    return file.getvalue()


def zipped(**files: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def excel(*rows) -> bytes:
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.save(file)
    return file.getvalue()


DAYS = [datetime.datetime(2021, 3, day) for day in (4, 5)]

READ = {
    "byte order mark": (b"\xef\xbb\xbf" + CSV, [1, 3]),
    "carriage returns alone": (CSV.replace(b"\n", b"\r"), [1, 3]),
    "mixed line ends": (b"a,y\r\n1,2\n3,4\r", [1, 3]),
    "a line end in quotes": (b'a,y\n"1\n",2\n3,4\n', [1, 3]),
    "a delimiter at the ends of rows": (b"a,y\n1,2,\n3,4,\n", [1, 3]),
    "empty columns at the end": (b"a,y,,\n1,2,,\n3,4,,\n", [1, 3]),
    "spaces around cells": ("a , y\n 1\u00a0, 2\n\u00a03 ,4\n".encode(), [1, 3]),
    "signs and bare points": (csv("+1", ".5"), [1, 0.5]),
    "leading zeros": (csv("007", "010"), [7, 10]),
    "a number near zero": (csv("1e-400", "3"), [0, 3]),
    "ARFF with a byte order mark": (
        b"\xef\xbb\xbf@relation r\n@attribute a real\n@attribute y real\n@data\n1,2\n3,4\n",
        [1, 3],
    ),
    "all in quotes": (b'"a","y"\n"1","2"\n"3","4"\n', [1, 3]),
    "gzip in zip": (zipped(a=gzip.compress(CSV)), [1, 3]),
    "zip in gzip": (gzip.compress(zipped(a=CSV)), [1, 3]),
    "true and false in Excel": (excel(["a", "y"], [True, 2], [False, 4]), [1, 0]),
    "true and false": (csv("TRUE", "False"), [1, 0]),
    "true and false in Parquet": (parquet([True, False], [2.0, 4.0]), [1, 0]),
    "an empty column in Excel": (excel(["a", "y", None], [1, 2, None], [3, 4, None]), [1, 3]),
    "decimals": (parquet([decimal.Decimal("1.50"), decimal.Decimal("2.25")], [2.0, 4.0]), [1.5, 2.25]),
    "a dictionary of numbers": (parquet(pa.array(["1", "2"]).dictionary_encode(), [2.0, 4.0]), [1, 2]),
    "text as bytes": (parquet([b"1", b"2"], [2.0, 4.0]), [1, 2]),
    "the ends of int8": (parquet(pa.array([127, -128], pa.int8()), [2.0, 4.0]), [127, -128]),
    "float32": (parquet(pa.array([0.1, 2], pa.float32()), [2.0, 4.0]), [float(np.float32(0.1)), 2]),
    "whole numbers to 2^53": (csv(str(2**53), str(-(2**53))), [2.0**53, -(2.0**53)]),
}


@pytest.mark.parametrize("name", READ)
def test_an_odd_table_is_read_right(name):
    content, inputs = READ[name]
    dataset = read(content)
    assert dataset.columns == ("a",) and dataset.X[:, 0].tolist() == inputs and dataset.y.tolist() == [2, 4]


REFUSED = {
    "a name twice with a space": (b"a, a,y\n1,2,3\n", "the header has 'a' more than once"),
    "mixed separators": (b"a,b;y\n1,2;3\n", "no column 'y'; the table has a, b;y"),
    "infinity": (csv("inf", "3"), "column 'a' has 1 missing or infinite cells"),
    "a target beyond floats": (b"a,y\n1,1e400\n2,3\n", "column 'y' has 1 missing or infinite cells"),
    "a date": (csv("2021-03-04", "2021-03-05"), "'2021-03-04' is a date or a time; .*`drop`"),
    "a time": (csv("12:30", "13:00"), "'12:30' is a date or a time; .*`drop`"),
    "underscores": (csv("1", "100_3"), "row 2: '100_3' is not a number: take out its underscores"),
    "a decimal comma": (csv("1", "1,5"), "row 2: .* is not a number.*decimal"),
    "thousands": (csv("1", "1,234,567"), "row 2: .* is not a number.*thousands"),
    "a question mark": (csv("1", "?"), 'row 2: .* is not a number.*missing: "[?]"'),
    "not available": (csv("1", "n/a"), "row 2: .* is not a number.*missing"),
    "thin spaces": (csv("1\u2009234", "3"), "state the sign between thousands"),
    "a minus that is no hyphen": (csv("\u22125", "3"), "is not a number: its minus sign is not `-`"),
    "Arabic digits": (csv("\u0661", "3"), "'\u0661' is not a number"),
    "wide digits": (csv("\uff11", "3"), "is not a number"),
    "hexadecimal": (csv("0x1F", "3"), "'0x1F' is not a number"),
    "a fraction": (csv("1/2", "3"), "'1/2' is not a number"),
    "a target of 2^53 + 1": (b"a,y\n1,9007199254740993\n2,3\n", "column 'y', row 1: '9007199254740993' has more"),
    "an accountant's minus": (csv("(5)", "3"), r"'\(5\)' is not a number"),
    "a complex number": (csv("1+2j", "3"), "'1\\+2j' is not a number"),
    "mixed kinds": (csv("1", "red"), "column 'a', row 2: 'red' is not a number"),
    "an error of Excel": (csv("#DIV/0!", "3"), "'#DIV/0!' is not a number"),
    "digits beyond 2^53": (csv("9007199254740993", "3"), "row 1: '9007199254740993' has more digits than a number"),
    "an unsigned integer": (parquet(pa.array([2**64 - 1, 0], pa.uint64()), [2.0, 4.0]), "has more digits than"),
    "an empty column": (b"a,b,y\n,1,2\n,2,4\n", "column 'a' has 2 missing or infinite cells"),
    "one column": (b"y\n1\n2\n", "no inputs"),
    "nothing": (b"", "the table has no rows"),
    "UTF-16 without its mark": ("ä,y\n1,2\n".encode("utf-16-le"), "null bytes, as UTF-16 .*`encoding: utf-16-le"),
    "a null byte": (b"a,y\n1,2\n3\0,4\n", "row 2: .* is not a number"),
    "a zip of two files": (zipped(a=CSV, b=CSV), r"a zip archive of 2 files \(a, b\); name one by `member`"),
    "an archive in an archive": (zipped(a=zipped(a=zipped(a=CSV))), "packed more than twice: unpack it"),
    "a cell without an end": (csv("1" * 200_000, "3"), "field larger than field limit|1 missing or infinite"),
    "a date in Excel": (excel(["a", "y"], [DAYS[0], 2], [DAYS[1], 4]), "is a date or a time"),
    "nested": (
        parquet([{"u": 1}, {"u": 2}], [2.0, 4.0]),
        r"no inputs; left out, since a cell is no number or text: a \(struct<u: int64>\)",
    ),
    "lists": (parquet([[1, 2], [3]], [2.0, 4.0]), r"no inputs; left out, since .*: a \(list<element: int64>\)"),
    "times": (parquet(DAYS, [2.0, 4.0]), "is a date or a time"),
    "durations": (parquet(pa.array([1, 2], pa.duration("s")), [2.0, 4.0]), "is a date or a time"),
    "truth with missing": (parquet([True, None], [2.0, 4.0]), "column 'a' has 1 missing"),
    "names twice in Parquet": (parquet([1, 2], [3, 4], [5, 6], names="aay"), "the header has 'a' more than once"),
    "no rows in Parquet": (parquet(pa.array([], pa.int64()), pa.array([], pa.float64())), "the table has no rows"),
    "an unknown encoding": (CSV, "encoding: 'latin-9x' is unknown", {"encoding": "latin-9x"}),
    "gaps in two columns": (
        b"c,x,y\nA,1,1\n,2,2\nB,,3\n,4,4\n",
        r"'c' has 2 missing .* cells \(rows 2, 4\), and so have 1 more; .*`impute`, or",
        {"encode": {"c": "onehot"}},
    ),
    "an old Feather file": (b"FEA1" + CSV, "a Feather file of version 1: write it again"),
    "an old Excel file": (b"\xd0\xcf\x11\xe0" + CSV, r"the old form \(.xls\): save it as .xlsx or csv"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_odd_table_is_refused_in_a_line(name):
    content, message, *options = REFUSED[name]
    with pytest.raises(DataError, match=message) as caught:
        read(content, **(options[0] if options else {}))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_classes_keep_letters_and_digits_and_lose_spaces_at_their_ends():
    assert read(b"a,y\n1,Yes\n2,yes \n3, no\n", "multiclass").classes == ("Yes", "no", "yes")
    with pytest.raises(DataError, match="3 classes; say `task: multiclass`"):
        read(b"a,y\n1,Yes\n2,yes\n3,no\n", "binary")
    large = b"a,y\n1,9007199254740993\n2,9007199254740992\n3,7\n"
    assert read(large, "multiclass").classes == ("7", "9007199254740992", "9007199254740993")
