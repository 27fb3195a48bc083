"""Grades of clauses of made numbers, and how often grades and intervals err, by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from gpbench.claims.definition import Clause
from gpbench.claims.estimates import Region, clustered, signed_rank, student
from gpbench.claims.grades import SCALE, Judged, badge_grade
from gpbench.claims.quantities import Quantity
from gpbench.claims.selection import Number

BELOW = Region(-math.inf, 0.0)
REPEATS = 2000


def clause(region=BELOW, least=None, each=()):
    return Clause("difference", Quantity("nll"), region, {}, each=each, least=least)


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
    ([LEAN] * 2 + [OUT] * 3, 1, "leans for"),  # one cell is enough, and may lie there
    ([OUT] * 9 + [IN], None, "fails"),
    ([OUT] * 10, 1, "fails"),
    ([-LEAN] * 10, None, "fails"),  # the mean of ten shows what none of them shows
    ([LEAN] * 10, None, "mostly holds"),
    ([LEAN], None, "leans for"),
    ([-LEAN], None, "leans against"),
    ([LEAN, -LEAN], None, "mixed"),
]


def test_a_grade_is_of_the_quota_of_cells_and_means_without_errors_lean():
    for values, least, word in GRADES:
        jitter = [value + 1e-3 * (k % 3) for k, value in enumerate(values)]
        assert grade(jitter, least=least) == word, (values, least)
    assert [grade([IN], None), grade([OUT], None), grade([IN, OUT], None)] == ["leans for", "leans against", "mixed"]


def test_a_cell_with_several_rivals_lies_where_the_worst_lies():
    numbers = [
        Number((f"set{k}", ""), student(value, 0.1, math.inf, 20), rival)
        for k in range(4)
        for rival, value in (("b", IN), ("c", IN if k else OUT))
    ]
    assert Judged(clause(least=3), numbers).counts == (3, 0, 0, 1, 0)
    assert Judged(clause(), numbers).counts == (7, 0, 0, 1, 0)  # without a quota each number counts


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


def test_intervals_over_data_sets_cover_where_outputs_of_a_set_are_alike():
    """Sixteen outputs of eight sets that share most of their effect; as if independent, half of the intervals miss."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(REPEATS, 8, 1)) + 0.1 * rng.normal(size=(REPEATS, 8, 16))
    intervals = np.array(
        [clustered({str(k): row for k, row in enumerate(world.tolist())}).interval for world in values]
    )
    assert 1 - covers(*intervals.T, 0.0) < most_misses(0.05)
    flat = values.reshape(REPEATS, -1)
    half = stats.t.ppf(0.975, 127) * flat.std(axis=1, ddof=1) / math.sqrt(128)
    assert 1 - covers(flat.mean(axis=1) - half, flat.mean(axis=1) + half, 0.0) > 0.4
    ranks = np.array([signed_rank(world.mean(axis=1).tolist()).interval for world in values[:500]])
    assert 1 - covers(*ranks.T, 0.0) < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 500)


@pytest.mark.parametrize(("n", "ratio"), [(10, 1 / 9), (20, 1 / 9), (5, 0.25)])
def test_intervals_over_splits_and_folds_cover_where_splits_share_rows(n, ratio):
    """Errors of splits have a correlation of n_test / (n_train + n_test), as the correction assumes."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(REPEATS, 1)) * math.sqrt(ratio) + rng.normal(size=(REPEATS, n))
    stderr = values.std(axis=1, ddof=1) * math.sqrt(1 / n + ratio)
    intervals = np.array([student(m, s, n - 1, n).interval for m, s in zip(values.mean(axis=1), stderr)])
    assert 1 - covers(*intervals.T, 0.0) < most_misses(0.05)


def test_intervals_of_a_single_split_cover_its_model_and_not_the_next_split():
    """1,000 rows of errors around .2, where models of other splits differ by .07."""
    rng = np.random.default_rng(4)
    models = np.clip(0.2 + 0.07 * rng.normal(size=REPEATS), 0.02, 0.9)
    shares = rng.binomial(1000, models) / 1000
    intervals = np.array([student(p, math.sqrt(p * (1 - p) / 1000), math.inf, 1).interval for p in shares.tolist()])
    assert 1 - covers(*intervals.T, models) < most_misses(0.06)  # normal for binomial
    assert covers(*intervals.T, 0.2) < 0.5


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
