"""Odd tables, and tables as spreadsheets, R and people export them: read right, or refused in a line that says why."""

import datetime
import decimal
import gzip
import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bombs import zipped
from small_tables import excel

from gpbench.api.words import with_cards
from gpbench.data import cards, sources, splits, tables
from gpbench.data.checks import check
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset
from gpbench.errors import DataError, GpbenchError

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


DAYS = [datetime.datetime(2021, 3, day) for day in (4, 5)]

READ = {
    "mixed line ends": (b"a,y\r\n1,2\n3,4\r", [1, 3]),
    "empty columns at the end": (b"a,y,,\n1,2,,\n3,4,,\n", [1, 3]),
    "spaces around cells": ("a , y\n 1\u00a0, 2\n\u00a03 ,4\n".encode(), [1, 3]),
    "a number near zero": (csv("1e-400", "3"), [0, 3]),
    "gzip in zip": (zipped({"a": gzip.compress(CSV)}), [1, 3]),
    "true and false in Excel": (excel(["a", "y"], [True, 2], [False, 4]), [1, 0]),
    "an empty column in Excel": (excel(["a", "y", None], [1, 2, None], [3, 4, None]), [1, 3]),
    "decimals": (parquet([decimal.Decimal("1.50"), decimal.Decimal("2.25")], [2.0, 4.0]), [1.5, 2.25]),
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
    "infinity": (csv("inf", "3"), "column 'a' has 1 missing or infinite cells"),
    "a target beyond floats": (b"a,y\n1,1e400\n2,3\n", "column 'y' has 1 missing or infinite cells"),
    "a date": (csv("2021-03-04", "2021-03-05"), "'2021-03-04' is a date or a time; .*`drop`"),
    "a time": (csv("12:30", "13:00"), "'12:30' is a date or a time; .*`drop`"),
    "underscores": (csv("1", "100_3"), "row 2: '100_3' is not a number: take out its underscores"),
    "a question mark": (csv("1", "?"), 'row 2: .* is not a number.*missing: "[?]"'),
    "thin spaces": (csv("1\u2009234", "3"), "state the sign between thousands"),
    "a minus that is no hyphen": (csv("\u22125", "3"), "is not a number: its minus sign is not `-`"),
    "a target of 2^53 + 1": (b"a,y\n1,9007199254740993\n2,3\n", "column 'y', row 1: '9007199254740993' has more"),
    "an accountant's minus": (csv("(5)", "3"), r"'\(5\)' is not a number"),
    "digits beyond 2^53": (csv("9007199254740993", "3"), "row 1: '9007199254740993' has more digits than a number"),
    "an unsigned integer": (parquet(pa.array([2**64 - 1, 0], pa.uint64()), [2.0, 4.0]), "has more digits than"),
    "an empty column": (b"a,b,y\n,1,2\n,2,4\n", "column 'a' has 2 missing or infinite cells"),
    "one column": (b"y\n1\n2\n", "no inputs"),
    "nothing": (b"", "the table has no rows"),
    "UTF-16 without its mark": ("ä,y\n1,2\n".encode("utf-16-le"), "null bytes, as UTF-16 .*`encoding: utf-16-le"),
    "a null byte": (b"a,y\n1,2\n3\0,4\n", "row 2: .* is not a number"),
    "a zip of two files": (zipped({"a": CSV, "b": CSV}), r"a zip archive of 2 files \(a, b\); name one by `member`"),
    "an archive in an archive": (zipped({"a": zipped({"a": zipped({"a": CSV})})}), "packed more than twice: unpack it"),
    "a date in Excel": (excel(["a", "y"], [DAYS[0], 2], [DAYS[1], 4]), "is a date or a time"),
    "times": (parquet(DAYS, [2.0, 4.0]), "is a date or a time"),
    "truth with missing": (parquet([True, None], [2.0, 4.0]), "column 'a' has 1 missing"),
    "no rows in Parquet": (parquet(pa.array([], pa.int64()), pa.array([], pa.float64())), "the table has no rows"),
    "an unknown encoding": (CSV, "encoding: 'latin-9x' is unknown", {"encoding": "latin-9x"}),
    "gaps in two columns": (
        b"c,x,y\nA,1,1\n,2,2\nB,,3\n,4,4\n",
        r"'c' has 2 missing .* cells \(rows 2, 4\), and so have 1 more; .*`impute`, or",
        {"encode": {"c": "onehot"}},
    ),
    "an old Feather file": (b"FEA1" + CSV, "a Feather file of version 1: write it again"),
    "an old Excel file": (b"\xd0\xcf\x11\xe0" + CSV, "not a readable workbook: Cannot detect file format"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_odd_table_is_refused_in_a_line(name, one_line):
    content, message, *options = REFUSED[name]
    with one_line(DataError, match=message, most=300):
        read(content, **(options[0] if options else {}))


def test_classes_keep_letters_and_digits_and_lose_spaces_at_their_ends():
    assert read(b"a,y\n1,Yes\n2,yes \n3, no\n", "multiclass").classes == ("Yes", "no", "yes")
    numbers = read(b"a,y\n1,10\n2,9\n3,2\n", "multiclass")  # in numerical order
    assert numbers.classes == ("2", "9", "10") and numbers.y.tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="3 classes; say `task: multiclass`"):
        read(b"a,y\n1,Yes\n2,yes\n3,no\n", "binary")
    large = b"a,y\n1,9007199254740993\n2,9007199254740992\n3,7\n"
    assert read(large, "multiclass").classes == ("7", "9007199254740992", "9007199254740993")


N = 24


def table(header: str, cells) -> str:
    return f"{header}\n" + "".join(f"{cells(k)},{k % 5}.5\n" for k in range(N))


A = [k * 7 % 11 for k in range(N)]
X = ("a",)
ONEHOT = {"encode": {"b": "onehot"}}
PARTS = {"split": "b", "splits": {"set": "fixed"}}
# the header and a row's cells before the target; keys of the source and of the card; the inputs, or the refusal
CASES = {
    "row names of write.csv": ('"","a","y"', lambda k: f'"{k + 1}",{A[k]}', {}, X),
    "row names of write.table": ("a,y", lambda k: f"{k + 1},{A[k]}", {}, "as R writes names of rows: write the table"),
    "percent": ("a,y", lambda k: f"{A[k]}%", {}, "'0%' is not a number: take out what is no digit"),
    "names apart in case": ("a,A,y", lambda k: f"{A[k]},{k % 3}", {}, ("a", "A")),
    "doubled by pandas": ("a,a.1,y", lambda k: f"{A[k]},{A[k]}", {}, ("a", "a.1")),
    "lines in text": ("b,a,y", lambda k: f'"{k}\n""more""\x0c\u2028, text",{A[k]}', {"drop": ["b"]}, X),
    "beyond floats": ("a,y", lambda k: "1e400" if k == 5 else A[k], {}, r"'a' has 1 .* cells \(row 6\); mend them$"),
    "squares beyond floats": ("a,y", lambda k: f"{A[k]}e200", {}, X),
    "an empty column": ("b,a,y", lambda k: f",{A[k]}", {"impute": "mean"}, "impute: 'b' is missing in all"),
    "a level for each row": ("a,b,y", lambda k: f"{A[k]},c{k}", ONEHOT, ("a", *sorted(f"b=c{k}" for k in range(N)))),
    "parts in capitals": ("a,b,y", lambda k: f"{A[k]},{['Train', 'TEST '][k % 2]}", PARTS, X),
    "a group that is the target": ("a,y", lambda k: A[k], {"group": "y"}, "column 'y' is the target and `group`"),
    "an order that is the target": ("a,y", lambda k: A[k], {"order": "y"}, "column 'y' is the target and `order`"),
    "a target that is left out": ("a,y", lambda k: A[k], {"drop": ["y"]}, "column 'y' is the target and in `drop`"),
    "kept and left out": ("a,y", lambda k: A[k], {"keep": ["a"], "drop": ["a"]}, "'a' is in `keep` and in `drop`"),
    "a line beyond the last": ("a,y", lambda k: A[k], {"skip": [2, 999]}, "`skip` lists line 999, and the file has"),
    "a title": ("My data,\na,y", lambda k: A[k], {}, "has no 'y', and line 2 has: leave out the lines .*`skip: 1`"),
    "units": ("a,y\nkg,m", lambda k: A[k], {}, r"line 2 has no numbers \(kg, m\): .*by `skip: \[2\]`"),
    "a comment": ("# a rig, 4\na,y", lambda k: A[k], {}, r"begins with '#', as comments do: state `comment: \"#\"`"),
    "a comment that is left out": ("# rig, 4\na,y", lambda k: A[k], {"comment": "#"}, X),
    "labels of rows": ("b,a,y", lambda k: f"{k:08x}-aa,{A[k]}", {}, "'00000000-aa' is not a number; name the column"),
    "tabs": ("a\tb\ty", lambda k: f"{A[k]}\t1", {}, r"row 1 has 2 cells, not 1 \(line 2: .*\); is the delimiter right"),
    "a name like a level": ("b=c1,b,y", lambda k: f"{A[k]},c{k % 2}", ONEHOT, "two inputs have the same name"),
    "a name like an indicator": (
        "a,a missing,y",
        lambda k: f"{A[k] or ''},1",
        {"impute": "mean"},
        "there is an input 'a missing' already",
    ),
    "names of numbers": ("1,2,y", lambda k: f"{A[k]},{k % 3}", {}, ("1", "2")),
    "a name of a number": ("2,1,y", lambda k: f"{A[k]},{k % 3}", {"drop": [1]}, ("2",)),
    "indices twice": (",Unnamed: 0,a,y", lambda k: f"{k},{k},{A[k]}", {}, X),
    "dates as targets": ("a,z,y", lambda k: f"{A[k]},2021-03-{k + 1:02}", {"target": "z"}, "'2021-03-01' is a date or"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_exported_table_is_read_right_or_refused_in_a_line(name, tmp_path, one_line):
    header, cells, keys, expected = CASES[name]
    (tmp_path / "own.csv").write_text(table(header, cells), encoding="utf-8")
    of_card = {key: value for key, value in keys.items() if key in ("task", "impute", "splits")}
    source = {"kind": "file", "path": "own.csv", "target": "y"} | {k: v for k, v in keys.items() if k not in of_card}
    card = cards.checked({"name": "own", "task": "regression", "sources": [source]} | of_card)
    if isinstance(expected, str):
        with one_line(GpbenchError, match=expected, most=300):
            splits.indices(card, dataset := sources.load(card, config_dirs=[tmp_path]), 0)
            check(card, dataset)
        return
    dataset = sources.load(card, config_dirs=[tmp_path])
    assert dataset.columns == expected and len(dataset.y) == N and str(check(card, dataset))
    if expected == X:
        scale = 1e200 if "squares" in name else 1.0
        np.testing.assert_allclose(dataset.X[:, 0], np.array(A) * scale)


@pytest.mark.parametrize("name", ["percent", "a title", "row names of write.table"])
def test_a_first_look_says_why_there_are_no_inputs_and_writes_no_card(name, tmp_path):
    header, cells, _, expected = CASES[name]
    (tmp_path / "own.csv").write_text(table(header, cells), encoding="utf-8")
    with pytest.raises(GpbenchError, match=f"own.csv: .*{expected}"):
        with_cards([f"dataset={tmp_path}/own.csv", "target=y"], [])
    assert not (tmp_path / "dataset").exists()
