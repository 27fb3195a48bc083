"""Tables as people have them: indices, encodings, decimal commas, markers, booleans; each read right or refused."""

import bz2
import io
import lzma
import zipfile

import numpy as np
import pandas
import pytest

from gpbench.data import cells, new_rows, tables
from gpbench.data.conversion import from_raw
from gpbench.errors import DataError

CARD = {"name": "mine", "task": "regression"}
FRAME = pandas.DataFrame({"speed": np.linspace(3, 1, 12).round(2), "depth": np.arange(12) % 5 / 4, "drag": range(12)})
FILTERED = FRAME.assign(drag=FRAME.drag * 1.5).iloc[[1, 4, 5, 7, 8, 9, 10, 11, 2, 3]]
CSV = FRAME.assign(drag=FRAME.drag * 1.5).to_csv(index=False)


def feather(frame) -> bytes:
    file = io.BytesIO()
    frame.to_feather(file, compression="uncompressed")
    return file.getvalue()


def zipped(*names) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, CSV)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        FILTERED.to_parquet(),
        FILTERED.rename_axis("run").to_parquet(),
        FILTERED.to_csv().encode(),
        pandas.read_csv(io.StringIO(FILTERED.to_csv())).to_csv(index=False).encode(),
        FILTERED.assign(nr=range(1, 11)).to_csv(index=False).encode(),
    ],
    ids=["parquet", "named index", "csv", "unnamed: 0", "numbered rows"],
)
def test_what_labels_the_rows_is_no_input_unless_the_card_keeps_it(content):
    raw = tables.table([content], {"target": "drag"})
    assert raw.columns == ("speed", "depth") and len(raw.left_out) == 1
    np.testing.assert_array_equal(raw.X, FILTERED[["speed", "depth"]])
    label = (set(cells.read(content, {}).rows[0]) - {"speed", "depth", "drag"}).pop()
    assert label in tables.table([content], {"target": "drag", "keep": [label]}).columns


def test_an_order_that_is_not_that_of_the_rows_stays_an_input():
    content = FILTERED.assign(hour=[*range(9), 10]).to_csv(index=False).encode()
    assert "hour" in tables.table([content], {"target": "drag"}).columns


@pytest.mark.parametrize(
    "content",
    [
        bz2.compress(CSV.encode()),
        lzma.compress(CSV.encode()),
        zipped("a.csv"),
        feather(FRAME.assign(drag=FRAME.drag * 1.5)),
        CSV.encode("utf-16"),
        b"\xef\xbb\xbf" + CSV.encode(),
        CSV.replace("\n", "\r\n").encode(),
        CSV.replace("\n", "\n\n").encode(),
    ],
    ids=["bz2", "xz", "zip", "feather", "utf-16", "utf-8 mark", "crlf", "blank lines"],
)
def test_a_table_is_the_same_in_every_wrapping(content):
    ours, plain = (tables.table([blob], {"target": "drag"}) for blob in (content, CSV.encode()))
    assert ours.columns == plain.columns == ("speed", "depth")
    np.testing.assert_array_equal(ours.X, plain.X)
    np.testing.assert_array_equal(ours.target.astype(float), plain.target.astype(float))


def test_bytes_of_another_encoding_are_refused_with_their_line_and_read_with_the_encoding():
    content = "a,kind\n1,Bär\n2,Bor\n3,Bör\n".encode("latin-1")
    with pytest.raises(DataError, match=r"line 2: byte 0xe4 is not UTF-8; .* `encoding: latin-1`"):
        tables.table([content], {"target": "kind"})
    raw = tables.table([content], {"target": "kind", "encoding": "latin-1"})
    assert raw.target.tolist() == ["Bär", "Bor", "Bör"]
    with pytest.raises(DataError, match="encoding: 'latin-9x' is unknown"):
        tables.table([content], {"target": "kind", "encoding": "latin-9x"})


def test_decimal_commas_thousands_comments_and_trailing_delimiters():
    content = b"# export of the sensor\na;b;y;;\n1.234,5;2,0;3,5;;\n-1,5;-200;4;;\n"
    options = {"target": "y", "delimiter": ";", "decimal": ",", "thousands": ".", "comment": "#", "missing": [-200]}
    raw = tables.table([content], options)
    np.testing.assert_array_equal(raw.X, [[1234.5, 2.0], [-1.5, np.nan]])
    assert from_raw(CARD | {"incomplete": "drop"}, raw).y.tolist() == [3.5] and raw.left_out == ()
    with pytest.raises(DataError, match="'2,0' is not a number; state the decimal sign"):
        tables.table([content], options | {"decimal": ".", "thousands": None, "drop": ["a"]})


@pytest.mark.parametrize("marker", ["-200", -200, -200.0, ["?", "-200"]])
def test_markers_that_are_numbers_are_compared_as_numbers(marker):
    raw = tables.table([b"a,y\n-200.0,1\n-200,2\n-2e2,3\n3,4\n"], {"target": "y", "missing": marker})
    assert np.isnan(raw.X[:, 0]).tolist() == [True, True, True, False]


def test_codes_are_compared_as_numbers_and_yaml_words_are_explained():
    content = b"grade,valve,y\n1.0,on,1\n2.0,off,2\n"
    codes = {"grade": {1: 0, 2: 1}, "valve": {"on": 1, "off": 0}}
    np.testing.assert_array_equal(tables.table([content], {"target": "y", "codes": codes}).X, [[0, 1], [1, 0]])
    with pytest.raises(DataError, match="'on' is not among its codes, True, False; quote yes, no, on and off"):
        tables.table([content], {"target": "y", "codes": codes | {"valve": {True: 1, False: 0}}})
    with pytest.raises(DataError, match=r"'2\.0' is not among its codes, 1"):
        tables.table([content], {"target": "y", "codes": codes | {"grade": {1: 0}}})


def test_a_missing_group_is_no_group():
    raw = tables.table([b"a,site,y\n1,north,1\n2,,2\n3,south,3\n"], {"target": "y", "group": "site"})
    with pytest.raises(DataError, match=r"the column of `group` has 1 missing cell \(row 2\); .*`incomplete: drop`"):
        from_raw(CARD, raw)
    assert from_raw(CARD | {"incomplete": "drop"}, raw).groups.tolist() == [0, 1]


def test_a_cell_may_hold_line_ends_and_odd_spaces():
    content = 'text,a,y\n"two\nlines",1,1\n"page\x0cbreak\u2028and",2,2\n'.encode()
    raw = tables.table([content], {"target": "y", "drop": ["text"]})
    assert raw.X.tolist() == [[1.0], [2.0]]


def test_columns_whose_names_are_numbers_are_taken_by_name():
    raw = tables.table([b"2020,1,y\n5,6,7\n8,9,1\n"], {"target": "y", "drop": [1]})
    assert raw.columns == ("2020",)


NEW = from_raw(CARD, tables.table([CSV.encode()], {"target": "drag"}))
OWN = {"name": "mine", "sources": [{"kind": "file", "path": "mine.csv", "target": "drag"}]}


def test_new_rows_are_taken_by_name_in_any_order_and_case():
    frame = pandas.DataFrame({"Depth": [0.5], "note": ["x"], "SPEED": [2.0]})
    assert new_rows.new_inputs(frame, OWN, NEW).tolist() == [[2.0, 0.5]]


@pytest.mark.parametrize(
    ("text", "header", "message"),
    [
        ("sped,depth\n1,2\n", True, "no column 'speed'; the table has sped, depth"),
        ("1,2\n3,4\n", True, r"the first row is of numbers, not of names \(speed, depth\); --no-header"),
        ("speed,Speed,depth\n1,2,3\n", True, None),
        ("Speed,SPEED,depth\n1,2,3\n", True, "the header has 'speed' more than once"),
        ("1,2,3\n", False, "the first row has 3 cells; mine has 2 inputs"),
        ("speed,depth\n1,2\n", False, "column 'speed', row 1: 'speed' is not a number"),
        ("speed,depth\n", True, "the table has no rows"),
        ("speed;depth\n1;2\n", True, "no column 'speed', 'depth'; the table has speed;depth; is its delimiter that"),
    ],
)
def test_names_that_lack_are_told_and_never_replaced_by_positions(tmp_path, text, header, message):
    path = tmp_path / "new.csv"
    path.write_text(text)
    if message is None:  # the exact spelling wins
        assert new_rows.new_inputs(path, OWN, NEW, header=header).tolist() == [[1.0, 3.0]]
        return
    with pytest.raises(DataError, match=message):
        new_rows.new_inputs(path, OWN, NEW, header=header)


def test_a_table_without_header_is_read_by_position_where_that_is_said(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("1,2\n3,4\n")
    assert new_rows.new_inputs(path, OWN, NEW, header=False).tolist() == [[1, 2], [3, 4]]
    assert new_rows.new_inputs(pandas.DataFrame([[1.0, 2.0]]), OWN, NEW, header=False).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n", r"new.csv: the first row is of numbers, not of names \(speed, depth\); --no-header"),
        ("speed,depth\n1,red\n", "new.csv: column 'depth', row 1: 'red' is not a number; write it as the table of"),
        ("speed,depth\n1,2024-01-01\n", "row 1: '2024-01-01' is a date or a time; write it as the table of mine"),
        ("speed,depth\n1,2\n3\n", "row 2 has 1 cells, not 2; write it as the table of mine has it$"),
        ("speed,depth\n1,\n\n,3\n", r"column 'speed' has 1 missing or infinite cells \(row 2\), and so have 1"),
        ("speed,depth\n1,\xe4\n", "line 2: byte 0xe4 is not UTF-8; write it as the table of mine has it$"),
    ],
)
def test_messages_about_new_rows_give_no_advice_for_a_card(tmp_path, text, message):
    (tmp_path / "new.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message) as caught:
        new_rows.new_inputs(tmp_path / "new.csv", OWN, NEW)
    assert "`" not in str(caught.value) and "card" not in str(caught.value)


def test_missing_cells_name_their_column_in_the_table_their_rows_and_the_remedies():
    options = {"target": "y", "encode": {"c": "onehot"}}
    raw = tables.table([b"c,x,y\nA,1,1\n,2,2\nB,,3\n,4,4\n"], options)
    with pytest.raises(
        DataError, match=r"'c' has 2 missing .* cells \(rows 2, 4\), and so have 1 more; .*`impute`, or"
    ):
        from_raw(CARD, raw)
