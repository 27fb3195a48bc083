"""Estimates against SciPy, and the combination of evidence."""

import math

import numpy as np
import pytest
from scipy import stats

from gpbench.claims import estimates
from gpbench.claims.estimates import (
    Evidence,
    Region,
    clustered,
    exact,
    paired_spread,
    share,
    signed_rank,
    student,
    worth,
)

VALUES = (0.31, -0.12, 0.55, 0.08, 0.27, -0.41, 0.96, 0.62)


def test_a_mean_has_the_values_of_the_t_test_and_outputs_of_one_data_set_are_one_cluster():
    n, mean, stderr = len(VALUES), np.mean(VALUES), stats.sem(VALUES)
    estimate = student(float(mean), float(stderr), n - 1, n)
    for bound in (-0.2, 0.1, 0.9):
        above, below = (stats.ttest_1samp(VALUES, bound, alternative=side).pvalue for side in ("greater", "less"))
        assert (estimate.p_above(bound), estimate.p_below(bound)) == pytest.approx((above, below))
    assert estimate.interval == pytest.approx(stats.t.interval(0.95, n - 1, mean, stderr))
    values = {"kuka": [1.0, 2.0, 3.0], "mujoco": [4.0], "arm": [0.0, 1.0]}
    means = [2.0, 4.0, 0.5]
    assert (clustered(values).value, clustered(values).stderr) == pytest.approx((np.mean(means), stats.sem(means)))
    assert clustered({"kuka": [1.0, 2.0]}).interval == (-math.inf, math.inf) and clustered({}) is None


def test_signed_ranks_are_scipys_and_their_interval_is_what_the_test_does_not_reject():
    for n in (5, 6, 8):
        estimate = signed_rank(VALUES[:n])
        for bound in (-0.2, 0.1, 0.9):
            shifted = np.subtract(VALUES[:n], bound)
            above, below = (stats.wilcoxon(shifted, alternative=side).pvalue for side in ("greater", "less"))
            assert (estimate.p_above(bound), estimate.p_below(bound)) == pytest.approx((above, below))
    low, high = signed_rank(VALUES).interval
    assert estimate.p_above(low - 1e-9) <= 0.025 < estimate.p_above(low + 1e-9)
    assert estimate.p_below(high + 1e-9) <= 0.025 < estimate.p_below(high - 1e-9)
    assert signed_rank(VALUES[:5]).interval == (-math.inf, math.inf)  # 2 / 2^5 is above 5 %


def test_shares_of_independent_trials_are_binomial():
    trials = [[True], [True], [False]] * 4
    assert worth(trials) == pytest.approx(12 * 11 / 12, rel=0.1)  # the variance between clusters has n - 1
    of_twelve = stats.binomtest(8, 12, 0.5, "greater").proportion_ci()
    assert share(trials).interval[0] < of_twelve.low + 0.1 and share(trials).value == pytest.approx(8 / 12)
    whole = [[won] * 5 for won in (True, True, True, False)]  # clusters that are alike are worth a trial each
    assert 1 <= worth(whole) < 4 and share(whole).value == 0.75
    all_won = share([[True] * 9] * 6)
    assert all_won.interval == pytest.approx(tuple(stats.binomtest(6, 6).proportion_ci()))
    assert all_won.p_above(0.5) == pytest.approx(stats.binomtest(6, 6, 0.5, "greater").pvalue)
    assert share([[False] * 3] * 5).p_below(0.4) == pytest.approx(stats.binomtest(0, 5, 0.4, "less").pvalue)


INSIDE, LEANS_IN, LEANS_OUT, OUTSIDE = range(4)


def test_a_position_is_where_the_interval_lies_and_numbers_without_error_decide():
    region = Region(-0.1, 0.1)
    for value, position in ((0.0, INSIDE), (0.09, LEANS_IN), (0.11, LEANS_OUT), (0.3, OUTSIDE)):
        estimate = student(value, 0.01, 19, 20)
        low, high = estimate.interval
        expected = INSIDE if low >= -0.1 and high <= 0.1 else OUTSIDE if low > 0.1 else position
        assert region.position(estimate) == expected == position
    assert Region(1.9, 2.1).position(exact(2.0)) == INSIDE and Region(1.9, 2.1).position(exact(2.2)) == OUTSIDE
    assert Region(1.9, 2.1).position(student(2.0, None, 1, 1)) == LEANS_IN
    assert Region(-math.inf, 0).position(exact(0.0)) == LEANS_OUT  # a tie is not below


def test_two_sided_regions_are_doubled_once_and_at_least_k_parts_are_bonferronis_conjunction():
    """The two-sided p-value of a number beyond one end is twice the one-sided, as in a one-sided region."""
    estimate = student(0.3, 0.1, 19, 20)
    assert Region(-0.1, 0.1).evidence(estimate).p == pytest.approx(Region(-math.inf, 0.1).evidence(estimate).p)
    assert Region(-0.1, 0.1).evidence(estimate).p == pytest.approx(2 * stats.t.sf(2, 19))
    parts = [Evidence(p, 1 - p) for p in (0.001, 0.01, 0.2, 0.9)]
    assert estimates.at_least(2, parts).supporting == pytest.approx(3 * 0.01)
    assert estimates.every(parts) == Evidence(0.9, pytest.approx(4 * 0.1))
    assert estimates.at_least(1, parts) == Evidence(pytest.approx(4 * 0.001), pytest.approx(0.999))


def test_paired_spreads_are_compared_as_sums_and_differences_correlate():
    """Pitman's test: standard deviations are equal where x + y and x - y do not correlate."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=12)
    x = 2 * (0.6 * y + 0.8 * rng.normal(size=12))
    spread = paired_spread(list(zip(x.tolist(), y.tolist())))
    assert spread.value == pytest.approx(np.log(x.std(ddof=1) / y.std(ddof=1)))
    for bound in (0.0, 0.4, 1.2):
        scaled = x / math.exp(bound)
        above = stats.pearsonr(scaled + y, scaled - y, alternative="greater").pvalue
        assert (spread.p_above(bound), spread.p_below(bound)) == pytest.approx((above, 1 - above))
    low, high = spread.interval
    assert (spread.p_above(low), spread.p_below(high)) == pytest.approx((0.025, 0.025))
