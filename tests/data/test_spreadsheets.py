"""Workbooks and Parquet tables are read as the same table in csv is."""

import functools
import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
import small_tables
from bombs import ods

from gpbench.core import memory
from gpbench.data import archives, arrow, tables
from gpbench.data import cells as text
from gpbench.errors import DataError

FRAME = pandas.DataFrame(
    {"cup": ["paper", "china", "paper"], "minutes": [5.4, 1e-17, 3.0], "n": [1, 2, 3], "y": [1.5, 2.0, 0.1]}
)
OPTIONS = {"target": "y", "codes": {"cup": {"paper": 0, "china": 1}}}


def excel(**sheets) -> bytes:
    file = io.BytesIO()
    with pandas.ExcelWriter(file) as writer:
        for name, frame in sheets.items():
            frame.to_excel(writer, sheet_name=name, index=False)
    return file.getvalue()


def parquet(frame=FRAME) -> bytes:
    return frame.to_parquet(index=False)


def test_a_sheet_is_chosen_by_its_name_and_empty_cells_are_missing_and_not_zero():
    content = excel(notes=pandas.DataFrame({"text": ["none"]}), rows=FRAME)
    assert tables.table([content], OPTIONS | {"sheet": "rows"}).X.shape == (3, 3)
    with pytest.raises(DataError, match="no sheet 'row'; the file has notes, rows"):
        tables.table([content], OPTIONS | {"sheet": "row"})
    frame = FRAME.assign(minutes=[1.0, None, 3.0])
    for content in (parquet(frame), excel(a=frame)):
        assert np.isnan(tables.table([content], OPTIONS).X[1, 1])
        last = tables.table([content], OPTIONS | {"target": -1})
        assert last.columns == ("cup", "minutes", "n") and last.target.astype(float).tolist() == [1.5, 2.0, 0.1]


def test_a_damaged_file_and_a_table_that_needs_more_memory_than_is_free_are_one_line(monkeypatch):
    content = archives.Content(b"", b"")
    content.size = 10**9
    monkeypatch.setattr(memory, "free_host_memory", lambda: 4 * 10**9)
    archives.require_memory(3 * 10**9, content)
    monkeypatch.setattr(memory, "free_host_memory", lambda: 2 * 10**9)
    with pytest.raises(DataError, match=r"needs 3\.0 GB, and 2\.0 GB of memory are free: split it, or save it for"):
        archives.require_memory(3 * 10**9, content)
    for content in (parquet()[:-20], parquet()[:50], excel(a=FRAME)[:400], b"PK\x03\x04" + bytes(100)):
        with pytest.raises(DataError, match="not a readable"):
            tables.table([content], OPTIONS)


A = [7 * k % 61 for k in range(1, 61)]


def sheet(change=lambda sheet: None) -> bytes:
    """A sheet with the columns a and y that has been changed."""
    return small_tables.excel(["a", "y"], *([a, 2 * a] for a in A), change=change)


def in_xml(content: bytes, before: str, after: str) -> bytes:
    """The workbook with another text in its sheet."""
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file := io.BytesIO(), "w") as new:
        for name in old.namelist():
            text = old.read(name)
            if name.startswith("xl/worksheets"):
                assert before.encode() in text
                text = text.replace(before.encode(), after.encode())
            new.writestr(name, text)
    return file.getvalue()


def hide(*rows):
    def change(sheet):
        for row in rows:
            sheet.row_dimensions[row].hidden = True

    return change


def merge(*ranges):
    return lambda sheet: [sheet.merge_cells(cells) for cells in ranges]


@pytest.mark.parametrize("dimension", ["A1:B21", "A1", "A1:XFD1048576"])
def test_a_sheet_has_all_of_its_rows_whatever_its_dimension_says(dimension):
    raw = tables.table([in_xml(sheet(), 'dimension ref="A1:B61"', f'dimension ref="{dimension}"')], {"target": "y"})
    assert raw.X[:, 0].tolist() == A and raw.columns == ("a",)


@pytest.mark.parametrize(
    "change, rows, note",
    [
        (hide(5, 7, 30), 60, "3 rows of the sheet are hidden, as by a filter, and read like the others"),
        (merge("A2:A4", "B5:B6"), 57, "merged cells (A2:A4, B5:B6): the first has the value, and the others are empty"),
        (merge("D1:E1"), 60, "merged cells (D1:E1): the first has the value, and the others are empty"),
        (lambda sheet: None, 60, None),
    ],
)
def test_what_a_sheet_says_beside_its_cells_is_said(change, rows, note, tmp_path, monkeypatch, printed, streams):
    monkeypatch.chdir(tmp_path)
    Path("t.xlsx").write_bytes(sheet(change))
    first_look = streams("run", "dataset=t.xlsx", "target=y", "method=constant", "split=0", "run.results=r").err
    checked = printed("data", "check", "t", "--config-dir", ".")
    assert f"t: regression, {rows} rows" in checked
    assert (note is None or note in first_look) and (note or "alone tells") in checked
    assert ("hidden" in checked) == ("hidden" in (note or "")) and ("merged" in checked) == ("merged" in (note or ""))


def test_a_formula_whose_value_the_file_lacks_is_named_and_gaps_and_rows_without_numbers_are_where_they_stand():
    content = sheet(lambda sheet: sheet.__setitem__("A9", "=A8+7"))
    with pytest.raises(DataError, match=r"column 'a', row 8: '=A8\+7' is a formula whose value the file lacks: save"):
        tables.table([content], {"target": "y"})
    valued = in_xml(content, "<f>A8+7</f><v />", "<f>A8+7</f><v>56</v>")
    assert tables.table([valued], {"target": "y"}).X[:, 0].tolist() == A
    error = sheet(lambda sheet: sheet.__setitem__("A9", "#N/A"))
    assert np.isnan(tables.table([error], {"target": "y", "missing": "#N/A"}).X[7, 0])
    with pytest.raises(DataError, match="column 'a', row 8: '#N/A' is not a number"):
        tables.table([error], {"target": "y"})
    in_notes = sheet(lambda sheet: sheet.__setitem__("C9", "=A8+7"))  # a column that is left out
    assert tables.table([in_notes], {"target": "y"}).X[:, 0].tolist() == A
    content = sheet(lambda sheet: sheet.move_range("A3:B61", rows=1000))
    raw = tables.table([content], {"target": "y"})
    assert raw.X[:, 0].tolist() == A and "1,000 blank" in raw.account
    bare = in_xml(in_xml(sheet(), ' r="61"', ""), ' r="A61"', "")  # what counts on
    assert tables.table([bare], {"target": "y"}).X[:, 0].tolist() == A


NAMES = [f'<table:table-cell office:value-type="string"><text:p>{name}</text:p></table:table-cell>' for name in "ay"]
ROW = '<table:table-cell office:value-type="float" office:value="%s"/>' * 2
ODS = ods(NAMES, ROW % (1.5, 2), ROW % (3, 4))
XLS = Path(__file__).with_name("small.xls").read_bytes()  # of Excel 97, by xlwt


@pytest.mark.parametrize("content", [ODS, XLS], ids=["ods", "xls"])
def test_other_workbooks_are_read_as_those_of_excel(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("json.py").write_text("1 / 0")  # is not what reads them
    monkeypatch.syspath_prepend("")  # as in a notebook
    raw = tables.table([content], {"target": "y"})
    assert ["not said" in note.text for note in raw.notes] == [True]
    assert raw.X.tolist() == [[1.5], [3]] and raw.target.astype(float).tolist() == [2, 4]
    assert raw.account == "2 rows of 3 lines (1 of names)"
    with pytest.raises(DataError, match="no sheet 't'; the file has s"):
        tables.table([content], {"target": "y", "sheet": "t"})
    with pytest.raises(DataError, match="not a readable workbook"):
        tables.table([content[: len(content) // 2]], {"target": "y"})


def feather(table: pa.Table, **options) -> bytes:
    pyarrow.feather.write_feather(table, file := io.BytesIO(), **options)
    return file.getvalue()


def parquet_of(table: pa.Table) -> bytes:
    pyarrow.parquet.write_table(table, file := io.BytesIO())
    return file.getvalue()


WRITERS = {"parquet": parquet_of, "feather": feather, "gzip": lambda table: gzip.compress(parquet_of(table))}
FORMS = {"zstd": {"compression": "zstd"}, "plain": {"compression": "uncompressed"}, "batches": {"chunksize": 7}}
WRITERS |= {name: functools.partial(feather, **options) for name, options in FORMS.items()}
FLAT = {
    "text": pa.array(["x", "1.5", None, "x"] * 5),
    "category": pa.array(["3", "2", "3", None] * 5).dictionary_encode(),
    "long": pa.array(["7", "2", "", "9"] * 5, pa.large_string()),
    "view": pa.array(["7", "2", "", "9"] * 5, pa.string_view()),
    "whole": pa.array([-1, None, 2**53, 3] * 5),
    "byte": pa.array([255, 0, 7, 3] * 5, pa.uint8()),
    "half": pa.array([0.5, float("nan"), -0.0, 1] * 5, pa.float16()),
    "real": pa.array([0.1 * k for k in range(20)]),
    "flag": pa.array([True, False, None, True] * 5),
    "none": pa.nulls(20),
}
NESTED = {
    "list": pa.array([[1.0, 2.0], [], None, [3.0]] * 5),
    "struct": pa.array([{"u": 1, "v": "a"}] * 20),
    "map": pa.array([[("k", 1)]] * 20, pa.map_(pa.string(), pa.int64())),
    "id": pa.array([b"0123456789abcdef"] * 20, pa.uuid()),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_columns_of_every_type_are_the_texts_of_a_csv_file_and_nested_ones_are_left_out(writer):
    content = WRITERS[writer](pa.table(FLAT | NESTED))
    (header, *rows), _, *_, notes = text.read(content, {})
    assert header == [*FLAT]
    expected = [
        ["" if cell is None else str(int(cell) if cell is True or cell is False else cell) for cell in column]
        for column in (column.to_pylist() for column in FLAT.values())
    ]
    assert [*map(list, zip(*rows))] == expected
    (note,) = notes
    assert all(f"{one} (" in note for one in NESTED) and note.startswith("left out, since a cell is no number or text")


@pytest.mark.parametrize("writer", ["parquet", "feather"])
def test_a_target_that_is_left_out_is_named_with_the_reason(writer):
    content = WRITERS[writer](pa.table(FLAT | NESTED))
    with pytest.raises(DataError, match=r"no column 'list'; the table has .*: list \(list<"):
        tables.table([content], {"target": "list"})
    with pytest.raises(DataError, match=r"no column is of numbers or texts: list \(list<"):
        tables.table([WRITERS[writer](pa.table(NESTED))], {"target": "list"})


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_the_sizes_of_a_feather_file_are_those_that_arrow_unpacks(compression):
    table = pa.table({one: FLAT[one] for one in ("text", "real", "category")})
    messages = pa.py_buffer(feather(table, compression=compression))[8:]
    sizes = [arrow._sizes(message) for message in pa.ipc.MessageReader.open_stream(messages)]
    assert sum(rows for rows, _ in sizes) == 20
    batches = sum(size for rows, size in sizes if rows)
    assert table.nbytes <= batches + 100 and batches <= table.nbytes + 64 * 10
