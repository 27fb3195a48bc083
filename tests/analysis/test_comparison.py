"""A comparison has the values of methods by data set and split, and pairs the runs of two methods."""

import numpy as np
from samples import sample

from gpbench.analysis.comparison import Comparison

VALUES = {
    "pima": {"a": {0: 0.1, 1: 0.2}, "b": {1: 0.2, 2: 0.5}},
    "heart": {"a": {0: 0.3, 2: 0.1}, "b": {0: 0.1, 2: 0.4}},
}


def test_values_stand_by_method_data_set_and_split_and_absent_ones_are_nan():
    compared = Comparison("nll", VALUES)
    assert compared.methods == ["a", "b"]
    nan = np.nan
    expected = [[[0.1, 0.2, nan], [0.3, nan, 0.1]], [[nan, 0.2, 0.5], [0.1, nan, 0.4]]]
    np.testing.assert_array_equal(compared.array(["a", "b"]), expected)


def test_wins_ties_and_losses_are_counted_on_the_splits_that_both_have():
    assert Comparison("nll", VALUES).pairs("pima", "a", "b") == [(0.2, 0.2)]
    assert Comparison("nll", VALUES).outcomes("a", "b") == Comparison("auc", VALUES).outcomes("b", "a") == (1, 1, 1)
    close = lambda x, y: abs(x - y) < 0.25
    assert Comparison("nll", VALUES).outcomes("a", "b", close) == (1, 2, 0)


def test_a_comparison_of_records_has_the_methods_with_the_metric():
    records = [sample(method=method, split=split, metrics={"nll": split + 0.5}) for method in "ab" for split in (0, 1)]
    compared = Comparison.from_records([*records, sample(method="c", metrics={"rmse": 1.0})], "nll")
    assert compared.values == {"pima": {"a": {0: 0.5, 1: 1.5}, "b": {0: 0.5, 1: 1.5}}}
