"""The optimisers that optax does not have."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from gpbench.core.optimisers import adam_of_scales, adaptive_rates


def test_rates_grow_by_two_percent_on_a_kept_sign_and_halve_on_a_flip():
    optimiser = adaptive_rates(start=0.01)
    p = {"a": jnp.array([1.0, 1.0])}
    state = optimiser.init(p)
    for gradient in ([1.0, 1.0], [1.0, 1.0], [1.0, -1.0]):
        updates, state = optimiser.update({"a": jnp.array(gradient)}, state, p)
    np.testing.assert_allclose(state.rates["a"], [0.01 * 1.02**2, 0.01 * 1.02 * 0.5])
    np.testing.assert_allclose(updates["a"], [-0.01 * 1.02**2, 0.01 * 1.02 * 0.5])


def test_shared_parameters_have_the_sign_of_their_summed_gradient():
    optimiser = adaptive_rates(start=0.01, shared="lengthscale")
    p = {"lengthscale": jnp.zeros(2), "other": jnp.zeros(2)}
    state = optimiser.init(p)
    for _ in range(2):
        _, state = optimiser.update({"lengthscale": jnp.array([3.0, -1.0]), "other": jnp.array([3.0, -1.0])}, state, p)
    _, state = optimiser.update({"lengthscale": jnp.array([3.0, 1.0]), "other": jnp.array([3.0, 1.0])}, state, p)
    np.testing.assert_allclose(state.rates["lengthscale"], [0.01 * 1.02**2] * 2)
    np.testing.assert_allclose(state.rates["other"], [0.01 * 1.02**2, 0.01 * 1.02 * 0.5])


def test_no_step_reaches_further_than_it_may():
    optimiser = adaptive_rates(start=0.01, reach=0.3)
    p = {"a": jnp.zeros(3)}
    updates, _ = optimiser.update({"a": jnp.array([1e4, -1e4, 1.0])}, optimiser.init(p), p)
    np.testing.assert_allclose(updates["a"], [-0.3, 0.3, -0.01])


def test_adam_of_scales_moves_logs_of_squares_as_adam_moves_logs():
    """The same function of a standard deviation s: of log s under Adam, of log s² here, equal to Adam's epsilon."""

    class Scale(eqx.Module):
        log_variance: Array

    start = 0.7
    ours, adam = adam_of_scales(0.01), optax.adam(0.01)
    x, y = Scale(jnp.asarray(2 * start)), jnp.asarray(start)
    state, other = ours.init(x), adam.init(y)
    value = lambda log_s: (jnp.exp(log_s) - 3.0) ** 2
    for _ in range(5):
        updates, state = ours.update(jax.grad(lambda x: value(0.5 * x.log_variance))(x), state)
        x = optax.apply_updates(x, updates)
        updates, other = adam.update(jax.grad(value)(y), other)
        y = optax.apply_updates(y, updates)
    np.testing.assert_allclose(x.log_variance, 2 * y, rtol=1e-6)
