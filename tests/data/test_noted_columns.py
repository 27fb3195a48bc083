"""What a first look notes of columns, and how it reads them."""

from pathlib import Path

import numpy as np
import pytest
from small_tables import table

from gpbench.api.words import with_cards
from gpbench.data import cards, sources

N = 40


def each(cell) -> list[str]:
    """A column of N cells."""
    return [str(cell(k)) for k in range(N)]


# cells, what the first look says of them (None: nothing), and the first values of the column (None: left out)
COLUMNS = {
    "truth words and digits": (["True", "FALSE", "1", "0"] * 10, "c has 0, 1, FALSE, True: they are 1", [1, 0, 1, 0]),
    "lower truth words": (["true", "0"] * 20, "c has 0, true: they are 1 and 0", [1, 0]),
    "an id": (each(lambda k: 1000 + k), "c has a different whole number in each row, 1000 to 1039", [1000, 1001]),
    "an id in another order": (each(lambda k: 1000 + 7 * k % N), "1000 to 1039; `drop: [c]` if", [1000, 1007]),
    "an id with a point": (each(lambda k: f"{500 + k}.0"), "c has a different whole number in each row", [500, 501]),
    "dates": (
        each(lambda k: f"2024-{1 + k // 20:02}-{1 + k % 20:02}"),
        "c left out (40 dates, as '2024-01-01'; for splits by time `order: c`)",
        None,
    ),
    "dates of another form": (
        each(lambda k: f"{1 + k % 20}/{1 + k // 20}/2024"),
        'for splits by time `order: {c: "%d/%m/%Y"}`',
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
    "numbers far apart": (each(lambda k: 1000 + 3 * k), None, [1000, 1003]),
    "numbers": (each(lambda k: f"{k}.5"), None, [0.5, 1.5]),
    "numbers that repeat": (each(lambda k: 1000 + k // 2), None, [1000, 1000]),
    "powers": (each(lambda k: f"{k + 1}e-3"), None, [0.001, 0.002]),
    "truth words": (["True", "FALSE"] * 20, None, [1, 0]),
    "ones and zeros": (["1", "0"] * 20, None, [1, 0]),
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


def test_a_first_look_writes_codes_that_are_read_as_they_were(first_look):
    for cells in (["1E2", "20B"], ["007", "x"], ["0e12", "y"], ["12:30", "no"], ["1_0", "2024-01-31"], ["null", "~"]):
        line, dataset = first_look(beside(cells * 20), "y")
        assert "codes for c" in line and dataset.X[:2, 0].tolist() == [0, 1], cells


def test_a_first_look_at_several_targets_trains_each_on_its_rows(first_look):
    targets = {name: ["" if k % step == 0 else k for k in range(24)] for name, step in {"a": 3, "b": 4}.items()}
    line, dataset = first_look({"x": [k % 5 + 0.5 for k in range(24)], **targets}, "[a,b]")
    assert "2 rows with missing cells left out; 10 rows that lack a target count for the others" in line
    assert np.isnan(dataset.y).sum(axis=0).tolist() == [6, 4]
