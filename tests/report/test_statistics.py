"""Means, standard errors and the paired t test, against NumPy and SciPy."""

import math
from statistics import StatisticsError

import numpy as np
import pytest
from scipy import stats

from gpbench.report.statistics import common_splits, mean_stderr, paired_t_test

A, B = [0.41, 0.50, 0.48, 0.54, 0.40], [0.44, 0.52, 0.47, 0.60, 0.45]


def test_the_standard_error_is_the_sample_deviation_over_root_n():
    assert mean_stderr(A) == (pytest.approx(np.mean(A)), pytest.approx(stats.sem(A)))


def test_one_value_has_no_standard_error_and_none_have_no_mean():
    assert mean_stderr([0.3]) == (0.3, None)
    with pytest.raises(StatisticsError):
        mean_stderr([])


def test_values_whose_squares_overflow_have_no_standard_error():
    assert mean_stderr([0.0, 1e200]) == (5e199, None)
    mean, stderr = mean_stderr([0.0, math.inf])
    assert mean == math.inf and math.isnan(stderr)


def test_interval_and_p_are_those_of_scipys_paired_t_test():
    test = paired_t_test([a - b for a, b in zip(A, B)])
    expected = stats.ttest_rel(A, B)
    assert (test.mean, test.p) == (pytest.approx(np.mean(A) - np.mean(B)), pytest.approx(expected.pvalue))
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_significance_is_p_below_5_percent():
    a, b = [0.1, 0.3, 0.2, 0.6, 0.4], [0.12, 0.33, 0.21, 0.69, 0.46]
    verdicts = []
    for shift in (-0.04, 0.0, 0.05):
        shifted = [x + shift for x in b]
        verdicts.append(paired_t_test([x - y for x, y in zip(shifted, a)]).significant)
        assert verdicts[-1] == (stats.ttest_rel(shifted, a).pvalue < 0.05)
    assert set(verdicts) == {False, True}


def test_equal_differences_are_significant_unless_they_are_0():
    assert paired_t_test([0.0, 0.0]).p == 1 and not paired_t_test([0.0, 0.0]).significant
    assert paired_t_test([0.1, 0.1]).p == 0 and paired_t_test([0.1, 0.1, 0.1]).significant


def test_one_difference_has_no_interval_and_is_not_significant():
    assert paired_t_test([0.3]) == (0.3, None, None, None) and not paired_t_test([0.3]).significant


def test_common_splits_are_those_of_all_mappings():
    assert common_splits([{2: 0.1, 0: 0.2}, {0: 0.3, 2: 0.4, 5: 0.5}]) == [0, 2]
    assert common_splits([{0: 0.1}, {}]) == [] and common_splits([]) == []
