"""A natural-gradient step of a conjugate model is exact inference, and its size interpolates natural parameters."""

import jax
import jax.numpy as jnp
import numpy as np

from gpbench.core.gaussians import Natural
from gpbench.core.likelihoods import Gaussian
from gpbench.core.natural_gradient import keep_definite, natural_gradient_step

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


def test_a_step_of_size_one_is_the_exact_posterior_of_bayesian_linear_regression():
    q = step(1.0, np.ones(N)).posterior()
    precision = np.eye(M) + V @ V.T / NOISE
    np.testing.assert_allclose(q.mean, np.linalg.solve(precision, V @ (Y - OFFSET)) / NOISE, rtol=1e-7)
    np.testing.assert_allclose(q.root.T @ q.root, np.linalg.inv(precision), rtol=1e-7, atol=1e-10)


def test_a_smaller_step_interpolates_the_natural_parameters_and_weights_scale_the_rows():
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


def test_a_factor_that_a_step_leaves_as_it_is_stays_so():
    after = keep_definite(mixture(FACTOR, 0.5), FACTOR, FACTOR, 0.5)
    np.testing.assert_allclose(after.precision, FACTOR.precision, rtol=1e-12)
    np.testing.assert_allclose(after.shift, FACTOR.shift, rtol=1e-12)
