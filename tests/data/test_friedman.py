"""Data that are computed: Friedman's function against quadrature, the mountain car against Bellman's equation."""

import itertools
import math

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator
from scipy.stats import norm

from gpbench.data import builtin, cards, load, prepare, splits
from gpbench.errors import ConfigError

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
RNG = np.random.default_rng(0)
ACTIVE = [(0,), (1,), (2,), (3,), (4,), (0, 1)]


def test_effects_have_the_mean_0_over_each_input_and_inputs_out_of_order_are_refused():
    for inputs in ACTIVE:
        fixed = np.full((len(NODES), len(inputs)), 0.3)
        for d in range(len(inputs)):
            x = fixed.copy()
            x[:, d] = NODES
            assert abs(WEIGHTS @ builtin.friedman_effect(inputs, x)) < 1e-10
    with pytest.raises(ValueError, match="ascending"):
        builtin.friedman_effect((1, 0), RNG.uniform(size=(3, 2)))


def test_effects_and_the_mean_add_up_to_the_function():
    X = RNG.uniform(size=(50, 6))
    total = sum(builtin.friedman_effect(inputs, X[:, list(inputs)]) for inputs in ACTIVE)
    offset = builtin.friedman(X) - total
    np.testing.assert_allclose(offset, offset[0], rtol=1e-10)
    grid = np.array(list(itertools.product(NODES, NODES)))
    weight = np.outer(WEIGHTS, WEIGHTS).ravel()
    mean = weight @ (10 * np.sin(np.pi * grid[:, 0] * grid[:, 1])) + 20 / 12 + 5 + 2.5
    assert offset[0] == pytest.approx(mean, rel=1e-10)
    others = [inputs for size in (1, 2) for inputs in itertools.combinations(range(6), size) if inputs not in ACTIVE]
    assert not any(builtin.friedman_effect(inputs, X[:, list(inputs)]).any() for inputs in others)


@pytest.mark.parametrize(("generator", "correlation"), [("friedman_effects", 0.0), ("friedman_copula", 0.8)])
def test_rows_have_uniform_inputs_of_that_correlation_and_noise_1(generator, correlation):
    """Within 5 standard errors of 20,000 rows; the correlation is that of the normal scores."""
    raw = builtin._GENERATORS[generator](np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(raw.X.mean(0), 0.5, atol=5 * np.sqrt(1 / 12 / 20_000))
    correlations = np.corrcoef(norm.ppf(raw.X.T))[np.triu_indices(6, 1)]
    np.testing.assert_allclose(correlations, correlation, atol=5 / np.sqrt(20_000))
    assert (raw.target - builtin.friedman(raw.X)).std() == pytest.approx(1, abs=5 / np.sqrt(40_000))


SIDE = 101
VALUES = builtin.values(SIDE)
STATES = builtin.grid(SIDE)
DRAWS = np.random.default_rng(0)


def drive(position: float, velocity: float, push: int) -> tuple[float, float]:
    """One step as Sutton and Barto print it."""
    velocity = min(max(velocity + 0.001 * push - 0.0025 * math.cos(3 * position), -0.07), 0.07)
    position = min(max(position + velocity, -1.2), 0.5)
    return position, 0.0 if position == -1.2 else velocity


def test_values_satisfy_bellmans_equation_are_0_at_the_goal_and_fall_with_the_distance_from_it():
    axes = np.linspace(-1.2, 0.5, SIDE), np.linspace(-0.07, 0.07, SIDE)
    between = RegularGridInterpolator(axes, VALUES.reshape(SIDE, SIDE))
    for node in DRAWS.choice(np.flatnonzero(STATES[:, 0] < 0.5), 300, replace=False):
        after = [drive(*STATES[node], push) for push in (-1, 0, 1)]
        assert VALUES[node] == pytest.approx(between(after).max() - 1, abs=10 * builtin.TOLERANCE)
    assert not VALUES[STATES[:, 0] == 0.5].any() and (VALUES[STATES[:, 0] < 0.5] <= -1).all()
    at = lambda *state: (builtin.interpolation(np.array([state]), SIDE) @ VALUES)[0]
    assert at(0.45, 0.07) > at(0.0, 0.07) > at(0.0, 0.0) > at(-0.5, 0.0)
    assert -120 < at(-0.5, 0.0) < -100  # about 105 steps from the valley
    assert at(-0.5, 0.035) < at(-0.5, 0.042) - 40  # the cliff: too slow for the hill, or not


def test_the_greedy_driver_needs_about_as_many_steps_as_the_values_say():
    states = DRAWS.uniform(builtin.LOWER, builtin.UPPER, (200, 2))
    predicted = -(builtin.interpolation(states, SIDE) @ VALUES)
    steps = np.zeros(200)
    while (driving := states[:, 0] < 0.5).any():
        choices = np.stack([builtin.move(states, push) for push in (-1, 0, 1)])
        value = np.stack([builtin.interpolation(after, SIDE) @ VALUES for after in choices])
        states = np.where(driving[:, None], choices[value.argmax(axis=0), np.arange(200)], states)
        steps += driving
    # the exact numbers of steps are whole, and near the cliff a coarse grid takes the wrong side
    assert np.median(np.abs(steps - predicted)) < 1 and abs((steps - predicted).mean()) < 1


def test_the_card_has_a_grid_without_noise_to_test_and_draws_with_noise_to_train():
    card = cards.read("mountain_car")
    dataset = load(card, offline=True)  # compares with the checksum of the card
    axes = np.linspace(builtin.LOWER, builtin.UPPER, 50, axis=1).round(6)
    for k in range(splits.count(card)):
        train, test = splits.indices(card, dataset, k)
        assert sorted(test) == list(range(2500)) and len(train) == 500
        assert prepare(dataset, train, test).held_out
    grid = dataset.X[test].reshape(50, 50, 2)
    assert (grid[..., 0] == axes[0][:, None]).all() and (grid[..., 1] == axes[1]).all()
    assert not dataset.y[:2500].reshape(50, 50)[-1].any()  # the goal
    nodes = builtin.NODES
    noise = dataset.y - builtin.interpolation(dataset.X, nodes) @ builtin.values(nodes)
    assert np.abs(noise[:2500]).max() < 1e-4
    assert noise[2500:].std() == pytest.approx(2, abs=4 * 2 / np.sqrt(2 * 2500))  # four standard errors


def test_other_seeds_give_other_draws_and_the_same_grid_which_needs_its_number_of_rows(monkeypatch):
    monkeypatch.setattr(builtin, "NODES", SIDE)
    source = cards.read("mountain_car")["sources"][0]
    one, same, other = (builtin.generated({**source, "rows": 2600, "seed": seed}) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.target, same.target)
    np.testing.assert_array_equal(one.target[:2500], other.target[:2500])
    assert (one.X[2500:] != other.X[2500:]).all()
    with pytest.raises(ConfigError, match="rows=100: must be at least 2500, the grid of test states"):
        builtin.generated({"generator": "mountain_car", "seed": 0, "rows": 100})
