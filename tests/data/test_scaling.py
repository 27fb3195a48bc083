"""Scalers: which rows they see, their inverse, and columns that vary by rounding error only."""

import numpy as np
import pytest

from gpbench.data import SCALERS, Dataset, fit_scalers, prepare
from gpbench.errors import ConfigError, DataError

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


def test_training_rows_have_mean_zero_and_variance_one_and_targets_go_back_to_original_units():
    X, y = RNG.normal(1e4, 1e-3, (50, 3)), RNG.normal(5, 3, 50)
    dataset = make(X, y)
    p = prepare(dataset, np.arange(40), np.arange(40, 50))
    np.testing.assert_allclose(p.X.mean(0), 0, atol=1e-8)
    np.testing.assert_allclose(p.X.std(0), 1, rtol=1e-9)
    np.testing.assert_allclose(p.y_test * p.y_std + p.y_mean, y[40:], rtol=1e-12)
    np.testing.assert_array_equal(dataset.X, X)  # the data set itself is untouched
    p = prepare(dataset, np.arange(40), np.arange(40, 50), inputs="none", targets="none")
    np.testing.assert_array_equal(p.X, X[:40])
    np.testing.assert_array_equal(p.y_test, y[40:])
    assert (p.y_mean, p.y_std) == (0.0, 1.0)


def test_standardise_has_the_bits_of_the_recorded_runs():
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
        (make(X, y), 20, {"targets": "whiten"}, "targets=whiten: no such scaler; known are centre_all, none"),
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
