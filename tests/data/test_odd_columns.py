"""Odd columns, drawn at random and by kind: labels, levels, groups and folds are compared in one way everywhere."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from small_tables import alike, read, steps, table

from gpbench.data import new_rows, row_labels, tables
from gpbench.data.dataset import Dataset
from gpbench.errors import DataError
from gpbench.estimators.table import fit_table

NUMBERS = [
    *("3", "3.0", "+3", "03", "3.", "30e-1", "0.3E1"),  # one number
    *("100", "1E2", "1e+2", "100.00", "0100"),
    *("0", "-0", "0.0", "0e12", "0e73", "00"),
    *(".5", "0.5", "5e-1", "0.50"),
    *("-7", "-7.0", "-07", "12", "1e3", "1000"),
]
CODES = ["20B", "A7", "1E2x", "1_000", "0x1F", "1,000", "\u0663", "\uff13", "1 2", "12:30", "2024-01-31", "#4", "3a"]
WORDS = ["yes", "no", "Yes", "inf", "n/a", "-", "Oslo", "TRUE", "e5", "na1"]


def column(cells: Sequence[str], **options) -> Dataset:
    """A table with these cells in the column c."""
    y = steps(len(cells))
    return read({"c": cells, "x": y, "y": y}, **options)


levels = lambda cells, **options: column(cells, encode={"c": "onehot"}, **options).X[:, :-1].argmax(axis=1)
order = lambda cells, **options: column(cells, encode={"c": "ordinal"}, **options).X[:, 0]
classes = lambda cells, **options: read({"x": steps(len(cells)), "y": cells}, "multiclass", **options).y
groups = lambda cells, **options: column(cells, group="c", **options).groups
"""The level, number, class or group of each row."""


def frame(cells: Sequence[str]) -> np.ndarray:
    """The level of each row of a DataFrame, as the estimators have it."""
    return fit_table(pd.DataFrame({"c": cells}), "odd", {"c": "onehot"}, None)[1].argmax(axis=1)


PLACES = {"levels": levels, "ordinal": order, "labels": classes, "groups": groups, "estimators": frame}


def drawn(seed: int) -> list[str]:
    """A column of 40 cells: of numbers in many spellings, with codes or words among them in two of three."""
    rng = random.Random(seed)
    pool = rng.sample(NUMBERS, rng.randint(6, 14))
    others = [[], CODES, WORDS][seed % 3]
    pool += rng.sample(others, min(len(others), rng.randint(1, 3)))
    return [*pool, *rng.choices(pool, k=40 - len(pool))]


@pytest.mark.parametrize("seed", range(60))
def test_cells_are_one_as_numbers_where_all_are_numbers_and_as_texts_elsewhere(seed):
    cells = drawn(seed)
    if all(cell in [*NUMBERS, "inf"] for cell in cells):
        expected = alike([hash(Decimal(cell)) for cell in cells])
    else:
        expected = alike(["True" if cell == "TRUE" else cell for cell in cells])
    for place, codes_of in PLACES.items():
        np.testing.assert_array_equal(alike(codes_of(cells)), expected, err_msg=place)


@pytest.mark.parametrize("seed", range(30))
def test_new_rows_have_the_levels_of_the_rows_that_trained(seed, tmp_path):
    cells = drawn(seed)
    y = steps(len(cells))
    options = {"encode": {"c": "onehot"}}
    dataset = read({"c": cells, "x": y, "y": y}, **options)
    card = {"sources": [{"kind": "file", "path": "x.csv", "target": "y", **options}]}
    file = tmp_path / "new.csv"
    for part in (slice(None), slice(0, 1), slice(7, 9)):  # one row alone has fewer spellings than all
        file.write_bytes(table({"c": cells[part], "x": y[part]}))
        np.testing.assert_array_equal(new_rows.new_inputs(file, card, dataset), dataset.X[part])


PAIRS = [("1E2", "100"), ("0e12", "0e73"), ("3", "3.0"), ("007", "7"), ("+1", "1"), (".5", "0.50"), ("-0", "0")]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_a_card_that_names_both_spellings_tells_them_apart(pair):
    cells, x = [*pair] * 4, steps(8)
    rows = {"c": cells, "x": x, "y": x}
    assert read(rows, encode={"c": {"onehot": [*pair]}}).X[:2, :2].tolist() == [[1, 0], [0, 1]]
    assert read(rows, codes={"c": dict(zip(pair, (5, 9)))}).X[:2, 0].tolist() == [5, 9]
    dataset = read({"x": x, "y": cells}, "binary", {"labels": dict(zip(pair, (1, -1)))})
    assert dataset.classes == pair[::-1] and dataset.y[:2].tolist() == [1, -1]
    with pytest.raises(DataError, match="one class only"):
        read({"x": x, "y": cells}, "binary")


@pytest.mark.parametrize("cell", CODES)
def test_a_code_is_no_number_and_leaves_all_cells_of_its_column_texts(cell, one_line):
    cells = ["3", "3.0", cell, "003"] * 2
    for place, codes_of in PLACES.items():
        np.testing.assert_array_equal(alike(codes_of(cells)), alike(cells), err_msg=place)
    with one_line(DataError, match=r"column 'c', row 3: "):
        read({"c": cells, "x": steps(8), "y": steps(8)})
    line = r"column 'c' of `split`, row 3: '.*' is no number, as the folds of other rows are: mend it"
    with pytest.raises(DataError, match=line):
        read({"c": cells, "x": steps(8), "y": steps(8)}, split="c")


@pytest.mark.parametrize(
    "cells", [(2**53 + 1, 2**53), (10**17 + 1, 10**17), ("9" * 20, "9" * 19 + "8")], ids=["16", "18", "20"]
)
def test_whole_numbers_of_more_digits_than_a_float_has_are_texts(cells):
    cells = [*map(str, cells)] * 3
    for place, codes_of in PLACES.items():
        np.testing.assert_array_equal(alike(codes_of(cells)), alike(cells), err_msg=place)
    assert order(cells).tolist() == [1, 0] * 3  # whatever the seed of Python's hashes


def uses(cells: Sequence[str]):
    """Tables in which these cells are a target or a column, with the task and the options of the source."""
    x = steps(len(cells))
    for task in ("regression", "multiclass", "count"):
        yield {"x": x, "y": cells}, task, {}
    for options in ({}, {"encode": {"c": "ordinal"}}, {"group": "c"}, {"order": "c"}):
        yield {"c": cells, "x": x, "y": x}, "regression", options


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN", "-nan"])
def test_nan_among_numbers_is_a_missing_cell_in_every_place(word):
    for columns, task, options in uses(["1", "2.0", word, "2", "1.0", "3"]):
        dataset = read(columns, task, {"incomplete": "drop"}, **options)
        assert len(dataset.y) == 5 and list(dataset.missing.values()) == [1]
        with pytest.raises(DataError, match=r"has 1 missing (or infinite )?cells? ?\(row 3\)"):
            read(columns, task, **options)


@pytest.mark.parametrize("words", [("true", "false"), ("TRUE", "FALSE"), ("True", "false"), ("tRUE", "False")])
def test_true_and_false_are_one_word_in_any_case(words):
    cells = [*words, "True", "FALSE", "true"] * 2
    expected = alike([cell.lower() for cell in cells])
    for place, codes_of in PLACES.items():
        np.testing.assert_array_equal(alike(codes_of(cells)), expected, err_msg=place)
    rows = {"c": cells, "x": steps(10), "y": steps(10)}
    assert read(rows).X[:2, 0].tolist() == [1, 0]
    assert read(rows, codes={"c": {True: 5, False: 7}}).X[:2, 0].tolist() == [5, 7]
    assert read({"x": steps(10), "y": cells}, "binary", {"labels": {True: -1, False: 1}}).classes == ("True", "False")


SPELLINGS = [
    ({"decimal": ","}, "1,5", "1,50", "15e-1"),
    ({"decimal": ",", "thousands": "."}, "1.234,0", "1234", "1234,00"),
    ({"thousands": ","}, "1,234", "1234.0", "1234"),
    ({"thousands": " "}, "1 234 567", "1234567", "1234567.0"),
    ({"thousands": "'"}, "1'234", "+1234", "1234"),
]


@pytest.mark.parametrize(("signs", *"abc"), SPELLINGS, ids=[case[1] for case in SPELLINGS])
def test_the_signs_of_a_card_hold_for_labels_too_unless_a_code_is_among_them(signs, a, b, c):
    for codes_of in (levels, order, classes, groups):
        np.testing.assert_array_equal(alike(codes_of([a, "7", b, c, "7"], **signs)), alike([1, 2, 1, 1, 2]))
        np.testing.assert_array_equal(alike(codes_of([a, "7", b, "20B"], **signs)), alike([1, 2, 3, 4]))
    number = float(str(a).replace(signs.get("thousands", "x"), "").replace(",", "."))
    rows = {"c": [a, "7", b], "x": steps(3), "y": steps(3)}
    assert read(rows, encode={"c": {"ordinal": [7, number]}}, **signs).X[:, 0].tolist() == [1, 0, 1]
    assert read(rows, codes={"c": {a: 3, "7": 4}}, **signs).X[:, 0].tolist() == [3, 4, 3]
    with pytest.raises(DataError, match=r"column 'y', row 2: 'abc' is not a number"):
        read({"x": steps(3), "y": [a, "abc", b]}, **signs)


@pytest.mark.parametrize("mark", [-200, "-200", "-200.0", ["?", -200], ["-2e2"]], ids=str)
def test_marks_of_missing_cells_hold_in_every_place(mark):
    for columns, task, options in uses(["1", "-200", "2", "-200.0", "1.0", "3"]):
        dataset = read(columns, task, {"incomplete": "drop"}, missing=mark, **options)
        assert len(dataset.y) == 4 and {*dataset.missing.values()} == {2}


@pytest.mark.parametrize(
    "cells", [["", "1", "2", "1.0"], ["2", "", "+1", "1e0"], ["1", "02", "2.0", "?"]], ids="/".join
)
def test_folds_are_compared_as_numbers_and_a_row_without_one_is_left_out_where_the_card_says_so(cells):
    rows = {"f": cells, "x": steps(4), "y": steps(4)}
    dataset = read(rows, card={"incomplete": "drop"}, split="f", missing="?")
    folds = [float(cell) for cell in cells if cell not in ("", "?")]
    expected = np.where(np.array(folds)[:, None] == [1, 2], row_labels.TEST, row_labels.TRAIN)
    np.testing.assert_array_equal(dataset.folds["fixed"], expected)
    assert dataset.missing == {"column 'f' of `split`": 1}
    with pytest.raises(DataError, match=r"column 'f' of `split` has 1 missing cell \(row \d\); .*`incomplete: drop`"):
        read(rows, split="f", missing="?")


def test_a_dataframe_has_the_codes_of_the_table_and_groups_are_numbered_as_their_texts_were():
    dataset = read({"c": ["3", "20B", "3.5", "4"] * 2, "x": steps(8), "y": steps(8)}, encode={"c": "onehot"})
    card = {"sources": [{"encode": {"c": "onehot"}}]}
    for cells in ([3, 4, 3.5], [3.0, 4.0, 3.5], ["3", 4.0, "3.5"], np.array([3, 4, 3.5], object)):
        rows = new_rows.new_inputs(pd.DataFrame({"c": cells, "x": steps(3)}), card, dataset)
        assert [dataset.columns[k] for k in rows[:, :4].argmax(axis=1)] == ["c=3", "c=4", "c=3.5"]
        np.testing.assert_array_equal(alike(frame([*cells, "20B", 3.0])), alike([1, 2, 3, 4, 1]))
    texts = ["10", "9", "007", "1.50", "x", "-3"]
    assert groups(texts[:4]).tolist() == [2, 3, 0, 1]  # in alphabetical order
    assert groups(texts).tolist() == [3, 4, 1, 2, 5, 0]
    assert groups(["10", "9", "9.0", "10.0", "2"]).tolist() == [0, 2, 2, 0, 1]


DATES = [
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%d/%m/%y", "%Y%m%d", "%d %b %Y", "%B %d, %Y"),
    *("%d/%m/%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%a %d %b %Y", "week of %d/%m/%Y", "%j of %Y"),
]


@pytest.mark.parametrize("format", DATES)
@pytest.mark.parametrize("signs", [{}, {"decimal": ",", "thousands": "."}], ids=["point", "comma"])
def test_a_card_says_the_format_of_dates(format, signs):
    days = [datetime.fromisoformat("2023-11-05T00:00:00+00:00") + timedelta(days=3 * k) for k in range(30)]
    cells = ["", *(day.strftime(format) for day in days)]
    rows = {"day": cells, "x": steps(31), "y": steps(31)}
    dataset = read(rows, card={"incomplete": "drop"}, order={"day": format}, **signs)
    assert dataset.order.tolist() == [day.timestamp() for day in days] and dataset.columns == ("x",)
    with pytest.raises(DataError, match=r"column 'day' of `order` has 1 missing cell \(row 1\); .*`incomplete: drop`"):
        read(rows, order={"day": format}, **signs)
    with pytest.raises(DataError, match=r"column 'day' of `order`, row 3: 'soon' is no date of the format"):
        read(rows | {"day": [*cells[:2], "soon", *cells[3:]]}, order={"day": format}, **signs)


def test_without_a_format_the_first_date_says_what_the_others_are_and_others_are_refused_with_the_remedy():
    rows = {"x": steps(4), "y": steps(4)}
    for cells in (["", "2024-01-02", "", "2024-01-04T10:00"], ["", "", "5", "3.5"]):
        assert np.isnan(from_raw_order(rows, cells)).tolist() == [cell == "" for cell in cells]
    with pytest.raises(DataError, match=r'row 2: .* state another format, as in `order: {COLUMN: "%d/%m/%Y"}`'):
        from_raw_order(rows, ["", "31/01/2024", "1/2/2024", ""])
    with pytest.raises(DataError, match="row 3: '2024-01-02' is no number"):
        from_raw_order(rows, ["", "5", "2024-01-02", ""])


def from_raw_order(rows: dict, cells: Sequence[str]) -> np.ndarray:
    return tables.table([table({"day": cells, **rows})], {"target": "y", "order": "day"}).order


@pytest.mark.parametrize(("task", "cell"), [("regression", "abc"), ("count", "1.5"), ("count", "abc")])
def test_a_wrong_target_has_the_row_of_the_table_where_rows_above_are_left_out(task, cell):
    rows = {"x": ["", *steps(4)], "y": ["1", "", "3", cell, "5"]}
    with pytest.raises(DataError, match=r"column 'y', row 4: "):
        read(rows, task, {"incomplete": "drop"})
    rows["x"][3] = ""  # nobody needs the target of a row that is left out
    assert read(rows, task, {"incomplete": "drop"}).y.tolist() == [3, 5]
