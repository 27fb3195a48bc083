"""Optimisers and natural-gradient steps: exact in a conjugate model, along the numerical gradient."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from gpbench.core.gaussians import Natural
from gpbench.core.likelihoods import Gaussian, Poisson
from gpbench.core.natural_gradient import keep_definite, natural_gradient_step
from gpbench.core.optimisers import adam_of_scales, adaptive_rates

M, N, NOISE = 3, 8, 0.2
RANDOM = np.random.default_rng(0)
V, OFFSET, REST, Y = (RANDOM.normal(size=shape) for shape in ((M, N), (N,), (N,), (N,)))
ROOT = RANDOM.normal(size=(M, M))
FACTOR = Natural(jnp.asarray(ROOT @ ROOT.T), jnp.asarray(RANDOM.normal(size=M)))


def step(step_size, weight):
    """The factor after a step from `FACTOR`, for targets with Gaussian noise about f = Vᵀw + offset + rest."""
    likelihood, q = Gaussian(jnp.log(NOISE)), FACTOR.posterior()
    mean, variance = q.project(jnp.asarray(V))

    @jax.jit
    def run(mean, variance):
        expected = lambda m, v: likelihood.expected_log_prob(m, v, jnp.asarray(Y))
        weights, offset = jnp.asarray(weight), jnp.asarray(OFFSET)
        return natural_gradient_step(FACTOR, expected, mean, variance, jnp.asarray(V), weights, step_size, offset)

    return run(mean + OFFSET, variance + REST**2)


def test_a_step_of_size_one_is_the_exact_posterior_of_linear_regression_and_a_smaller_one_interpolates():
    q = step(1.0, np.ones(N)).posterior()
    precision = np.eye(M) + V @ V.T / NOISE
    np.testing.assert_allclose(q.mean, np.linalg.solve(precision, V @ (Y - OFFSET)) / NOISE, rtol=1e-7)
    np.testing.assert_allclose(q.root.T @ q.root, np.linalg.inv(precision), rtol=1e-7, atol=1e-10)
    weight = np.where(np.arange(N) < 4, 2.0, 0.0)
    new = step(0.3, weight)
    precision, shift = (V * weight) @ V.T / NOISE, V @ (weight * (Y - OFFSET)) / NOISE
    np.testing.assert_allclose(new.precision, 0.3 * precision + 0.7 * FACTOR.precision, rtol=1e-9)
    np.testing.assert_allclose(new.shift, 0.3 * shift + 0.7 * FACTOR.shift, rtol=1e-9)


def mixture(new, step_size):
    return jax.tree.map(lambda a, b: step_size * a + (1 - step_size) * b, new, FACTOR)


def test_a_step_towards_an_indefinite_precision_stays_positive_definite_and_ascends():
    """Of the mean, in the direction of a step without it: γ times the new covariance times the gradient."""
    root = 5 * RANDOM.normal(size=(M, M))
    new = Natural(jnp.asarray(-root @ root.T), jnp.asarray(RANDOM.normal(size=M)))
    assert np.linalg.eigvalsh(np.eye(M) + mixture(new, 0.9).precision)[0] < 0
    for step_size in (0.1, 0.5, 0.9):
        after = keep_definite(mixture(new, step_size), new, FACTOR, step_size)
        precision = np.eye(M) + after.precision
        assert np.linalg.eigvalsh(precision)[0] > 0
        mean = np.asarray(FACTOR.posterior().mean)
        gradient = np.asarray(new.shift) - (np.eye(M) + new.precision) @ mean
        expected = mean + step_size * np.linalg.solve(precision, gradient)
        np.testing.assert_allclose(after.posterior().mean, expected, rtol=1e-6)


def test_a_factor_that_a_step_leaves_stays_and_rates_grow_on_a_kept_sign_and_halve_on_a_flip():
    after = keep_definite(mixture(FACTOR, 0.5), FACTOR, FACTOR, 0.5)
    np.testing.assert_allclose(after.precision, FACTOR.precision, rtol=1e-12)
    np.testing.assert_allclose(after.shift, FACTOR.shift, rtol=1e-12)
    optimiser = adaptive_rates(start=0.01)
    p = {"a": jnp.array([1.0, 1.0])}
    state = optimiser.init(p)
    for gradient in ([1.0, 1.0], [1.0, 1.0], [1.0, -1.0]):
        updates, state = optimiser.update({"a": jnp.array(gradient)}, state, p)
    np.testing.assert_allclose(state.rates["a"], [0.01 * 1.02**2, 0.01 * 1.02 * 0.5])
    np.testing.assert_allclose(updates["a"], [-0.01 * 1.02**2, 0.01 * 1.02 * 0.5])


COUNTS = RANDOM.poisson(1.0, size=N)


def count_step(factor, step_size):
    """The factor after a step for counts of the mean e^f on all rows."""
    mean, variance = factor.posterior().project(jnp.asarray(V))
    expected = lambda m, v: Poisson.initial(0.0, 1, m.dtype).expected_log_prob(m, v, jnp.asarray(COUNTS, m.dtype))
    return natural_gradient_step(factor, expected, mean, variance + REST**2, jnp.asarray(V), jnp.ones(N), step_size)


def count_bound(mean, square):
    """The bound as a function of q's expectation parameters E w and E wwᵀ, without its constant."""
    S = square - np.outer(mean, mean)
    m, v = mean @ V, np.sum(V * (S @ V), axis=0) + REST**2
    kl = 0.5 * (np.trace(S) + mean @ mean - M - np.linalg.slogdet(S)[1])
    return COUNTS @ m - np.sum(np.exp(m + 0.5 * v)) - kl


def test_a_step_follows_the_gradient_in_expectation_parameters():
    precision, shift = np.eye(M) + np.asarray(FACTOR.precision), np.asarray(FACTOR.shift)
    S = np.linalg.inv(precision)
    mean, h = S @ shift, 1e-5
    square = S + np.outer(mean, mean)
    gradient = np.zeros(M)
    for i, e in enumerate(np.eye(M)):
        gradient[i] = (count_bound(mean + h * e, square) - count_bound(mean - h * e, square)) / (2 * h)
    slope = np.zeros((M, M))
    for i in range(M):
        for j in range(M):
            E = h * 0.5 * (np.outer(np.eye(M)[i], np.eye(M)[j]) + np.outer(np.eye(M)[j], np.eye(M)[i]))
            slope[i, j] = (count_bound(mean, square + E) - count_bound(mean, square - E)) / (2 * h)
    new = jax.jit(lambda: count_step(FACTOR, 0.3))()
    # the natural parameters are S⁻¹ mean and -½ S⁻¹
    np.testing.assert_allclose(new.shift, shift + 0.3 * gradient, rtol=1e-6)
    np.testing.assert_allclose(new.precision, precision - 0.6 * slope - np.eye(M), rtol=1e-6, atol=1e-6)


def test_steps_are_those_of_dual_parameters_of_each_row():
    """Adam et al. (2021): λ ← (1 - ρ) λ + ρ (dE/dm + c m, c) with c = -2 dE/dv, two numbers for each row."""
    first, second, factor = np.zeros(N), np.zeros(N), Natural(jnp.zeros((M, M)), jnp.zeros(M))
    step = jax.jit(lambda factor: count_step(factor, 0.3))
    for _ in range(4):
        S = np.linalg.inv(np.eye(M) + (V * second) @ V.T)
        m, v = V.T @ S @ V @ first, np.sum(V * (S @ V), axis=0) + REST**2
        rate = np.exp(m + 0.5 * v)
        first, second = 0.7 * first + 0.3 * (COUNTS - rate + rate * m), 0.7 * second + 0.3 * rate
        factor = step(factor)
        np.testing.assert_allclose(factor.shift, V @ first, rtol=1e-6)
        np.testing.assert_allclose(factor.precision, (V * second) @ V.T, rtol=1e-6, atol=1e-8)


def test_shared_parameters_have_the_sign_of_their_summed_gradient_and_no_step_reaches_further_than_it_may():
    optimiser = adaptive_rates(start=0.01, shared="lengthscale")
    p = {"lengthscale": jnp.zeros(2), "other": jnp.zeros(2)}
    state = optimiser.init(p)
    for _ in range(2):
        _, state = optimiser.update({"lengthscale": jnp.array([3.0, -1.0]), "other": jnp.array([3.0, -1.0])}, state, p)
    _, state = optimiser.update({"lengthscale": jnp.array([3.0, 1.0]), "other": jnp.array([3.0, 1.0])}, state, p)
    np.testing.assert_allclose(state.rates["lengthscale"], [0.01 * 1.02**2] * 2)
    np.testing.assert_allclose(state.rates["other"], [0.01 * 1.02**2, 0.01 * 1.02 * 0.5])
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
