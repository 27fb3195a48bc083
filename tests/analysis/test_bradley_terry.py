"""Scores of methods: closed forms, weights of data sets, and intervals and claims in simulated worlds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from gpbench.analysis.bradley_terry import (
    ELO,
    PRIOR,
    Estimates,
    estimates,
    outcomes,
    resampled_wins,
    scores,
    win_rates,
    wins,
)


def compared(losses, **margins):
    return outcomes(np.asarray(losses, float), np.ones(np.shape(losses), bool), **margins)


def world(random, strengths, D=12, S=3, shared=1.0):
    """Losses of which the smaller is i's with the Bradley-Terry probability of each pair (Luce's choice axiom).

    A split has the data set's noise with probability `shared`, else its own.
    """
    of_set, of_split = random.gumbel(size=(len(strengths), D, 1)), random.gumbel(size=(len(strengths), D, S))
    return -(np.reshape(strengths, (-1, 1, 1)) + np.where(random.random((D, S)) < shared, of_set, of_split))


def test_scores_of_two_methods_have_a_closed_form():
    for first, second in ((9, 3), (12, 0), (6, 6)):
        ratio = math.log((first + PRIOR / 2) / (second + PRIOR / 2))
        assert scores(np.array([[0.0, first], [second, 0.0]])) == pytest.approx([ratio / 2, -ratio / 2], abs=1e-5)


def test_scores_maximise_the_likelihood_and_their_expected_wins_are_the_wins():
    from scipy.optimize import minimize

    random = np.random.default_rng(3)
    won = random.integers(0, 9, (5, 5)) * (1.0 - np.eye(5))
    ties = won + PRIOR / 2 * (1 - np.eye(5))

    def loss(s):
        return float(np.sum(ties * np.logaddexp(0.0, s[None] - s[:, None])))

    best = minimize(loss, np.zeros(5), method="BFGS", tol=1e-10).x
    assert scores(won) == pytest.approx(best - best.mean(), abs=1e-4)
    random = np.random.default_rng(4)
    won = random.integers(0, 9, (4, 4)) * (1.0 - np.eye(4))
    s, played = scores(won), won + won.T + PRIOR * (1 - np.eye(4))
    expected = (played / (1 + np.exp(s[None] - s[:, None]))).sum(axis=1)
    assert expected == pytest.approx((won + PRIOR / 2 * (1 - np.eye(4))).sum(axis=1), abs=1e-4)


def test_methods_that_win_as_often_have_the_same_score_to_the_last_bit():
    won = resampled_wins(compared(world(np.random.default_rng(3), [0.0] * 6, D=6, S=3)), 300)
    values, total = scores(won), won.sum(axis=-1)
    alike = np.isclose(total[..., None], total[..., None, :], rtol=1e-12)
    assert alike.sum() > total.size + 100  # not each with itself alone
    assert np.array_equal(values[..., None] == values[..., None, :], alike)


def test_runs_without_predictions_lose_those_that_are_not_there_do_not_and_small_differences_tie():
    (result,) = compared([[[1.0]], [[np.inf]], [[np.inf]]])[:, 0]
    assert result[0, 1:].tolist() == [1, 1] and result[1:, 0].tolist() == [0, 0] and result[1, 2] == result[2, 1] == 0.5
    losses = [[[1.0]], [[1.009]], [[1.02]]]
    for margins in ({"absolute": 0.01}, {"relative": 0.01}):
        (result,) = compared(losses, **margins)[:, 0]
        assert (result[0, 1], result[0, 2], result[2, 0]) == (0.5, 1.0, 0.0)
    has_run = np.ones((3, 2, 1), bool)
    has_run[2, 0] = False
    won = wins(outcomes(np.arange(6.0).reshape(3, 2, 1), has_run))
    assert won.tolist() == [[0, 2, 1], [0, 0, 1], [0, 0, 0]]


def test_every_data_set_has_the_same_weight_whatever_its_splits():
    has_run = np.ones((2, 2, 3), bool)
    has_run[:, 1, 1:] = False
    losses = np.zeros((2, 2, 3))
    losses[1, 0], losses[0, 1] = 1.0, 1.0  # the first wins all splits of one set, the second the only one of the other
    won = wins(outcomes(losses, has_run))
    assert won.tolist() == [[0, 1], [1, 0]] and win_rates(won).tolist() == [0.5, 0.5]


def test_draws_have_the_variance_of_draws_with_replacement_and_are_the_same_for_another_metric():
    results = compared(world(np.random.default_rng(0), [0.5, 0.0], D=10))
    share = results[:, 0, 0, 1]
    drawn = resampled_wins(results, 20_000)[:, 0, 1]
    assert drawn.mean() == pytest.approx(share.sum(), abs=0.05)
    assert drawn.var() == pytest.approx(10 * share.var(), rel=0.05)  # D draws of the variance of one
    losses = world(np.random.default_rng(1), [0.5, 0.0, 0.2], shared=0.0)
    one, other = (resampled_wins(compared(factor * losses), 50) for factor in (1.0, 7.0))
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("strengths", "D"), [([0.0] * 4, 12), ([-1.0, -0.3, 0.3, 1.0], 12), ([0.0] * 5, 6), ([-4.0, 0.0, 4.0], 6)]
)
def test_intervals_cover_and_claims_are_true_in_simulated_worlds(strengths, D):
    """Of 80 worlds at most as many miss as three standard errors (2.4 %) of a coverage of 95 % allow."""
    random, worlds = np.random.default_rng(7), 80
    s = np.array(strengths)
    covered, wrong, placed = [], [], []
    for _ in range(worlds):
        points, rates = estimates(compared(world(random, s, D)), 60)
        chance = (1 / (1 + np.exp(s[None] - s[:, None]))).sum(axis=1) - 0.5
        covered += [np.abs(points.values - 1000 - ELO * s) <= points.half_widths]
        covered += [np.abs(rates.values - chance / (len(s) - 1)) <= rates.half_widths]
        wrong.append((points.better() & (s[:, None] <= s[None])).any())
        for k in range(len(s)):  # the place is one of those that the tests of its differences leave
            low, high = points.place_interval(k)
            placed.append(low <= 1 + (s > s[k]).sum() <= high)
    error = math.sqrt(0.05 * 0.95 / worlds)
    assert np.mean(covered) > 0.95 - 3 * error
    assert np.mean(placed) > 0.95 - 3 * error
    assert np.mean(wrong) < 0.05 + 3 * error


def test_a_clear_difference_is_significant_and_five_data_sets_show_none():
    losses = world(np.random.default_rng(2), [3.0, 0.0, -3.0])
    points, _ = estimates(compared(losses), 300)
    assert points.better().tolist() == [[False, True, True], [False, False, True], [False] * 3]
    assert points.better(1).sum() == 2 and points.better(0)[1].sum() == 0
    assert not estimates(compared(losses[:, :5]), 300)[0].better().any()


def test_data_sets_that_all_agree_leave_an_interval_as_wide_as_theirs_of_a_share():
    """Six of six comparisons won: the exact interval of the chance to win (Clopper and Pearson) begins at 0.54."""
    points, rates = estimates(compared([[[0.0]] * 6, [[1.0]] * 6]), 100)
    half = points.half_widths[0] + points.half_widths[1]
    assert 0 < points.values[0] - points.values[1] < half  # it reaches equal scores
    assert 0.6 < rates.values[0] - rates.half_widths[0] < 0.9
    assert points.better()[0, 1]  # p = 2 / 2^6 by the sign test


def test_fewer_data_sets_widen_intervals_and_methods_without_a_common_one_do_not_differ():
    draws = np.random.default_rng(5).normal(size=(500, 3))
    half = Estimates(np.zeros(3), draws - draws.mean(0), np.diag([1, 6, 12])).half_widths
    assert half[0] == np.inf and half[1] > 1.2 * half[2]
    # Each beats the third method on six data sets, or loses to it, but the two never meet.
    losses = np.array([[[0.0]] * 6 + [[np.nan]] * 6, [[np.nan]] * 6 + [[2.0]] * 6, [[1.0]] * 12])
    has_run = ~np.isnan(losses)
    points, _ = estimates(outcomes(np.nan_to_num(losses), has_run), 100)
    assert points.values[0] > points.values[1] + 400 and points.common[0, 1] == 0
    assert points.datasets.tolist() == [6, 6, 12] and points.common[0, 2] == 6
    assert not points.better()[0, 1]


def test_no_smaller_difference_than_the_least_is_significant():
    points, _ = estimates(compared(world(np.random.default_rng(3), [0.5, 0.0, -0.5], 12)), 200)
    least = points.least_difference()
    assert least == pytest.approx(2 * ELO / math.sqrt(12) * stdtrit(11, 1 - 0.05 / 6))
    below = replace(points, values=np.array([0.99 * least, 0.0, 0.0]), draws=0.0 * points.draws)
    above = replace(points, values=np.array([1.01 * least, 0.0, 0.0]), draws=0.0 * points.draws)
    assert not below.better().any() and above.better()[0].tolist() == [False, True, True]
    assert points.least_difference(0) == pytest.approx(2 * ELO / math.sqrt(12) * stdtrit(11, 1 - 0.05 / 4))
    few, _ = estimates(compared(world(np.random.default_rng(3), [0.5, 0.0], 5)), 50)
    assert few.least_difference() == math.inf
