"""The slope of the objective at the end of training, which records have."""

import numpy as np
import pytest

from gpbench.train.result import _last_slope


def trace(every, steps, objective):
    """A trace of two runs: the first has this objective, as a function of the steps, and the second none that rises."""
    ends = np.arange(every, steps + 1, every)
    means = [objective(np.arange(end - every, end) + 0.5).mean() for end in ends]
    return {"step": ends, "objective_mean": np.column_stack([means, np.full(len(ends), 3.0)])}


@pytest.mark.parametrize("every", [1, 10, 100])
def test_a_straight_line_has_its_own_slope_however_often_it_is_recorded(every):
    straight = trace(every, 1000, lambda t: 0.04 * t)
    assert _last_slope(straight, 0, rows=50) == pytest.approx(0.04 * 100 / 50)
    assert _last_slope(straight, 1, rows=50) == pytest.approx(0.0, abs=1e-12)


def test_only_the_last_three_tenths_of_the_training_count():
    bent = trace(50, 1000, lambda t: np.where(t < 700.0, 5.0 * t, 3500.0))
    assert _last_slope(bent, 0, rows=1) == pytest.approx(0.0, abs=1e-9)


def test_too_few_points_or_numbers_that_are_not_finite_have_none():
    assert _last_slope({}, 0, rows=1) is None
    assert _last_slope(trace(1000, 1000, lambda t: t), 0, rows=1) is None
    assert _last_slope(trace(100, 1000, lambda t: t * np.nan), 0, rows=1) is None
    earlier = {**trace(100, 1000, lambda t: t), "objective_mean": np.zeros((4, 2))}  # of an earlier version
    assert _last_slope(earlier, 0, rows=1) is None
