"""Estimates and the logic of verdicts, against SciPy, and their error rates by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from gpbench.claims import estimates
from gpbench.claims.estimates import Evidence, Exact, Region, Share, SignedRank, Student

VALUES = (0.31, -0.12, 0.55, 0.08, 0.27, -0.41, 0.96, 0.62)


def evidence(estimate, region):
    return region.evidence(estimate)


def test_a_mean_has_the_p_values_and_the_interval_of_the_t_test():
    n, mean, stderr = len(VALUES), np.mean(VALUES), stats.sem(VALUES)
    estimate = Student(float(mean), float(stderr), n - 1, n)
    for bound in (-0.2, 0.1, 0.9):
        above, below = (stats.ttest_1samp(VALUES, bound, alternative=side).pvalue for side in ("greater", "less"))
        assert (estimate.p_above(bound), estimate.p_below(bound)) == pytest.approx((above, below))
    assert estimate.interval == pytest.approx(stats.t.interval(0.95, n - 1, mean, stderr))


def test_signed_ranks_are_scipys_and_their_interval_is_what_the_test_does_not_reject():
    for n in (5, 6, 8):
        estimate = SignedRank(VALUES[:n])
        for bound in (-0.2, 0.1, 0.9):
            shifted = np.subtract(VALUES[:n], bound)
            above, below = (stats.wilcoxon(shifted, alternative=side).pvalue for side in ("greater", "less"))
            assert (estimate.p_above(bound), estimate.p_below(bound)) == pytest.approx((above, below))
    low, high = SignedRank(VALUES).interval
    assert estimate.p_above(low - 1e-9) <= 0.025 < estimate.p_above(low + 1e-9)
    assert estimate.p_below(high + 1e-9) <= 0.025 < estimate.p_below(high - 1e-9)
    assert SignedRank(VALUES[:5]).interval == (-math.inf, math.inf)  # 2 / 2^5 is above 5 %


def test_shares_are_binomial():
    share = Share(9, 12)
    assert share.p_above(0.5) == pytest.approx(stats.binomtest(9, 12, 0.5, "greater").pvalue)
    assert share.p_below(0.9) == pytest.approx(stats.binomtest(9, 12, 0.9, "less").pvalue)
    assert share.interval == pytest.approx(tuple(stats.binomtest(9, 12).proportion_ci()))


@pytest.mark.parametrize(
    ("value", "verdict"), [(0.0, "supported"), (0.09, "undecided"), (0.11, "undecided"), (0.3, "contradicted")]
)
def test_a_verdict_is_where_the_interval_lies(value, verdict):
    estimate, region = Student(value, 0.01, 19, 20), Region(-0.1, 0.1)
    low, high = estimate.interval
    inside, outside = low >= -0.1 and high <= 0.1, low > 0.1
    expected = "supported" if inside else "contradicted" if outside else "undecided"
    assert estimates.verdicts([evidence(estimate, region)]) == [expected] == [verdict]


def test_numbers_without_error_decide_and_a_single_split_does_not():
    assert estimates.verdicts([evidence(Exact(2.0), Region(1.9, 2.1))]) == ["supported"]
    assert estimates.verdicts([evidence(Exact(2.2), Region(1.9, 2.1))]) == ["contradicted"]
    assert estimates.verdicts([evidence(Student(2.0, None, 1, 1), Region(1.9, 2.1))]) == ["undecided"]


def test_at_least_k_parts_are_bonferronis_partial_conjunction():
    parts = [Evidence(p, 1 - p) for p in (0.001, 0.01, 0.2, 0.9)]
    assert estimates.at_least(2, parts).supporting == pytest.approx(3 * 0.01)
    assert estimates.every(parts) == Evidence(0.9, pytest.approx(4 * 0.1))
    assert estimates.at_least(1, parts) == Evidence(pytest.approx(4 * 0.001), pytest.approx(0.999))


def test_holms_correction_stops_at_the_first_that_is_not_significant():
    parts = [Evidence(p / 2, 1.0) for p in (0.04, 0.012, 0.02)]
    assert estimates.verdicts(parts) == ["supported"] * 3
    assert estimates.verdicts([*parts, Evidence(1.0, 0.03)]) == ["undecided", "supported", "undecided", "undecided"]


@pytest.mark.parametrize("least", [1, 3, 4])
def test_false_verdicts_are_rare_where_splits_share_rows(least):
    """Of four cells `least` must have a difference below 0; it is 0 in as many as make the claim just false."""
    rng, repeats, n, ratio = np.random.default_rng(1), 2000, 10, 1 / 9
    false = 0
    for _ in range(repeats):
        parts = []
        for cell in range(4):
            mean = -3.0 if cell < least - 1 else 0.0
            values = mean + rng.normal() * math.sqrt(ratio) + rng.normal(size=n)  # the shared rows' part first
            plain = float(np.std(values, ddof=1))
            estimate = Student(float(np.mean(values)), plain * math.sqrt(1 / n + ratio), n - 1, n)
            parts.append(evidence(estimate, Region(-math.inf, 0.0)))
        false += estimates.verdicts([estimates.at_least(least, parts)]) == ["supported"]
    assert false / repeats < 0.025 + 4 * math.sqrt(0.025 * 0.975 / repeats)  # one of the two sides of 5 %
