"""Generalised FITC against expectation propagation written out on dense matrices, and against the exact evidence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, binary, differences, inputs, layer_at, objective_of, predict, sep, start_layer, train
from references import dense_ep, exact_evidence
from scipy.stats import norm

from gpbench.core.gaussians import initial_sites
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.sep import SEP
from gpbench.methods.vi.svi import SVI


@jax.jit
def evidence(method, layer, data, sites=None):
    """log Z, its gradient and the converged inference, compiled."""
    return method.evidence(layer, data, initial_sites(data.weight) if sites is None else sites)


@pytest.mark.parametrize("m", [15, 6])
def test_gfitc_is_full_ep_on_its_prior_and_so_on_the_gp_itself_where_the_inducing_points_are_the_data(m):
    data = binary(15)
    layer = layer_at(data.X[:m])
    method = GFITC(tolerance=1e-10, inducing=m)
    value, _, inference = evidence(method, layer, data)
    K = np.asarray(layer.kernel.cross(data.X, data.X))
    prior = K + 0.05 * np.eye(15)
    if m < 15:
        Kzx = K[:m]
        Q = Kzx.T @ np.linalg.solve(K[:m, :m], Kzx)
        prior = Q + np.diag(np.diag(K) - np.diag(Q) + 0.05)
    log_z, nu, tau, *_ = dense_ep(prior, np.asarray(data.y))
    np.testing.assert_allclose(value, log_z, rtol=1e-6)
    np.testing.assert_allclose(inference.sites.nu, nu, rtol=1e-4)
    np.testing.assert_allclose(inference.sites.tau, tau, rtol=1e-4, atol=1e-6)
    if m == 15:  # predictions are those of full EP too
        state = start_layer(method, data, layer)
        state = eqx.tree_at(lambda s: s.optimiser.extra, state, inference)
        new = inputs(7, seed=1)
        k = np.asarray(layer.kernel.cross(new, data.X))
        B = np.linalg.inv(prior + np.diag(1 / nu))
        mean, variance = k @ B @ (tau / nu), np.exp(0.7) + 0.05 - np.sum((k @ B) * k, 1)
        expected = norm.logcdf(mean / np.sqrt(1 + variance))
        np.testing.assert_allclose(predict(method, state, new).log_positive, expected, rtol=1e-5)


def test_gradient_is_that_of_the_evidence_at_convergence_and_three_methods_start_alike():
    data = binary(15)
    layer = layer_at(data.X[:3])
    method, sites = GFITC(tolerance=1e-12), initial_sites(data.weight)
    x, unravel = ravel_pytree(layer)
    _, gradient, _ = evidence(method, layer, data)
    expected = differences(lambda x: method.evidence(unravel(x), data, sites)[0], x)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], expected, rtol=1e-5, atol=1e-6)
    data = binary(30)
    gfitc = GFITC().init(data, key=KEY).parameters
    jax.tree.map(np.testing.assert_array_equal, SVI().init(data, key=KEY).parameters.layer, gfitc)
    jax.tree.map(np.testing.assert_array_equal, SEP(optimiser=optax.sgd(0.1)).init(data, key=KEY).layer, gfitc)


def test_energies_of_gfitc_and_sep_approach_the_exact_evidence_and_are_one():
    data = binary(3)
    layer = layer_at(data.X)
    exact = exact_evidence(np.asarray(layer.kernel.cross(data.X, data.X)) + 0.05 * np.eye(3), np.asarray(data.y))
    gfitc, *_ = evidence(GFITC(tolerance=1e-10), layer, data)
    method = sep(inducing=3)
    state, _ = train(method, data, 100, start_layer(method, data, layer))
    np.testing.assert_allclose(gfitc, exact, atol=2e-3)  # what EP's approximation costs here
    np.testing.assert_allclose(objective_of(method, state, data), gfitc, atol=1e-7)


def test_warm_start_ends_where_a_cold_one_does_and_sooner():
    data = binary(30)
    layer, flat = layer_at(data.X[:8]), initial_sites(data.weight)
    moved = eqx.tree_at(lambda l: l.kernel.log_amplitude, layer, jnp.array(0.75))
    method, few = GFITC(tolerance=1e-9), GFITC(tolerance=1e-9, sweeps=4)
    converged = evidence(method, layer, data)[2].sites
    cold, warm = (evidence(method, moved, data, sites)[0] for sites in (flat, converged))
    np.testing.assert_allclose(warm, cold, atol=1e-8)
    warm_error, cold_error = (abs(evidence(few, moved, data, sites)[0] - cold) for sites in (converged, flat))
    assert warm_error < 1e-2 * cold_error


def test_training_raises_the_evidence_at_every_step_and_predicts_with_the_converged_sites():
    data, method = binary(30), GFITC(inducing=8)
    start = method.init(data, key=KEY)
    state, objective = train(method, data, 30, start)
    assert (np.diff(objective) >= 0).all()
    np.testing.assert_allclose(objective_of(method, state, data), objective[-1], atol=1e-6)
    assert predict(method, state, data.X).log_prob(data.y).mean() > np.log(0.5)
    before, after = (s.parameters.kernel.log_lengthscale2 for s in (start, state))
    assert (np.abs(after - before) > 1e-2).all() and abs(after[0] - after[1]) > 1e-2  # each its own
