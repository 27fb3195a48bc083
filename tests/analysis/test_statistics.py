"""Means, standard errors and the corrected paired t test, against NumPy, SciPy and simulation."""

import math
from statistics import StatisticsError

import numpy as np
import pytest
from scipy import stats

from gpbench.analysis.statistics import common_splits, largest_ratio, mean_stderr, paired_t_test

A, B = [0.41, 0.50, 0.48, 0.54, 0.40], [0.44, 0.52, 0.47, 0.60, 0.45]


def test_the_standard_error_is_the_sample_deviation_over_root_n_where_there_is_one():
    assert mean_stderr(A) == (pytest.approx(np.mean(A)), pytest.approx(stats.sem(A)))
    assert mean_stderr([0.3]) == (0.3, None)
    with pytest.raises(StatisticsError):
        mean_stderr([])
    assert mean_stderr([0.0, 1e200]) == (5e199, None)
    mean, stderr = mean_stderr([0.0, math.inf])
    assert mean == math.inf and math.isnan(stderr)


def test_interval_p_and_significance_are_those_of_scipys_paired_t_test_and_the_correction_by_hand():
    test = paired_t_test([a - b for a, b in zip(A, B)], 0.0)
    expected = stats.ttest_rel(A, B)
    assert (test.mean, test.p) == (pytest.approx(np.mean(A) - np.mean(B)), pytest.approx(expected.pvalue))
    assert (test.low, test.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    a, b = [0.1, 0.3, 0.2, 0.6, 0.4], [0.12, 0.33, 0.21, 0.69, 0.46]
    verdicts = []
    for shift in (-0.04, 0.0, 0.05):
        shifted = [x + shift for x in b]
        verdicts.append(paired_t_test([x - y for x, y in zip(shifted, a)], 0.0).significant)
        assert verdicts[-1] == (stats.ttest_rel(shifted, a).pvalue < 0.05)
    assert set(verdicts) == {False, True}
    # mean 3, s^2 = (4 + 1 + 0 + 9) / 3 = 14/3, variance 14/3 (1/4 + 1/4) = 7/3, t = 3 / sqrt(7/3) with 3 degrees
    test = paired_t_test([1.0, 2.0, 3.0, 6.0], 0.25)
    t = 3 / math.sqrt(7 / 3)
    assert test.stderr == pytest.approx(math.sqrt(7 / 3)) and test.p == pytest.approx(2 * stats.t.sf(t, 3))
    # 3.1824 is the 97.5 % point of t with 3 degrees of freedom in printed tables
    assert test.high == pytest.approx(3 + 3.1824 * math.sqrt(7 / 3), abs=1e-4) and not test.significant


def test_equal_differences_are_ties_where_they_are_0_and_without_variance_or_ratio_there_is_no_test():
    assert paired_t_test([0.0, 0.0], 0.1).p == 1 and not paired_t_test([0.0, 0.0], 0.1).significant
    # one row of 27 more or less, on both splits
    assert not paired_t_test([1 / 27, 1 / 27], 27 / 243).possible and not paired_t_test([0.1, 0.1, 0.1], 0.1).possible
    for differences, ratio in (([0.3], 0.1), ([0.1, 0.1, 0.7], None)):
        test = paired_t_test(differences, ratio)
        assert test == (pytest.approx(0.3), None, None, None, None) and not test.significant and not test.possible


def test_splits_that_share_rows_mislead_the_plain_test_and_not_the_corrected_one():
    # y = x1 + x2 + noise: the errors of least squares on x1 alone and on x2 alone have the same expectation, so that
    # every rejection is an error of the first kind
    rng, sets, n, tested, count = np.random.default_rng(0), 1000, 100, 10, 15
    x = rng.normal(size=(sets, n, 2))
    y = x.sum(2) + rng.normal(size=(sets, n))
    rejected = {0.0: 0, tested / (n - tested): 0}
    for X, t in zip(x, y):
        differences = []
        for _ in range(count):
            order = rng.permutation(n)
            test, train = order[:tested], order[tested:]
            slopes = t[train] @ X[train] / (X[train] ** 2).sum(0)
            errors = ((t[test, None] - X[test] * slopes) ** 2).mean(0)
            differences.append(float(errors[0] - errors[1]))
        for ratio in rejected:
            rejected[ratio] += paired_t_test(differences, ratio).significant
    plain, corrected = (number / sets for number in rejected.values())
    # the standard error of a rate of 5 % over 1,000 data sets is 0.7 %
    assert corrected < 0.07 and plain > 0.15


def test_ratios_and_splits_are_those_that_all_have():
    assert largest_ratio([0.1, 0.2]) == 0.2 and largest_ratio([0.1, None]) is None and largest_ratio([]) is None
    assert common_splits([{2: 0.1, 0: 0.2}, {0: 0.3, 2: 0.4, 5: 0.5}]) == [0, 2]
    assert common_splits([{0: 0.1}, {}]) == [] and common_splits([]) == []
