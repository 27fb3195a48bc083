"""A user's own table: read by a card beside it, noted by a first look, and new rows for a model of it."""

import io
from pathlib import Path

import numpy as np
import pandas
import pytest
from small_tables import table

from gpbench.api.words import with_cards
from gpbench.data import cards, cells, load, new_rows, prepare, sources, splits, tables
from gpbench.data.conversion import from_raw
from gpbench.errors import DataError

TEXT = """
name: mine
task: {task}
sources: [{{kind: file, path: mine.csv, target: kind{more}}}]
"""
ROWS = [f"{i * 7 % 31},{i % 7},{'ham' if i % 3 else 'spam'}" for i in range(30)]


@pytest.fixture
def write(tmp_path, new_file):
    def write(rows=ROWS, task="binary", more="", header="a,b,kind"):
        new_file(tmp_path / "dataset" / "mine.yaml", TEXT.format(task=task, more=more))
        (tmp_path / "dataset" / "mine.csv").write_text("\n".join([header, *rows]) + "\n")
        return write.load

    write.load = lambda: load(cards.read("mine", [tmp_path]), config_dirs=[tmp_path])
    return write


def test_a_csv_beside_its_card_walks_the_whole_way(write, tmp_path, store):
    dataset = write()()
    assert dataset.columns == ("a", "b") and dataset.classes == ("ham", "spam")
    assert dataset.y[:3].tolist() == [1.0, -1.0, -1.0]
    train, test = splits.indices(cards.read("mine", [tmp_path]), dataset, 0)
    assert prepare(dataset, train, test).X.shape == (27, 2)
    assert not store.exists()  # a user's file is not copied
    (tmp_path / "dataset" / "mine.csv").unlink()
    with pytest.raises(DataError, match=f"no file mine.csv in .*{tmp_path}/dataset"):
        write.load()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"header": "a,b,sort"}, "no column 'kind'; the table has a, b, sort"),
        ({"rows": ["1,2,1", "2,2,1.5"], "task": "count"}, r"column 'kind', row 2: 1.5 is no count \(0, 1, 2, ...\)"),
        ({"more": ", drop: [a, b]"}, "mine.yaml: file mine.csv: no inputs"),
        ({"task": "binary\nrows: 7"}, "the table has 30 rows in use, but its card says 7"),
        ({"task": "binary\ncolumns: [a, a]"}, r"mine\.yaml: file mine\.csv: two inputs have the same name"),
        ({"more": ", codes: {sprt: {ham: 1}}"}, "codes: no column 'sprt' among the inputs; known are a, b"),
        ({"more": ", labels: {ham: 0, spam: 1}"}, r"must have the codes \[-1, 1\]"),
    ],
)
def test_a_mistake_in_the_data_gives_one_clear_line(write, arguments, message, one_line):
    with one_line(DataError, match=message):
        write(**arguments)()


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


def test_an_order_of_its_own_stays_an_input_and_names_are_taken_in_their_case_or_by_position(tmp_path):
    content = FILTERED.assign(hour=[*range(9), 10]).to_csv(index=False).encode()
    assert "hour" in tables.table([content], {"target": "drag"}).columns
    (tmp_path / "new.csv").write_text("speed,Speed,depth\n1,2,3\n")
    assert new_rows.new_inputs(tmp_path / "new.csv", OWN, NEW).tolist() == [[1.0, 3.0]]
    path = tmp_path / "new.csv"
    path.write_text("1,2\n3,4\n")
    assert new_rows.new_inputs(path, OWN, NEW, header=False).tolist() == [[1, 2], [3, 4]]
    assert new_rows.new_inputs(pandas.DataFrame([[1.0, 2.0]]), OWN, NEW, header=False).tolist() == [[1, 2]]


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


CELLS = 40


def each(cell) -> list[str]:
    """A column of so many cells."""
    return [str(cell(k)) for k in range(CELLS)]


# cells, what the first look says of them (None: nothing), and the first values of the column (None: left out)
COLUMNS = {
    "truth words and digits": (["True", "FALSE", "1", "0"] * 10, "c has 0, 1, FALSE, True: they are 1", [1, 0, 1, 0]),
    "lower truth words": (["true", "0"] * 20, "c has 0, true: they are 1 and 0", [1, 0]),
    "an id": (each(lambda k: 1000 + 7 * k % CELLS), "number in each row, 1000 to 1039; `drop: [c]` if", [1000, 1007]),
    "an id with a point": (each(lambda k: f"{500 + k}.0"), "c has a different whole number in each row", [500, 501]),
    "dates": (
        each(lambda k: f"2024-{1 + k // 20:02}-{1 + k % 20:02}"),
        "c left out (40 dates, as '2024-01-01'; for splits by time `order: c`)",
        None,
    ),
    "dates of two forms": (
        each(lambda k: f"{1 + k % 9}/{1 + k // 9}/2024"),
        '`order: {c: "%d/%m/%Y" or "%m/%d/%Y"}`',
        None,
    ),
    "times with dates": (each(lambda k: f"0{1 + k % 3}.01.2024 {k % 24:02}:{k:02}"), '"%d.%m.%Y %H:%M"', None),
    "few dates": (["2024-01-01", "2024-01-02", "2024-01-03"] * 13 + ["2024-01-01"], "c has dates; for splits", [1, 0]),
    "two dates": (["01.02.2024", "02.02.2024"] * 20, 'c has dates; for splits by time `order: {c: "%d.%m.%Y"', [0, 1]),
    "one number in two spellings": (["1E2", "100", "7", "8"] * 10, "c: 100 and 1E2 are one number", [100, 100]),
    "zeros": (["0e12", "0e73", "7", "8"] * 10, "c: 0e12 and 0e73 are one number", [0, 0]),
    "part codes": (["1E2", "100", "1E3", "20B"] * 10, None, [0, 1]),
    "mostly gaps": (each(lambda k: "" if k % 5 else k), "c left out (32 of 40 cells are missing)", None),
    "numbers and texts": (each(lambda k: k if k % 3 else f"PC {k}"), "left out (26 numbers and 14 texts, as 'PC", None),
    "texts": (each(lambda k: f"{k} kg"), "c left out (40 texts, as '0 kg')", None),
    "errors": (each(lambda k: k if k % 9 else "#DIV/0!"), "5 rows with missing cells left out", [1, 2]),
    "numbers far apart": (each(lambda k: 1000 + 3 * k), None, [1000, 1003]),
    "numbers that repeat": (each(lambda k: 1000 + k // 2), None, [1000, 1000]),
    "powers": (each(lambda k: f"{k + 1}e-3"), None, [0.001, 0.002]),
    "truth words": (["True", "FALSE"] * 20, None, [1, 0]),
    "versions": (["1.2.3", "1.2.4"] * 20, None, [0, 1]),
}


@pytest.fixture
def first_look(tmp_path, monkeypatch, capsys):
    """A function from columns and targets to what a first look says, and the data set of the card that it writes."""
    monkeypatch.chdir(tmp_path)

    def look(columns, target):
        Path("t.csv").write_bytes(table(columns))
        Path("dataset/t.yaml").unlink(missing_ok=True)
        _, folders = with_cards(["dataset=t.csv", f"target={target}"], [])
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line, sources.load(cards.read("t", folders), config_dirs=folders, quiet=True)

    return look


def beside(cells):
    """Columns of an input of few values, these cells and a target."""
    return {"c": cells, "x": [k * k % 7 + 0.5 for k in range(len(cells))], "y": each(lambda k: k)}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_first_look_notes_what_a_column_may_be_and_nothing_of_usual_ones(name, first_look):
    cells, note, first = COLUMNS[name]
    line, dataset = first_look(beside(cells), "y")
    if note:
        assert note in line
    else:
        assert not any(word in line for word in ("dates", "another whole", "one number", "they are"))
    if first:
        assert dataset.X[: len(first), 0].tolist() == first
    else:
        assert dataset.columns == ("x",)


def test_a_first_look_writes_codes_that_are_read_as_they_were_and_trains_several_targets_on_their_rows(first_look):
    for pair in (["1E2", "20B"], ["007", "x"], ["0e12", "y"], ["12:30", "no"], ["1_0", "2024-01-31"], ["null", "~"]):
        line, dataset = first_look(beside(pair * 20), "y")
        assert "codes for c" in line and dataset.X[:2, 0].tolist() == [0, 1], pair
    targets = {name: ["" if k % step == 0 else k for k in range(24)] for name, step in {"a": 3, "b": 4}.items()}
    line, dataset = first_look({"x": [k % 5 + 0.5 for k in range(24)], **targets}, "[a,b]")
    assert "2 rows with missing cells left out; 10 rows that lack a target count for the others" in line
    assert np.isnan(dataset.y).sum(axis=0).tolist() == [6, 4]
