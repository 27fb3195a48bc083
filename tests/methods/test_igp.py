"""`igp` against dense linear algebra: its gradient, its solutions, and where it ends."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import KERNEL, KEY, inputs, predict, regression, train

from gpbench.core.kernels import LengthscalePrior, Matern32
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.exact import igp
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.exact.igp import IGP
from gpbench.methods.parts.exact import ExactGP, log_posterior

GP = ExactGP(KERNEL, Gaussian(jnp.log(jnp.array(0.1))))
PRIOR = LengthscalePrior(1.0, 1.0)


def method(**fields):
    small = {"samples": 4, "frequencies": 100, "subset_rows": 20, "rank": 5, "tolerance": 1e-9}
    return IGP(**{"name": "igp", "optimiser": optax.adam(0.1), "lengthscale_prior": PRIOR, **small, **fields})


def slopes(tree):
    return ravel_pytree(tree)[0]


def test_the_gradient_is_that_of_the_log_evidence_without_bias():
    """By 4,000 probes, each with frequencies of its own; without the trace it is many standard errors away."""
    data, ours = regression(10), method(samples=2, frequencies=200, rank=10)
    one = jax.jit(lambda key: slopes(ours.slope(igp._start(ours, GP, data.X, data.y, key))))
    found = np.stack([one(key) for key in jax.random.split(KEY, 2000)])
    exact = slopes(jax.grad(lambda gp: log_posterior(gp, data, PRIOR)[0])(GP))
    error = found.std(axis=0) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - exact) < 4.0 * error)

    def fit(gp):  # the part without the trace
        v = jax.lax.stop_gradient(jnp.linalg.solve(gp.covariance(data.X), data.y))
        return 0.5 * v @ gp.covariance(data.X) @ v + PRIOR.log_prob(gp.kernel, 2)

    assert np.all(np.abs(slopes(jax.grad(fit)(GP)) - exact) > 20.0 * error)


@pytest.mark.parametrize("kernel", [KERNEL, Matern32(KERNEL.log_amplitude, KERNEL.log_lengthscale2)])
def test_the_kernels_slope_in_blocks_is_that_of_the_whole_matrix(kernel, monkeypatch):
    monkeypatch.setattr(igp, "PRODUCT_ROWS", 5)
    monkeypatch.setattr(igp, "PRODUCT_COLUMNS", 8)
    rng, X = np.random.default_rng(0), inputs(23)
    W, share = jnp.asarray(rng.normal(size=(23, 3))), jnp.asarray([0.5, -0.2, -0.3])
    whole = jax.grad(lambda kernel: jnp.sum(share * jnp.sum(W * (kernel.cross(X, X) @ W), axis=0)))(kernel)
    np.testing.assert_allclose(slopes(igp._slope_of_kernel(kernel, X, W, share)), slopes(whole), rtol=1e-11)


def test_predictions_are_those_of_the_exact_posterior():
    """The mean to the solver's tolerance; variances within five standard errors √(2/S) of a mean of squares."""
    data, new, ours = regression(40), inputs(6, seed=9), method(samples=2000, frequencies=4000)
    found = predict(ours, igp._start(ours, GP, data.X, data.y, KEY), new)
    C, k = np.asarray(GP.covariance(data.X)), np.asarray(KERNEL.cross(data.X, new))
    np.testing.assert_allclose(found.mean, k.T @ np.linalg.solve(C, data.y), rtol=1e-6)
    latent = np.asarray(KERNEL.diag(new)) - np.sum(k * np.linalg.solve(C, k), axis=0)
    assert np.all(np.abs(found.var - 0.1 - latent) < 5.0 * np.sqrt(2.0 / 2000) * latent)


def test_training_ends_near_the_largest_evidence_from_a_start_on_few_rows():
    data = regression(60)
    ours = method(samples=200, subset_rows=15, frequencies=1000)
    start = ours.init(data, key=KEY)
    state, _ = train(ours, data, 100, start)
    value = lambda gp: float(log_posterior(gp, data, PRIOR)[0])
    best, _ = train(GPR(name="gpr", lengthscale_prior=PRIOR), data, 60)
    assert value(state.parameters) > value(best.parameters) - 0.5
    assert value(start.parameters) < value(best.parameters) - 2.0


def test_solutions_cut_short_are_on_the_record_and_the_next_starts_from_the_last():
    data = regression(60)
    short, whole = method(iterations=1, rank=1, tolerance=1e-6), method(rank=1, tolerance=1e-6)
    states = [igp._start(ours, GP, data.X, data.y, KEY) for ours in (short, whole)]
    first, second = (ours.diagnostics(state) for ours, state in zip((short, whole), states))
    assert first["residual"] > 1e-3 > 2e-6 >= second["residual"] and int(first["iterations"]) == 1
    assert [bool(ours.optimum(state)) for ours, state in zip((short, whole), states)] == [False, True]
    nearby = dataclasses.replace(states[1], parameters=jax.tree.map(lambda leaf: leaf + 1e-5, GP))
    cold = dataclasses.replace(nearby, weights=jnp.zeros_like(nearby.weights))
    counts = [int(whole.solved(state).iterations - state.iterations) for state in (nearby, cold)]
    assert 0 < counts[0] < counts[1]
