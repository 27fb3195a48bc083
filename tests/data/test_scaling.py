"""Scalers, categories as inputs, and missing inputs: which rows they see, their inverse, and new rows."""

from pathlib import Path

import numpy as np
import pytest

from gpbench.config.compose import compose
from gpbench.data import SCALERS, Dataset, fit_scalers, new_rows, prepare
from gpbench.data import store as local
from gpbench.errors import ConfigError, DataError, GpbenchError
from gpbench.records import identity

RNG = np.random.default_rng(0)


def make(X, y, task="regression") -> Dataset:
    X = np.asarray(X, dtype=float)
    columns = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    classes = () if task == "regression" else ("no", "yes")
    return Dataset("toy", task, X, np.asarray(y, dtype=float), columns, classes, "0" * 64)


TRAIN, TEST = np.arange(20), np.arange(20, 30)
TRAIN_ONLY = sorted(set(SCALERS) - {"centre_all"})


@pytest.mark.parametrize("scaler", TRAIN_ONLY)
def test_test_rows_do_not_affect_the_training_rows(scaler):
    X, y = RNG.normal(3, 2, (30, 4)), RNG.normal(5, 3, 30)
    before = prepare(make(X, y), TRAIN, TEST, inputs=scaler, targets=scaler)
    X[TEST], y[TEST] = 1e6, -1e6
    after = prepare(make(X, y), TRAIN, TEST, inputs=scaler, targets=scaler)
    assert not before.scaled_by_all_rows
    np.testing.assert_array_equal(before.X, after.X)
    np.testing.assert_array_equal(before.y, after.y)
    assert (before.y_mean, before.y_std) == (after.y_mean, after.y_std)


def test_standardise_has_the_bits_of_the_recorded_runs_and_none_those_of_the_data():
    """Inputs by einsum in place, targets by `np.std`: records made with these sums must stay reproducible."""
    for n in (20, 128, 1001):
        X, y = RNG.normal(3, 2, (n + 10, 3)), RNG.normal(5, 3, n + 10)
        p = prepare(make(X, y), np.arange(n), np.arange(n, n + 10))
        centred = X[:n] - X[:n].mean(axis=0)
        std = np.sqrt(np.einsum("nd,nd->d", centred, centred) / n)
        np.testing.assert_array_equal(p.X, centred / std)
        np.testing.assert_array_equal(p.X_test, (X[n:] - X[:n].mean(axis=0)) / std)
        assert (p.y_mean, p.y_std) == (float(y[:n].mean()), float(y[:n].std()))
        np.testing.assert_array_equal(p.y, (y[:n] - y[:n].mean()) / y[:n].std())
        np.testing.assert_array_equal(p.y_test, (y[n:] - y[:n].mean()) / y[:n].std())
    p = prepare(make(X, y), np.arange(n), np.arange(n, n + 10), inputs="none", targets="none")
    assert (X[:n] == p.X).all() and (p.y_test == y[n:]).all() and (p.y_mean, p.y_std) == (0.0, 1.0)


def test_unit_interval_spans_the_training_rows_and_does_not_clip_test_rows():
    X, y = RNG.normal(3, 2, (30, 2)), RNG.normal(5, 3, 30)
    X[25], y[25] = [100, -100], 100
    p = prepare(make(X, y), TRAIN, TEST, inputs="unit_interval", targets="unit_interval")
    np.testing.assert_array_equal([p.X.min(0), p.X.max(0)], [[0, 0], [1, 1]])
    assert (p.y.min(), p.y.max()) == (0, 1)
    assert p.X_test[5, 0] > 10 and p.X_test[5, 1] < -10 and p.y_test[5] > 5
    beyond = ((X[TEST] < X[TRAIN].min(0)) | (X[TEST] > X[TRAIN].max(0))).any(1)
    assert p.outside == beyond.sum() >= 1
    np.testing.assert_allclose(p.y_test * p.y_std + p.y_mean, y[TEST], rtol=1e-12)


def test_centre_all_centres_by_all_rows_and_is_marked():
    X, y = RNG.normal(3, 2, (40, 2)), RNG.normal(5, 3, 40)  # ten rows are in neither part
    p = prepare(make(X, y), TRAIN, TEST, inputs="centre_all", targets="centre_all")
    np.testing.assert_allclose(p.X, X[TRAIN] - X.mean(0), atol=1e-12)
    np.testing.assert_allclose(p.X_test, X[TEST] - X.mean(0), atol=1e-12)
    assert (p.y_mean, p.y_std) == (pytest.approx(y.mean()), 1.0)
    assert p.scaled_by_all_rows and p.held_out
    assert prepare(make(X, y), TRAIN, TEST, inputs="centre_all").scaled_by_all_rows
    assert prepare(make(X, y), TRAIN, TEST, targets="centre_all").scaled_by_all_rows


@pytest.mark.parametrize("name", SCALERS)
def test_inverse_undoes_transform_for_other_rows(name):
    X, y, new = RNG.normal(3, 2, (20, 2)), RNG.normal(5, 3, 20), RNG.normal(5, 3, 7)
    _, scaler = fit_scalers(X, y, inputs=name, targets=name, task="regression")
    rows = new.copy()
    scaler.transform(rows)
    np.testing.assert_allclose(scaler.inverse(rows), new, rtol=1e-12)
    assert scaler.train_only == (name != "centre_all")


@pytest.mark.parametrize("scaler", ["standardise", "unit_interval"])
def test_a_column_whose_training_std_is_only_rounding_error_becomes_zero_in_both_parts(scaler):
    # kegg's input 7 in split 2: a constant whose mean rounds, and one held-out row that differs
    constant = -2.048e-05
    X = np.full((44001, 2), constant)
    X[:, 1] = RNG.normal(size=44001)
    X[-1, 0] = 1.0
    assert 0 < X[:-1, 0].std() < 1e-18  # the trap: not 0
    p = prepare(make(X, RNG.normal(size=44001)), np.arange(44000), np.array([44000]), inputs=scaler)
    np.testing.assert_array_equal(p.X[:, 0], 0)
    np.testing.assert_array_equal(p.X_test[:, 0], 0)
    assert np.ptp(p.X[:, 1]) >= 1


def test_class_labels_are_never_scaled():
    y = np.where(np.arange(30) % 3, 1.0, -1.0)
    for scaler in SCALERS:
        p = prepare(make(RNG.normal(size=(30, 2)), y, "binary"), TRAIN, TEST, targets=scaler)
        assert set(p.y) == set(p.y_test) == {-1.0, 1.0} and (p.y_mean, p.y_std, p.classes) == (0.0, 1.0, 2)
        assert not p.scaled_by_all_rows


def test_bad_rows_give_one_clear_line():
    X, y, test = RNG.normal(size=(30, 2)), RNG.normal(size=30), np.arange(20, 30)
    gaps, infinite = X.copy(), X.copy()
    gaps[[3, 5], 1], infinite[25, 0] = np.nan, np.inf
    equal, steps = np.full(30, 0.1), np.where(np.arange(30) < 20, -1, 1)
    for dataset, train, scalers, message in (
        (make(gaps, y), 20, {}, "column 'x2' has 2 missing"),
        (make(infinite, y), 20, {}, "column 'x1' has 1 missing or infinite"),
        (make(X, y * np.nan), 30, {}, "column 'target' has 30"),
        (make(X, steps, "binary"), 20, {}, "one class only among the 20 training rows"),
        (make(X, equal), 20, {}, "all equal"),
        (make(X, equal), 20, {"targets": "unit_interval"}, "all equal"),
        (make(X, y), 0, {}, r"empty split \(0 training"),
        (make(X, y), 20, {"inputs": "standard"}, "inputs=standard: no such scaler; did you mean standardise"),
    ):
        with pytest.raises((ConfigError, DataError), match=message):
            prepare(dataset, np.arange(train), test, **scalers)


@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_a_column_whose_squares_float64_cannot_hold_is_named(scaler, unit):
    X, y = RNG.normal(3, 2, (30, 3)), RNG.normal(5, 3, 30)
    X[:, 1] *= unit
    with pytest.raises(DataError, match=r"toy: column 'x2' has values from .*e[+-]\d+ to .*, whose squares float64"):
        prepare(make(X, y), TRAIN, TEST, inputs=scaler)
    with pytest.raises(DataError, match=r"toy: column 'target' has values .*; give it in other units"):
        prepare(make(X[:, :1], y * unit), TRAIN, TEST, targets=scaler)


@pytest.mark.parametrize("unit", [1e140, 1e-140])
def test_units_that_float64_can_square_are_scaled_as_any(unit):
    X, y = RNG.normal(3, 2, (30, 3)), RNG.normal(5, 3, 30)
    np.testing.assert_allclose(prepare(make(X * unit, y), TRAIN, TEST).X, prepare(make(X, y), TRAIN, TEST).X)


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


def test_mean_and_median_are_other_runs_and_a_missing_category_is_filled_in_all_of_its_inputs(own):
    of = lambda **keys: identity.identify(compose([]) | {"dataset": own({"rain": RAIN, "x": range(8)}, **keys)[0]}, "0")
    assert len({str(of(impute=value)) for value in ("mean", "median", {"rain": "mean"})}) == 3
    assert "impute" not in identity.identify(compose([]), "0")["data"]
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
    ({**ENCODE, "codes": {"city": {"Oslo": 1}}}, {}, "column 'city' is in `codes` and in `encode`"),
    ({"encode": {"city": {"onehot": ["Oslo", "Bern"]}}}, {}, "'city': 'Rome' is not among its levels, Oslo, Bern"),
    (
        {"encode": {"city": {"ordinal": ["Oslo", "Rome", "Rome", "Bern"]}}},
        {},
        "encode: city: level 'Rome' is named twice: leave one out",
    ),
    ({"encode": {"city": "onehot", "rain": "onehot"}}, {}, "encode: column 'rain' has 6 numbers in 6 rows: take it"),
    (ENCODE, {"impute": "mode"}, "impute=mode: must be mean or median, or a mapping"),
    (ENCODE, {"impute": {"rian": "mean"}}, "impute: no input 'rian'; did you mean rain"),
    ({}, {"impute": "mean"}, "column 'city', row 1: 'Oslo' is not a number; name the column in `drop`, or encode its"),
]


@pytest.mark.parametrize(("source", "keys", "line"), WRONG, ids=[line for *_, line in WRONG])
def test_a_wrong_encoding_is_refused_in_one_line(own, source, keys, line, one_line):
    with one_line(GpbenchError, says=line):
        own({"city": CITIES, "rain": RAIN}, source, **keys)


def test_an_unseen_level_of_an_ordinal_column_and_gaps_in_other_columns_of_new_rows_are_refused(own):
    columns = {"size": ["S", "L"] * 4, "rain": RAIN, "x": range(8)}
    own_data = own(columns, {"encode": {"size": "ordinal"}}, impute={"rain": "mean"})
    with pytest.raises(GpbenchError, match="column 'size': 'XL' is not among its levels, L, S"):
        new(own_data, "size,rain,x\nXL,1,2\n")
    with pytest.raises(GpbenchError, match="column 'x' has 1 missing or infinite cells"):
        new(own_data, "size,rain,x\nS,,\n")
