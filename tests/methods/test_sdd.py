"""`sdd` against dense linear algebra: the posterior it converges to, its steps, its samples, and how it fails."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KERNEL, KEY, inputs, objective_of, predict, regression, train

from gpbench.core.bases.fourier import prior_draws
from gpbench.core.kernels import Matern12, Matern32, Matern52, SquaredExponential
from gpbench.core.likelihoods import Gaussian
from gpbench.core.solvers import step_limit
from gpbench.methods.base import Batch
from gpbench.methods.exact import sdd
from gpbench.methods.exact.sdd import SDD
from gpbench.methods.parts import pathwise
from gpbench.methods.parts.exact import ExactGP

GP = ExactGP(KERNEL, Gaussian(jnp.log(jnp.array(0.1))))


method = partial(SDD, name="sdd", samples=2, frequencies=50, subset_rows=200, momentum=0.9, tolerance=0.0)
"""A small `sdd`, with less momentum than by default: easy problems need no more."""


def start(ours, data, gp=GP, key=KEY):
    """The first state of a method with this model."""
    sizes = data.total, ours.batch_size or data.total
    limit = step_limit(gp.kernel, gp.likelihood.noise, data.X, *sizes, ours.momentum)
    return sdd._start(ours, gp, data.X, data.y, limit, key)


def dense(gp, X):
    """H = K + σ²I."""
    return np.asarray(gp.covariance(X))


def exact_mean(gp, data, X):
    """The exact posterior mean at X."""
    return np.asarray(gp.kernel.cross(X, data.X)) @ np.linalg.solve(dense(gp, data.X), np.asarray(data.y))


def distance(ours, exact):
    """The relative root-mean-square difference."""
    return np.linalg.norm(np.asarray(ours) - exact) / np.linalg.norm(exact)


@pytest.mark.parametrize("batch_size, steps", [(None, 400), (30, 1500)])
def test_it_converges_to_the_exact_mean_and_the_largest_dual_objective(batch_size, steps):
    data, new = regression(100), inputs(20, seed=5)
    ours = method(batch_size=batch_size, steps=steps)
    state, _ = train(ours, data, steps, start(ours, data))
    assert distance(predict(ours, state, new).mean, exact_mean(GP, data, new)) < 1e-3
    largest = 0.5 * data.y @ np.linalg.solve(dense(GP, data.X), np.asarray(data.y))
    np.testing.assert_allclose(objective_of(ours, state, data), largest, rtol=1e-3)
    assert objective_of(ours, state, data) <= largest


def test_the_update_of_a_minibatch_is_that_of_all_rows_on_average():
    """Over all batches that the loop may make of 7 rows: 3 blocks of 3 from every first row, the last a short one."""
    data, rng = regression(7), np.random.default_rng(0)
    ours = method(batch_size=3)
    descent = jax.tree.map(lambda array: jnp.asarray(rng.normal(size=array.shape)), start(ours, data).descent)
    state = eqx.tree_at(lambda s: s.descent, start(ours, data), descent)
    first, block = map(np.ravel, np.meshgrid(np.arange(7), np.arange(3)))
    offset = block[:, None] * 3 + np.arange(3)
    index, weight = jnp.asarray((first[:, None] + offset) % 7), jnp.asarray((offset < 7).astype(float))

    def stepped(index, weight):
        batch = Batch(data.X[index], data.y[index], index, weight, 7)
        new, info = ours.step(state, batch, key=KEY)
        return new.descent.velocity, new.descent.weights, info.objective

    velocity, weights, objective = (part.mean(0) for part in jax.jit(jax.vmap(stepped))(index, weight))
    H, ahead, b = dense(GP, data.X), np.asarray(descent.ahead(0.9)), np.asarray(state.targets)
    beta = float(state.limit * state.step_size)
    expected = 0.9 * descent.velocity - beta * (H @ ahead - b)
    np.testing.assert_allclose(velocity, expected, rtol=1e-10)
    np.testing.assert_allclose(weights, descent.weights + expected, rtol=1e-10)
    np.testing.assert_allclose(objective, b[:, 0] @ ahead[:, 0] - 0.5 * ahead[:, 0] @ H @ ahead[:, 0], rtol=1e-10)


def test_a_batch_without_rows_moves_by_momentum_and_the_variance_is_that_of_samples_and_noise():
    data, ours = regression(7), method(batch_size=3)
    state = start(ours, data)
    new, info = ours.step(state, Batch(data.X[:3], data.y[:3], jnp.arange(3), jnp.zeros(3), 7), key=KEY)
    assert not np.any(new.descent.weights) and info.objective == 0.0
    data, new, ours = regression(12), inputs(4, seed=5), method(samples=5)
    state, _ = train(ours, data, 30, start(ours, data))
    mean, deviations = ours.posterior(state, new)
    predictive = predict(ours, state, new)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(predictive.var, (deviations**2).mean(1) + 0.1, rtol=1e-12)


def test_samples_have_the_mean_and_the_covariance_of_the_exact_posterior():
    """For 100 keys, each with features of its own, covariances over its 40 samples are independent and unbiased."""
    data, new, ours = regression(12), inputs(4, seed=5), method(samples=40, steps=500)

    @jax.jit
    @jax.vmap
    def deviations(key):
        step = lambda t, state: ours.step(state, data, key=KEY)[0]
        return ours.posterior(jax.lax.fori_loop(0, ours.steps, step, start(ours, data, key=key)), new)[1]

    samples = np.asarray(deviations(jax.random.split(KEY, 100)))
    k = np.asarray(KERNEL.cross(new, data.X))
    exact = np.asarray(KERNEL.cross(new, new)) - k @ np.linalg.solve(dense(GP, data.X), k.T)
    for estimates, value in ((samples.mean(2), 0.0), (samples @ np.swapaxes(samples, 1, 2) / 40, exact)):
        error = estimates.std(0) / np.sqrt(len(estimates))
        assert np.all(np.abs(estimates.mean(0) - value) < 4.0 * error)
        assert np.all(error < 0.05 * np.sqrt(exact.max()))


@pytest.mark.parametrize("family", [SquaredExponential, Matern12, Matern32, Matern52])
def test_draws_of_the_prior_have_the_kernel_as_covariance(family):
    """Given the frequencies, of which there are enough for a standard error below amp / 100."""
    X, kernel = inputs(8), family(KERNEL.log_amplitude, KERNEL.log_lengthscale2)
    draws = prior_draws(kernel, X, 10_000, 3, key=KEY)
    phase = 2 * np.pi * np.asarray(X / kernel.lengthscales) @ np.asarray(draws.turns).T
    features = np.sqrt(kernel.amplitude / 10_000) * np.hstack([np.cos(phase), np.sin(phase)])
    np.testing.assert_allclose(features @ features.T, kernel.cross(X, X), atol=0.04 * float(kernel.amplitude))
    np.testing.assert_allclose(draws(kernel, X), features @ np.vstack(draws.weights), rtol=1e-9)


def test_the_residual_is_that_of_the_average(monkeypatch):
    monkeypatch.setattr(pathwise, "_CHECKED", 20)
    data, ours = regression(25), method(samples=3)
    state, _ = train(ours, data, 30, start(ours, data))
    residual = (np.asarray(state.targets) - dense(GP, data.X) @ state.descent.average)[-20:]
    ratio = np.linalg.norm(residual, axis=0) ** 2, np.linalg.norm(state.targets[-20:], axis=0) ** 2
    found = ours.diagnostics(state)
    np.testing.assert_allclose(found["residual"], np.sqrt(ratio[0][0] / ratio[1][0]))
    np.testing.assert_allclose(found["residual_samples"], np.sqrt(ratio[0][1:].sum() / ratio[1][1:].sum()))


@pytest.mark.parametrize("batch_size", [None, 20])
def test_beyond_its_limit_it_diverges_and_says_so(batch_size):
    data, new = regression(100), inputs(4, seed=5)
    for step_size, diverges in ((0.9, False), (3.0, True)):
        ours = method(batch_size=batch_size, step_size=step_size)
        state, objective = train(ours, data, 200, start(ours, data))
        assert np.isnan(objective[-1]) == diverges
        assert np.isnan(predict(ours, state, new).log_prob(jnp.zeros(4))).all() == diverges
        line = ours.diagnose(state)
        assert ("diverged with step size 3: try method.rates=[1]" in line) == diverges and "\n" not in line


def test_the_limit_without_sampling_is_that_of_nesterovs_recursion():
    """z² - (1 - h)(1 + ρ) z + (1 - h) ρ has a root of modulus 1 at h = βλ = (2 + 2ρ) / (1 + 2ρ)."""
    for momentum in (0.0, 0.5, 0.9):
        h = (2 + 2 * momentum) / (1 + 2 * momentum)
        assert np.isclose(max(abs(np.roots([1, -(1 - h) * (1 + momentum), (1 - h) * momentum]))), 1.0)
    data = regression(50)
    top, diagonal = np.linalg.eigvalsh(dense(GP, data.X))[-1], dense(GP, data.X)[0, 0]
    limit = step_limit(GP.kernel, GP.likelihood.noise, data.X, 50, 20, 0.9)
    np.testing.assert_allclose(1.0 / limit, 2.8 / 3.8 * top + 3 * diagonal / 0.2, rtol=1e-8)


def test_training_ends_at_the_tolerance_and_the_record_may_say_that_it_converged():
    """`levels` are residuals of minibatches on the way; those of the average, over all rows, are no larger."""
    data = regression(100)
    ours = method(batch_size=30, steps=1500, tolerance=0.01)
    first = start(ours, data)
    late, _ = train(ours, data, ours.steps, first)
    assert not ours.converged(first) and ours.converged(late) and method().converged(late) is None
    found = ours.diagnostics(late)
    assert 0 < found["residual"] <= 0.01 and found["residual_samples"] <= 0.01
    again, _ = ours.step(late, data.first(30), key=KEY)
    jax.tree.map(np.testing.assert_array_equal, again.descent, late.descent)
