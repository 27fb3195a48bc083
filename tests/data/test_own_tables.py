"""Tables as people have them: columns that number the rows, and new rows by name or by position."""

import io

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


NEW = from_raw(CARD, tables.table([CSV.encode()], {"target": "drag"}))
OWN = {"name": "mine", "sources": [{"kind": "file", "path": "mine.csv", "target": "drag"}]}


@pytest.mark.parametrize(
    ("text", "header", "message"),
    [
        ("sped,depth\n1,2\n", True, "no column 'speed'; the table has sped, depth"),
        ("1,2\n3,4\n", True, r"new.csv: the first row is of numbers, not of names \(speed, depth\); --no-header"),
        ("Speed,SPEED,depth\n1,2,3\n", True, "the header has 'speed' more than once"),
        ("1,2,3\n", False, "the first row has 3 cells; mine has 2 inputs"),
        ("speed,depth\n1,2\n", False, "column 'speed', row 1: 'speed' is not a number"),
        ("speed,depth\n", True, "the table has no rows"),
        ("speed;depth\n1;2\n", True, "no column 'speed', 'depth'; the table has speed;depth; is its delimiter that"),
        ("speed,depth\n1,red\n", True, "new.csv: column 'depth', row 1: 'red' is not a number; write it as the table"),
        ("speed,depth\n1,2024-01-01\n", True, "row 1: '2024-01-01' is a date or a time; write it as the table of mine"),
        ("speed,depth\n1,2\n3\n", True, "row 2 has 1 cells, not 2; write it as the table of mine has it$"),
        ("speed,depth\n1,\n\n,3\n", True, r"column 'speed' has 1 missing or infinite cells \(row 2\), and so have 1"),
        ("speed,depth\n1,\xe4\n", True, "line 2: byte 0xe4 is not UTF-8; write it as the table of mine has it$"),
    ],
)
def test_new_rows_that_do_not_fit_are_a_line_without_advice_for_a_card(tmp_path, text, header, message):
    (tmp_path / "new.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=message) as caught:
        new_rows.new_inputs(tmp_path / "new.csv", OWN, NEW, header=header)
    assert "`" not in str(caught.value) and "card" not in str(caught.value)


def test_of_two_names_that_differ_in_case_the_exact_one_is_taken(tmp_path):
    (tmp_path / "new.csv").write_text("speed,Speed,depth\n1,2,3\n")
    assert new_rows.new_inputs(tmp_path / "new.csv", OWN, NEW).tolist() == [[1.0, 3.0]]


def test_a_table_without_header_is_read_by_position_where_that_is_said(tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("1,2\n3,4\n")
    assert new_rows.new_inputs(path, OWN, NEW, header=False).tolist() == [[1, 2], [3, 4]]
    assert new_rows.new_inputs(pandas.DataFrame([[1.0, 2.0]]), OWN, NEW, header=False).tolist() == [[1, 2]]
