"""Estimates against SciPy, grades of clauses of made numbers, and how often they err, by simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from gpbench.claims import estimates
from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Evidence, Region, clustered, exact, share, student, worth
from gpbench.claims.grades import SCALE, Judged, badge_grade
from gpbench.claims.quantities import Quantity
from gpbench.claims.selection import Number

BELOW = Region(-math.inf, 0.0)
REPEATS = 2000


def clause(region=BELOW, least=None, each=()):
    return Clause("difference", Quantity("nll"), region, {}, each=each, least=least, control="others")


def grade(values, stderr=0.1, least=None):
    """The grade of numbers of as many data sets, of which an error of None is unknown."""
    numbers = [Number((f"set{k}", ""), student(value, stderr, math.inf, 20)) for k, value in enumerate(values)]
    return Judged(clause(least=least), numbers).grade()


IN, LEAN, OUT = -1.0, -0.05, 1.0


GRADES = [
    ([IN] * 10, None, "holds"),
    ([IN] * 7 + [OUT] * 3, 0.7, "holds"),
    ([IN] * 8 + [LEAN] * 2, None, "mostly holds"),
    ([IN] * 8 + [LEAN, OUT], None, "mostly holds"),
    ([IN] * 8 + [OUT] * 2, None, "mixed"),
    ([IN] * 5 + [OUT] * 5, None, "mixed"),
    ([IN] * 4 + [OUT] * 6, None, "fails"),
    ([LEAN] + [OUT] * 3, 3, "fails"),
    ([LEAN] * 2 + [OUT] * 3, 1, "mixed"),  # one cell is enough, but the best of five may be there by chance
    ([3 * LEAN] * 2 + [OUT] * 3, 1, "mixed"),
    ([3.8 * LEAN] * 2 + [OUT] * 3, 1, "leans for"),
    ([OUT] * 9 + [IN], None, "fails"),
    ([OUT] * 10, 1, "fails"),
    ([-LEAN] * 10, None, "fails"),  # the mean of ten shows what none of them shows
    ([LEAN] * 10, None, "mostly holds"),
    ([3 * LEAN], None, "leans for"),
    ([-3 * LEAN], None, "leans against"),
    ([LEAN], None, "mixed"),  # within one standard error
    ([LEAN, -LEAN], None, "mixed"),
]


def test_a_grade_is_of_the_quota_of_cells_and_one_of_several_rivals_lies_where_the_worst_lies():
    for values, least, word in GRADES:
        jitter = [value + 1e-3 * (k % 3) for k, value in enumerate(values)]
        assert grade(jitter, least=least) == word, (values, least)
    assert [grade([IN], None), grade([OUT], None), grade([IN, OUT], None)] == ["leans for", "leans against", "mixed"]
    numbers = [
        Number((f"set{k}", ""), student(value, 0.1, math.inf, 20), rival)
        for k in range(4)
        for rival, value in (("b", IN), ("c", IN if k else OUT))
    ]
    assert Judged(clause(least=3), numbers).counts == (3, 0, 0, 1, 0)
    assert Judged(clause(), numbers).counts == (7, 0, 0, 1, 0)  # without a quota each number counts


def judged(values, region, source="splits", **fields):
    """Numbers of as many data sets with errors of 0.001, of a clause with these fields."""
    n = 1 if source == "rows" else 20
    numbers = [Number((f"set{k}", ""), student(v, 1e-3, math.inf, n, source=source)) for k, v in enumerate(values)]
    return Judged(replace(clause(region), **fields), numbers)


def test_a_grade_that_half_or_twice_a_margin_of_ours_turns_is_mixed():
    equal, near, far = ([value + 1e-4 * k for k in range(5)] for value in (0.0, 0.04, 0.2))
    within = Region(-0.05, 0.05)
    for values, word in ((equal, "holds"), (near, "mixed"), (far, "fails")):
        ours = judged(values, within, margin_from=0.0)
        assert ours.grade() == word and bool(ours.caveat) == (word == "mixed")
    assert judged(near, within).grade() == "holds"  # a margin of the paper is not varied
    assert judged(near, within, margin_from=0.0).caveat == "fails with half of our margin, holds with twice"
    # measured from elsewhere: half of (0.9, 0.98) around 0.95 is (0.925, 0.965), twice is (0.85, 1.01)
    coverage = Region(0.9, 0.98)
    for value, word in ((0.95, "holds"), (0.97, "mixed"), (0.8, "fails")):
        assert judged([value] * 5, coverage, margin_from=0.95).grade() == word
    assert judged([0.97] * 5, coverage, margin_from=0.975).grade() == "holds"


def test_one_split_leans_at_most_unless_its_errors_are_known_and_so_does_what_no_control_turns():
    for value, shown, leans in ((-1.0, "holds", "leans for"), (1.0, "fails", "leans against")):
        assert judged([value] * 5, BELOW).grade() == shown
        assert judged([value] * 5, BELOW, source="rows").grade() == leans
        assert judged([value] * 5, BELOW, source="rows", split_ratio=1.1).grade() == shown
        assert {judged([value] * 5, BELOW, control=words).grade() for words in ("", "none: why")} == {leans}
        alike = "its control lies there too" if value < 0 else "nor does its control"
        for control, *expected in (
            ([value], leans, alike),
            ([-value], shown, ""),
            ([value, -value], leans, "its control is mixed"),
            ([], leans, "no control"),
        ):
            beside = replace(judged([value] * 5, BELOW, control=clause()), control=judged(control * 5, BELOW))
            assert [beside.grade(), beside.caveat] == expected


def test_a_badge_is_green_where_claims_hold_alone():
    for tone, words in (
        ("good", ["holds", "not run"]),
        ("good", ["mostly holds", "proved"]),
        ("open", ["holds", "mixed"]),
        ("open", ["holds", "leans for"]),
        ("bad", ["holds", "fails", "mixed"]),
        ("bad", ["proved", "refuted"]),
        ("none", ["not run", "not here"]),
    ):
        assert badge_grade(words).tone == tone
    assert len({one.word for one in SCALE}) == len(SCALE)


def covers(low, high, truth):
    return np.mean((low <= truth) & (truth <= high))


def most_misses(share):
    """Four standard errors above a share of the simulated worlds."""
    return share + 4 * math.sqrt(share * (1 - share) / REPEATS)


def test_intervals_over_data_sets_cover_and_those_of_a_single_split_cover_its_model_alone():
    """Sixteen outputs of eight sets that share most of their effect; as if independent, half of the intervals miss."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(REPEATS, 8, 1)) + 0.1 * rng.normal(size=(REPEATS, 8, 16))
    intervals = np.array([clustered({str(k): row for k, row in enumerate(one.tolist())}).interval for one in values])
    assert 1 - covers(*intervals.T, 0.0) < most_misses(0.05)
    flat = values.reshape(REPEATS, -1)
    half = stats.t.ppf(0.975, 127) * flat.std(axis=1, ddof=1) / math.sqrt(128)
    assert 1 - covers(flat.mean(axis=1) - half, flat.mean(axis=1) + half, 0.0) > 0.4
    # 1,000 rows of errors around .2, where models of other splits differ by .07.
    rng = np.random.default_rng(4)
    models = np.clip(0.2 + 0.07 * rng.normal(size=REPEATS), 0.02, 0.9)
    shares = rng.binomial(1000, models) / 1000
    intervals = np.array([student(p, math.sqrt(p * (1 - p) / 1000), math.inf, 1).interval for p in shares.tolist()])
    assert 1 - covers(*intervals.T, models) < most_misses(0.06)  # normal for binomial
    assert covers(*intervals.T, 0.2) < 0.5


@pytest.mark.parametrize(("n", "ratio"), [(10, 1 / 9), (20, 1 / 9), (5, 0.25)])
def test_intervals_over_splits_and_folds_cover_where_splits_share_rows(n, ratio):
    """Errors of splits have a correlation of n_test / (n_train + n_test), as the correction assumes."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(REPEATS, 1)) * math.sqrt(ratio) + rng.normal(size=(REPEATS, n))
    stderr = values.std(axis=1, ddof=1) * math.sqrt(1 / n + ratio)
    intervals = np.array([student(m, s, n - 1, n).interval for m, s in zip(values.mean(axis=1), stderr)])
    assert 1 - covers(*intervals.T, 0.0) < most_misses(0.05)


@pytest.mark.parametrize("least", [1, 3, 5, 7])
def test_holds_is_wrong_in_few_worlds_at_the_boundary(least):
    """Of seven sets `least` must lie below 0; so many lie at 0 that the claim is just false, and splits share rows."""
    rng, n, ratio = np.random.default_rng(least), 10, 1 / 9
    means = np.where(np.arange(7) < least - 1, -3.0, 0.0)[None, :, None]
    values = means + rng.normal(size=(REPEATS, 7, 1)) * math.sqrt(ratio) + rng.normal(size=(REPEATS, 7, n))
    value, stderr = values.mean(axis=2), values.std(axis=2, ddof=1) * math.sqrt(1 / n + ratio)
    p = np.sort(stats.t.cdf(value / stderr, n - 1), axis=1)
    holds = (7 - least + 1) * p[:, least - 1] <= 0.025
    assert holds.mean() < 0.05
    some = [*np.flatnonzero(holds)[:5], *range(15)]  # of which the grades are those of the formula
    for world in some:
        pairs = zip(value[world].tolist(), stderr[world].tolist())
        numbers = [Number((f"set{k}", ""), student(*pair, n - 1, n)) for k, pair in enumerate(pairs)]
        assert (Judged(clause(least=least), numbers).grade() == "holds") == holds[world]


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
