"""The optimiser that optax does not have."""

import jax.numpy as jnp
import numpy as np

from gpbench.core.optimisers import adaptive_rates


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
