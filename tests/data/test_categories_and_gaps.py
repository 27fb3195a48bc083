"""Categories as inputs, and missing inputs from training rows, in data sets, splits and new rows."""

from pathlib import Path

import numpy as np
import pytest

from gpbench.config.compose import compose
from gpbench.data import new_rows, prepare
from gpbench.data import store as local
from gpbench.errors import GpbenchError
from gpbench.records import identity

CITIES = ["Oslo", "Bern", "Oslo", "Rome", "Bern", "Oslo", "Rome", "Bern"]
RAIN = [1.0, "", 3.0, 8.0, "", 2.0, 4.0, 0.0]
ENCODE = {"encode": {"city": "onehot"}}


def new(own_data, text: str) -> np.ndarray:
    Path("new.csv").write_text(text)
    card, dataset = own_data
    return new_rows.new_inputs("new.csv", card, dataset)


def test_a_one_hot_column_has_an_input_for_each_level_and_an_ordinal_one_the_number_of_its_level(own):
    _, dataset = own({"city": CITIES, "x": range(8)}, ENCODE)
    assert dataset.columns == ("city=Bern", "city=Oslo", "city=Rome", "x")
    assert dataset.X[:, :3].tolist() == [[city == level for level in ("Bern", "Oslo", "Rome")] for city in CITIES]
    _, dataset = own({"zone": [10, 9, 9.0, 10], "x": range(4)}, {"encode": {"zone": "onehot"}})
    assert dataset.columns == ("zone=9", "zone=10", "x")
    sizes = {"size": ["L", "S", "M", "S"], "x": range(4)}
    assert own(sizes, {"encode": {"size": {"ordinal": ["S", "M", "L"]}}})[1].X[:, 0].tolist() == [2, 0, 1, 0]
    assert own(sizes, {"encode": {"size": "ordinal"}})[1].X[:, 0].tolist() == [0, 2, 1, 2]  # alphabetical


def test_a_level_that_no_training_row_has_is_0_whatever_the_scaler(own):
    _, dataset = own({"city": CITIES, "x": range(8)}, ENCODE)
    train, test = np.array([0, 1, 2, 4]), np.array([3, 5])
    for inputs in ("none", "standardise", "centre_all"):
        split = prepare(dataset, train, test, inputs=inputs)
        assert (split.X_test[0, 2] == split.X[:, 2]).all() and split.unseen == 1
        np.testing.assert_array_equal(split.scale_inputs(dataset.X[test]), split.X_test)


def test_new_rows_have_the_encoding_of_the_data_and_unseen_levels_are_said(own, capsys):
    own_data = own({"city": CITIES, "x": range(8)}, ENCODE)
    assert new(own_data, "X,city\n5,Rome\n6,Oslo\n").tolist() == [[0, 0, 1, 5], [0, 1, 0, 6]]
    assert not capsys.readouterr().err
    assert new(own_data, "x,city\n5,Paris\n6,Oslo\n").tolist() == [[0, 0, 0, 5], [0, 1, 0, 6]]
    line = "column 'city': 'Paris' is not among its levels, Bern, Oslo, Rome: its inputs are 0 there (rows: 1)\n"
    assert capsys.readouterr().err == f"gpbench: warning: {line}"


@pytest.mark.parametrize("centre", ["mean", "median"])
def test_missing_inputs_are_filled_from_the_training_rows_alone_and_an_input_says_where(own, centre):
    own_data = _, dataset = own({"rain": RAIN, "x": range(8)}, impute={"rain": centre})
    assert dataset.columns == ("rain", "x", "rain missing")
    assert dataset.X[:, 2].tolist() == [cell == "" for cell in RAIN]
    train, test = np.array([0, 1, 2, 3]), np.array([4, 7])
    split = prepare(dataset, train, test, inputs="none")
    value = {"mean": 4.0, "median": 3.0}[centre]  # of 1, 3 and 8
    assert split.X[:, 0].tolist() == [1, value, 3, 8] and split.X_test[:, 0].tolist() == [value, 0]
    _, dropped = own({"rain": RAIN, "x": [1, 2, "", *range(4, 9)]}, impute={"rain": centre}, incomplete="drop")
    assert len(dropped.y) == 7 and np.isnan(dropped.X[:, 0]).sum() == 2  # the cells that are filled stay
    rows = new(own_data, "x,rain\n5,\n6,7\n")
    assert rows[:, 2].tolist() == [1, 0] and split.scale_inputs(rows)[:, 0].tolist() == [value, 7]


def test_mean_and_median_are_other_runs_and_no_card_without_them_is(own):
    of = lambda **keys: identity.identify(compose([]) | {"dataset": own({"rain": RAIN, "x": range(8)}, **keys)[0]}, "0")
    assert len({str(of(impute=value)) for value in ("mean", "median", {"rain": "mean"})}) == 3
    assert "impute" not in identity.identify(compose([]), "0")["data"]


def test_a_missing_category_is_filled_in_all_of_its_inputs_and_has_one_indicator(own):
    _, dataset = own({"city": [*CITIES[:7], ""], "x": range(8)}, ENCODE, impute="mean")
    assert dataset.columns == ("city=Bern", "city=Oslo", "city=Rome", "x", "city missing")
    split = prepare(dataset, np.arange(4), np.array([7]), inputs="none")
    assert split.X_test.tolist() == [[0.25, 0.5, 0.25, 7, 1]]


def test_the_store_keeps_levels_and_rules(own, tmp_path):
    card, dataset = own({"city": CITIES, "rain": RAIN}, ENCODE, impute="median")
    card |= {"checksum": dataset.checksum}
    local.save(dataset, card, tmp_path)
    stored = local.get(card, tmp_path)
    for key in ("columns", "impute", "indicators"):
        assert getattr(stored, key) == getattr(dataset, key)
    assert {name: tuple(levels) for name, levels in stored.levels.items()} == dataset.levels


WRONG = [
    ({"encode": {"city": "onhot"}}, {}, "encode={city: onhot}: must be a mapping from columns to onehot or ordinal"),
    ({"encode": {"town": "onehot"}}, {}, "encode: no column 'town' among the inputs; known are city, rain"),
    ({"encode": {"y": "onehot"}}, {}, "encode: no column 'y' among the inputs"),
    ({**ENCODE, "codes": {"city": {"Oslo": 1}}}, {}, "column 'city' is in `codes` and in `encode`"),
    ({"encode": {"city": {"onehot": ["Oslo", "Bern"]}}}, {}, "'city': 'Rome' is not among its levels, Oslo, Bern"),
    (
        {"encode": {"city": {"ordinal": ["Oslo", "Rome", "Rome", "Bern"]}}},
        {},
        "encode: city: level 'Rome' is named twice: leave one out",
    ),
    ({"encode": {"city": "onehot", "rain": "onehot"}}, {}, "encode: column 'rain' has 6 numbers in 6 rows: take it"),
    (ENCODE, {}, "column 'rain' has 2 missing or infinite cells"),
    (ENCODE, {"impute": "mode"}, "impute=mode: must be mean or median, or a mapping"),
    (ENCODE, {"impute": {"rian": "mean"}}, "impute: no input 'rian'; did you mean rain"),
    ({}, {"impute": "mean"}, "column 'city', row 1: 'Oslo' is not a number; name the column in `drop`, or encode its"),
]


@pytest.mark.parametrize(("source", "keys", "line"), WRONG, ids=[line for *_, line in WRONG])
def test_a_wrong_encoding_is_refused_in_one_line(own, source, keys, line):
    with pytest.raises(GpbenchError) as error:
        own({"city": CITIES, "rain": RAIN}, source, **keys)
    assert line in str(error.value) and "\n" not in str(error.value)


def test_an_unseen_level_of_an_ordinal_column_and_gaps_in_other_columns_of_new_rows_are_refused(own):
    own_data = own(
        {"size": ["S", "L"] * 4, "rain": RAIN, "x": range(8)}, {"encode": {"size": "ordinal"}}, impute={"rain": "mean"}
    )
    with pytest.raises(GpbenchError, match="column 'size': 'XL' is not among its levels, L, S"):
        new(own_data, "size,rain,x\nXL,1,2\n")
    with pytest.raises(GpbenchError, match="column 'x' has 1 missing or infinite cells"):
        new(own_data, "size,rain,x\nS,,\n")
