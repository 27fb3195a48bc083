"""Excel and Parquet tables are read as the same table in csv is."""

import io

import numpy as np
import pandas
import pytest

from gpbench.data import archives, tables
from gpbench.errors import DataError

FRAME = pandas.DataFrame(
    {"cup": ["paper", "china", "paper"], "minutes": [5.4, 1e-17, 3.0], "n": [1, 2, 3], "y": [1.5, 2.0, 0.1]}
)
OPTIONS = {"target": "y", "codes": {"cup": {"paper": 0, "china": 1}}}


def excel(**sheets) -> bytes:
    pytest.importorskip("openpyxl")
    file = io.BytesIO()
    with pandas.ExcelWriter(file) as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return file.getvalue()


def parquet(frame=FRAME) -> bytes:
    return frame.to_parquet(index=False)


@pytest.mark.parametrize("content", [parquet, lambda: excel(a=FRAME)], ids=["parquet", "excel"])
@pytest.mark.parametrize("target", ["y", -1])
def test_a_table_is_the_same_whatever_holds_it(content, target):
    options = OPTIONS | {"target": target}
    theirs = tables.table([FRAME.to_csv(index=False).encode()], {"header": True, **options})
    ours = tables.table([content()], options)
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.target.astype(float), theirs.target.astype(float))
    assert ours.columns == theirs.columns


def test_a_sheet_is_chosen_by_its_name():
    content = excel(notes=pandas.DataFrame({"text": ["none"]}), rows=FRAME)
    assert tables.table([content], OPTIONS | {"sheet": "rows"}).X.shape == (3, 3)
    with pytest.raises(DataError, match="no sheet 'row'; the file has notes, rows"):
        tables.table([content], OPTIONS | {"sheet": "row"})


def test_empty_cells_are_missing_and_not_zero():
    frame = FRAME.assign(minutes=[1.0, None, 3.0])
    for content in (parquet(frame), excel(a=frame)):
        assert np.isnan(tables.table([content], OPTIONS).X[1, 1])


def test_a_damaged_or_huge_file_is_one_line(monkeypatch):
    for content in (parquet()[:-20], parquet()[:50], excel(a=FRAME)[:400], b"PK\x03\x04" + bytes(100)):
        with pytest.raises(DataError, match="not a readable"):
            tables.table([content], OPTIONS)
    monkeypatch.setattr(archives, "LARGEST", 100)
    for content in (parquet(), excel(a=FRAME)):
        with pytest.raises(DataError, match="bytes of memory, and 1,600 are the most for its size: save it as csv"):
            tables.table([content], OPTIONS)
