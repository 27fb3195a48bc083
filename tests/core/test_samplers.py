"""Samplers: kept samples and their schedules, and the microcanonical dynamics against exact flows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.samplers import Microcanonical, Samples, Scales, schedule
from gpbench.errors import ConfigError


def kept(steps, **settings):
    """The schedule's size, and the states 1 .. steps in the order in which they are kept, as arrays hold them."""
    plan = schedule(steps, **settings)
    samples = Samples.empty(jnp.asarray(0), plan.size)
    for step in range(1, steps + 1):
        samples = samples.extend(jnp.asarray(step), plan.keeps(jnp.asarray(step)))
    return samples


@pytest.mark.parametrize(
    "settings, states",
    [
        ({"samples": 3, "burn_in": 0.25, "thinning": 2}, [7, 9, 11]),
        ({"samples": 9, "burn_in": 0.25, "thinning": 2}, [5, 7, 9, 11]),
        ({"samples": 3, "burn_in": 0.5}, [8, 10, 12]),
        ({"samples": 5}, [4, 6, 8, 10, 12]),
        ({"samples": 99}, list(range(1, 13))),
    ],
)
def test_the_last_states_after_the_burn_in_are_kept_in_order(settings, states):
    samples = kept(12, **settings)
    np.testing.assert_array_equal(samples.in_order(), states)
    np.testing.assert_array_equal(samples.log_weights(float), np.zeros(len(states)))


def test_slots_without_a_sample_have_no_weight():
    samples = Samples.empty(jnp.asarray(0.0), 3)
    np.testing.assert_array_equal(samples.or_current(jnp.asarray(7.0)), [7.0, 7.0, 7.0])
    np.testing.assert_array_equal(samples.log_weights(float), [0.0, -np.inf, -np.inf])
    samples = samples.extend(jnp.asarray(1.0), jnp.asarray(True)).extend(jnp.asarray(2.0), jnp.asarray(True))
    np.testing.assert_array_equal(samples.or_current(jnp.asarray(7.0)), [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(samples.log_weights(float), [0.0, 0.0, -np.inf])


@pytest.mark.parametrize("settings", [{"burn_in": 1.0}, {"thinning": 13}, {"burn_in": 0.5, "thinning": 7}])
def test_a_schedule_that_keeps_nothing_is_refused(settings):
    with pytest.raises(ConfigError, match=r"no samples: of method.steps=12 the first .* others is kept; take more"):
        schedule(12, 5, **settings)


MATRIX = np.random.default_rng(0).normal(size=(6, 6))
START = jnp.linspace(-1.0, 1.0, 6)
KEYS = jax.random.split(jax.random.key(0), 64)


def log_density(x, height=1.0):
    """Of tails heavier than a normal one's, along directions that are not the axes; NaN where x₀ is above 2."""
    value = -jnp.sum(jnp.sqrt(1.0 + (jnp.asarray(MATRIX) @ x) ** 2))
    return jnp.where(x[0] > 2.0, jnp.nan, height * value)


@jax.jit
def moved(start, height, step_size, length):
    """64 chains with momenta of their own, and what a step makes of each."""

    def move(key):
        sampler = Microcanonical(lambda x: log_density(x, height), "mile")
        chain = sampler.start(start, key=key)
        return chain, sampler.step(chain, Scales(step_size, length), key=key)

    return jax.vmap(move)(KEYS)


def turn(momentum, gradient, time):
    """Momentum after a time under a constant gradient g, by du/dt = (g - u u·g) / (P - 1) exactly, and ∫ u·g dt."""
    slope = np.linalg.norm(gradient)
    along = momentum @ gradient / slope
    delta = time * slope / (len(momentum) - 1)
    growth = np.cosh(delta) + along * np.sinh(delta)
    share = np.sinh(delta) + along * (np.cosh(delta) - 1.0)
    return (momentum + share * gradient / slope) / growth, (len(momentum) - 1) * np.log(growth)


def test_a_step_without_noise_is_the_minimal_norm_composition_of_exact_flows():
    """By NumPy: three turns of the momentum with shares λ, 1 - 2λ, λ of the step, and two moves of half a step each."""
    size, share = 0.7, 0.1931833275037836
    chain, end = moved(START, 1.0, size, np.inf)
    value_of = lambda x: -np.sum(np.sqrt(1.0 + (MATRIX @ x) ** 2))
    gradient_of = lambda x: -MATRIX.T @ (MATRIX @ x / np.sqrt(1.0 + (MATRIX @ x) ** 2))
    for index, momentum in enumerate(np.asarray(chain.momentum[:8])):
        position = np.asarray(START)
        momentum, kinetic = turn(momentum, gradient_of(position), share * size)
        for part in (1.0 - 2.0 * share, share):
            position = position + 0.5 * size * momentum
            momentum, change = turn(momentum, gradient_of(position), part * size)
            kinetic += change
        error = kinetic - (value_of(position) - value_of(np.asarray(START)))
        np.testing.assert_allclose(end.chain.position[index], position, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(end.chain.momentum[index], momentum, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(end.energy_error[index], error, rtol=1e-10, atol=1e-12)


def test_momenta_are_unit_vectors_and_a_step_without_a_finite_end_leaves_the_chain_where_it_was():
    chain, end = moved(START, 1.0, 0.3, 0.7)
    for momentum in (chain.momentum, end.chain.momentum):
        np.testing.assert_allclose(np.linalg.norm(momentum, axis=1), 1.0, rtol=1e-12)
    distances = np.linalg.norm(end.chain.position - chain.position, axis=1)
    assert (distances > 0.1).all() and (distances <= 0.3 + 1e-12).all()
    value, gradient = jax.vmap(jax.value_and_grad(log_density))(end.chain.position)
    np.testing.assert_allclose(end.chain.log_density, value, rtol=1e-12)
    np.testing.assert_allclose(end.chain.gradient, gradient, rtol=1e-10)
    chain, end = moved(START.at[0].set(1.9), 1.0, 0.3, 1.0)
    assert end.is_divergent.any() and not end.is_divergent.all()
    stays = (end.chain.position == chain.position).all(1)
    np.testing.assert_array_equal(stays, end.is_divergent)
    assert np.isfinite(end.chain.log_density).all() and (end.energy_error[end.is_divergent] == 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(end.chain.momentum, axis=1), 1.0, rtol=1e-12)


def test_without_noise_the_energy_error_is_of_third_order_and_a_momentum_is_forgotten_over_the_length():
    """The integrator is of second order and symmetric: half the step size, an eighth of the error."""
    errors = [np.abs(moved(START, 1.0, size, np.inf)[1].energy_error).mean() for size in (0.04, 0.02, 0.01)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 8.0, rtol=0.1)
    # In a step of size ε its mean falls as e^(-ε / L), on a flat density, which does not turn it.
    chain, end = moved(START, 0.0, 0.5, 1.0)
    cosines = np.sum(chain.momentum * end.chain.momentum, axis=1)
    assert abs(cosines.mean() - np.exp(-0.5)) < 0.12
    np.testing.assert_allclose(end.energy_error, 0.0, atol=1e-12)
