"""Scaling: training rows only, and columns that only look as if they varied."""

import numpy as np
import pytest

from gpbench.data import Dataset, prepare
from gpbench.errors import ConfigError, DataError

RNG = np.random.default_rng(0)


def make(X, y, task="regression") -> Dataset:
    X = np.asarray(X, dtype=float)
    columns = tuple(f"x{i + 1}" for i in range(X.shape[1]))
    classes = () if task == "regression" else ("no", "yes")
    return Dataset("toy", task, X, np.asarray(y, dtype=float), columns, classes, "0" * 64)


def test_test_rows_do_not_touch_the_scaling():
    X, y = RNG.normal(3, 2, (30, 4)), RNG.normal(5, 3, 30)
    train, test = np.arange(20), np.arange(20, 30)
    before = prepare(make(X, y), train, test)
    X[test], y[test] = 1e6, -1e6
    after = prepare(make(X, y), train, test)
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


def test_none_leaves_inputs_and_targets_as_they_are():
    X, y = RNG.normal(3, 2, (30, 4)), RNG.normal(5, 3, 30)
    p = prepare(make(X, y), np.arange(20), np.arange(20, 30), inputs="none", targets="none")
    np.testing.assert_array_equal(p.X, X[:20])
    np.testing.assert_array_equal(p.y_test, y[20:])
    assert (p.y_mean, p.y_std) == (0.0, 1.0)


def test_a_column_whose_training_std_is_only_rounding_error_becomes_zero_in_both_parts():
    # kegg's input 7 in split 2: a constant whose mean rounds, and one held-out row that differs
    constant = -2.048e-05
    X = np.full((44001, 2), constant)
    X[:, 1] = RNG.normal(size=44001)
    X[-1, 0] = 1.0
    assert 0 < X[:-1, 0].std() < 1e-18  # the trap: not 0
    p = prepare(make(X, RNG.normal(size=44001)), np.arange(44000), np.array([44000]))
    np.testing.assert_array_equal(p.X[:, 0], 0)
    np.testing.assert_array_equal(p.X_test[:, 0], 0)
    assert np.abs(p.X[:, 1]).max() > 1


def test_a_small_unit_is_not_mistaken_for_a_constant():
    X = RNG.normal(size=(30, 1)) * 1e-15
    p = prepare(make(X, RNG.normal(size=30)), np.arange(20), np.arange(20, 30))
    np.testing.assert_allclose(p.X.std(0), 1)


def test_class_labels_are_never_scaled():
    y = np.where(np.arange(30) % 3, 1.0, -1.0)
    p = prepare(make(RNG.normal(size=(30, 2)), y, "binary"), np.arange(20), np.arange(20, 30))
    assert set(p.y) == {-1.0, 1.0} and (p.y_mean, p.y_std, p.classes) == (0.0, 1.0, 2)


def test_bad_rows_give_one_clear_line():
    X, y = RNG.normal(size=(30, 2)), RNG.normal(size=30)
    train, test = np.arange(20), np.arange(20, 30)
    holes = X.copy()
    holes[[3, 5], 1] = np.nan
    with pytest.raises(DataError, match="column 'x2' has 2 missing"):
        prepare(make(holes, y), train, test)
    holes[:, 1] = X[:, 1]
    holes[25, 0] = np.inf
    with pytest.raises(DataError, match="column 'x1' has 1 missing or infinite"):
        prepare(make(holes, y), train, test)
    with pytest.raises(DataError, match="column 'target' has 30"):
        prepare(make(X, y * np.nan), np.arange(30), test)
    with pytest.raises(DataError, match="one class only among the 20 training rows"):
        prepare(make(X, np.where(np.arange(30) < 20, -1, 1), "binary"), train, test)
    with pytest.raises(DataError, match="all equal"):
        prepare(make(X, np.full(30, 0.1)), train, test)
    with pytest.raises(DataError, match=r"empty split \(0 training"):
        prepare(make(X, y), train[:0], test)
    with pytest.raises(ConfigError, match="inputs='whiten'"):
        prepare(make(X, y), train, test, inputs="whiten")
