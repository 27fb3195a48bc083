"""The rules of a board: closed forms and brute force; simulated worlds are in tests/scripts/test_board_worlds.py."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from gpbench.analysis.board import Board, chance_to_win, gains, mean_gain, moments, of_families, outcomes


def drawn(random, K, D, *, methods=0.0, sets=0.2):
    """A board of K methods whose shares have these standard deviations of methods, and of methods by data sets."""
    strengths = np.linspace(methods, -methods, K)[:, None]
    return Board(outcomes(random.normal(0.0, sets, (K, D)) - strengths, 0.0))


def test_a_win_is_by_more_than_the_margin_and_lost_runs_lose():
    inf, nan = np.inf, np.nan
    won = outcomes(np.array([[1.0], [1.005], [2.0], [inf], [inf], [nan]]), 0.01)[..., 0]
    expected = [[0.5, 0.5, 1, 1, 1], [0.5, 0.5, 1, 1, 1], [0, 0, 0.5, 1, 1], [0, 0, 0, 0.5, 0.5], [0, 0, 0, 0.5, 0.5]]
    np.testing.assert_array_equal(won[:5, :5], expected)
    assert np.isnan(won[5]).all() and np.isnan(won[:, 5]).all()  # a run that there is not does not count
    ratio = lambda other, margin: outcomes(np.array([[2.0], [other]]), 0.0, margin)[0, 1, 0]
    assert (ratio(2.1, 0.06), ratio(2.1, 0.04)) == (0.5, 1.0)


def test_shares_are_counted_by_hand():
    random = np.random.default_rng(0)
    losses = random.integers(0, 4, (5, 7)).astype(float)
    shares = Board(outcomes(losses, 0.0)).shares
    for i in range(5):
        for d in range(7):
            own, others = losses[i, d], [losses[k, d] for k in range(5) if k != i]
            won = [1.0 if own < other else 0.5 if own == other else 0.0 for other in others]
            assert shares[i, d] == pytest.approx(np.mean(won))
    assert shares.mean(axis=0) == pytest.approx(np.full(7, 0.5))


def test_moments_find_the_prior_that_variances_were_drawn_from():
    random = np.random.default_rng(1)
    d0, s0, degrees, pairs = 8.0, 0.3, 10, 40_000
    variances = s0 * stats.f.rvs(degrees, d0, size=pairs, random_state=random)
    found = moments(variances, degrees, 1e3)
    assert found == pytest.approx((d0, s0), rel=0.05)
    assert moments(np.full(50, 0.3), degrees, 33.0)[0] == 33.0  # less spread than sampling alone: as much as allowed


def test_the_trigamma_function_of_half_the_prior_degrees_is_the_excess_variance():
    logs = np.array([-1.0, 0.0, 0.5, 0.5])
    for scale in (1.2, 2.0, 20.0):
        excess = (scale * logs).var(ddof=1) - polygamma(1, 2.0)
        d0, _ = moments(np.exp(scale * logs), 4, 1e6)
        assert polygamma(1, d0 / 2) == pytest.approx(excess, rel=1e-9)


def test_without_moderation_the_test_is_the_paired_t_test(monkeypatch):
    board = drawn(np.random.default_rng(2), 6, 9, methods=0.1)
    monkeypatch.setattr("gpbench.analysis.board._PRIOR_MOST", 0.0)
    expected = stats.ttest_rel(board.shares[0], board.shares[3], alternative="greater").pvalue
    monkeypatch.setattr("gpbench.analysis.board.moments", lambda *_: (0.0, 0.0))
    assert board.p[0, 3] == pytest.approx(expected)
    assert board.p[3, 0] == pytest.approx(1 - expected)


def test_two_numbers_against_a_reference_have_closed_forms_and_hold():
    inf = np.inf
    won, reference = np.array([1.0, 1.0, 0.5, 0.0]), np.array([0.3, inf, inf, 1.0])
    gained = gains(np.array([0.1, 2.0, inf, inf]), reference)
    assert gained == pytest.approx([0.2, 1.0, 0.0, -1.0])  # of the lost runs, and of both lost
    found = chance_to_win(won)
    assert found.value == 3.0 / 5.0 and found[1:] == pytest.approx(stats.beta.interval(0.95, 3.0, 2.0))
    more = [*gained, 1.0, -1.0]  # with one gain and one loss of the most that counts
    ends = stats.t.interval(0.95, 5, loc=np.mean(more), scale=stats.sem(more))
    assert mean_gain(gained) == pytest.approx((0.05, max(ends[0], -1.0), min(ends[1], 1.0)))
    assert mean_gain(gained[:1])[1:] == (-inf, inf)
    random = np.random.default_rng(5)
    held = []
    for _ in range(400):
        draws = random.normal(0.1, 0.3, 33)
        odds, gain = chance_to_win((draws > 0).astype(float)), mean_gain(draws)
        rare = mean_gain(np.where(random.random(26) < 0.05, -1.0, 0.02))
        held.append((odds.low <= stats.norm.cdf(1 / 3) <= odds.high, gain.low <= 0.1 <= gain.high, rare.low <= -0.031))
    assert np.all(np.mean(held, axis=0) > 0.92)


def test_copies_that_are_handed_in_move_no_share_and_make_no_claim():
    """Twenty copies of the first method, each worse by more than the margin everywhere: beside twenty equal ones it
    would be first with them as others."""
    losses = np.random.default_rng(3).gumbel(size=(20, 26))
    copies = losses[0] + np.arange(1, 21)[:, None] * 0.02
    won = outcomes(np.concatenate([losses, copies]), 0.01)
    alone, beside = Board(won[:20, :20]), Board(won, np.arange(40) < 20)
    np.testing.assert_allclose(beside.means[:20], alone.means)
    assert Board(won).means[0] > beside.means[0] + 0.2
    assert not beside.better[:20, :20].any() and Board(won).better[0, :20].any()


def test_a_family_counts_as_one_data_set():
    values = np.array([[1.0, 0.0, 0.5, np.nan]])
    np.testing.assert_array_equal(of_families(values, ["a", "b", "a", "c"]), [[0.75, 0.0, np.nan]])


def test_pairs_that_share_too_few_data_sets_or_never_meet_are_not_decided():
    """The first two beat the third on six data sets each, and never meet; on five nothing is claimed."""
    nan, ten = np.nan, np.arange(10.0)
    losses = np.array([[*[0.0] * 6, *[nan] * 6], [*[nan] * 6, *[0.0] * 6], [1.0] * 12])
    board = Board(outcomes(losses, 0.0))
    assert board.better.tolist() == [[False, False, True], [False, False, True], [False] * 3]
    assert board.may_be_best.tolist() == [True, True, False] and board.common[0, 1] == 0
    assert not Board(outcomes(losses[:, :5], 0.0)).better.any()
    # differences that are all equal have no variance: p is that of the sign test
    assert board.p[0, 2] == 0.5**6 and board.difference(0, 1).high == np.inf
    losses = np.stack([ten, ten + 1, ten + 2])
    losses[0, 4:] = nan  # by its four data sets the first would be ahead of all
    assert Board(outcomes(losses, 0.0)).better.tolist() == [[False] * 3, [False, False, True], [False] * 3]


def test_a_method_placed_among_others_is_corrected_for_its_pairs_alone():
    boards = [drawn(np.random.default_rng(seed), 12, 11, methods=0.15) for seed in range(20)]
    own = np.array([board.with_method(0)[0].sum() for board in boards])
    of_all = np.array([board.better[0].sum() for board in boards])
    assert own.sum() > of_all.sum() and not any(board.with_method(0)[1:, 1:].any() for board in boards)
