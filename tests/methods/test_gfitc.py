"""Generalised FITC against expectation propagation written out on dense matrices, and against the exact evidence."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from references import classes, exact_evidence, full_ep, hyper_at, inputs
from scipy.stats import norm

from gpbench.core.sites import flat_sites
from gpbench.errors import ConfigError
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.sep import SEP
from gpbench.methods.vi.svi import SVI
from gpbench.train.batches import whole

KEY = jax.random.key(0)
evidence = eqx.filter_jit(GFITC.evidence)
"""Of (method, ...): one program for each method and shape, where every call of its own would compile its loops again."""


def problem(n):
    X = inputs(n)
    return X, classes(X)


@pytest.mark.parametrize("m", [25, 6])
def test_gfitc_is_full_ep_on_its_prior_and_so_on_the_gp_itself_where_the_inducing_points_are_the_data(m):
    X, y = problem(25)
    hyper = hyper_at(X[:m])
    method = GFITC(tolerance=1e-10)
    value, _, found = evidence(method, hyper, whole(X, y, 2), flat_sites(jnp.ones(25, X.dtype)))
    K = np.asarray(hyper.kernel.gram(X, X))
    prior = K + 0.05 * np.eye(25)
    if m < 25:
        Kzx = K[:m]
        Q = Kzx.T @ np.linalg.solve(K[:m, :m], Kzx)
        prior = Q + np.diag(np.diag(K) - np.diag(Q) + 0.05)
    log_z, tau, nu = full_ep(prior, np.asarray(y))
    np.testing.assert_allclose(value, log_z, rtol=1e-6)
    np.testing.assert_allclose(found.sites.nu, tau, rtol=1e-4)
    np.testing.assert_allclose(found.sites.tau, nu, rtol=1e-4, atol=1e-6)


def test_predictions_are_those_of_full_ep_where_the_inducing_points_are_the_data():
    X, y = problem(25)
    hyper, data = hyper_at(X), whole(X, y, 2)
    method = GFITC(tolerance=1e-10, inducing=25)
    state = method.init(data, key=KEY)
    _, _, found = evidence(method, hyper, data, flat_sites(jnp.ones(25, X.dtype)))
    state = eqx.tree_at(lambda s: (s.hyper, s.optimiser.extra), state, (hyper, found))
    new = jnp.asarray(np.random.default_rng(1).normal(size=(7, 2)))
    K, k = (np.asarray(hyper.kernel.gram(A, X)) for A in (X, new))
    _, tau, nu = full_ep(K + 0.05 * np.eye(25), np.asarray(y))
    B = np.linalg.inv(K + 0.05 * np.eye(25) + np.diag(1 / tau))
    mean = k @ B @ (nu / tau)
    variance = np.exp(0.7) + 0.05 - np.sum((k @ B) * k, 1)
    expected = norm.logcdf(mean / np.sqrt(1 + variance))
    np.testing.assert_allclose(method.predict(state, new).log_positive, expected, rtol=1e-5)


def test_gradient_is_that_of_the_evidence_at_convergence():
    X, y = problem(20)
    data, hyper = whole(X, y, 2), hyper_at(X[:4])
    method = GFITC(tolerance=1e-12, lengthscales="free")
    x, unravel = ravel_pytree(hyper)
    value = jax.jit(lambda x: evidence(method, unravel(x), data, flat_sites(jnp.ones(20, X.dtype)))[0])
    _, gradient, _ = evidence(method, hyper, data, flat_sites(jnp.ones(20, X.dtype)))
    h = 1e-5
    differences = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    np.testing.assert_allclose(ravel_pytree(gradient)[0], differences, rtol=1e-5, atol=1e-6)


def test_energies_of_gfitc_and_sep_approach_the_exact_evidence_and_are_one():
    X, y = problem(3)
    data = whole(X, y, 2)
    hyper = hyper_at(X)
    exact = exact_evidence(np.asarray(hyper.kernel.gram(X, X)) + 0.05 * np.eye(3), np.asarray(y))
    gfitc, *_ = evidence(GFITC(tolerance=1e-10), hyper, data, flat_sites(jnp.ones(3, X.dtype)))
    sep = SEP(optimiser=optax.set_to_zero(), inducing=3)
    state = eqx.tree_at(lambda s: (s.hyper, s.at), sep.init(data, key=KEY), (hyper, hyper))
    state, _ = jax.lax.scan(lambda s, _: sep.step(s, data, key=KEY), state, length=100)
    np.testing.assert_allclose(gfitc, exact, atol=2e-3)  # what EP's approximation costs here
    np.testing.assert_allclose(sep.objective(state, data), gfitc, atol=1e-7)


def test_warm_start_ends_where_a_cold_one_does_and_sooner():
    X, y = problem(40)
    data, hyper = whole(X, y, 2), hyper_at(X[:8])
    moved = eqx.tree_at(lambda h: h.kernel.log_amplitude, hyper, jnp.array(0.75))
    method, flat = GFITC(tolerance=1e-9), flat_sites(jnp.ones(40, X.dtype))
    _, _, found = evidence(method, hyper, data, flat)
    cold, *_ = evidence(method, moved, data, flat)
    warm, *_ = evidence(method, moved, data, found.sites)
    np.testing.assert_allclose(warm, cold, atol=1e-8)
    few = GFITC(tolerance=1e-9, sweeps=4)
    warm_error, cold_error = (abs(evidence(few, moved, data, s)[0] - cold) for s in (found.sites, flat))
    assert warm_error < 1e-2 * cold_error


def test_training_raises_the_evidence_at_every_step_and_predicts_with_what_ep_found():
    X, y = problem(40)
    data, method = whole(X, y, 2), GFITC(inducing=8)
    state, info = jax.lax.scan(lambda s, _: method.step(s, data, key=KEY), method.init(data, key=KEY), length=30)
    assert (np.diff(info.objective) >= 0).all()
    np.testing.assert_allclose(method.objective(state, data), info.objective[-1], atol=1e-6)
    assert method.predict(state, X).log_prob(y).mean() > np.log(0.5)


def test_lengthscales_that_move_together_stay_equal():
    X, y = problem(30)
    data, method = whole(X, y, 2), GFITC(inducing=5, lengthscales="together")
    state, _ = jax.lax.scan(lambda s, _: method.step(s, data, key=KEY), method.init(data, key=KEY), length=10)
    l = state.hyper.kernel.log_lengthscale2
    np.testing.assert_allclose(l[0], l[1], rtol=1e-12)
    assert abs(l[0] - method.init(data, key=KEY).hyper.kernel.log_lengthscale2[0]) > 1e-2


def test_the_three_methods_start_from_the_same_inducing_points_and_hyper_parameters():
    X, y = problem(30)
    data = whole(X, y, 2)
    hypers = [m.init(data, key=KEY).hyper for m in (GFITC(), SVI(), SEP(optimiser=optax.sgd(0.1)))]
    for other in hypers[1:]:
        jax.tree.map(np.testing.assert_array_equal, other, hypers[0])


def test_gfitc_refuses_minibatches():
    X, y = problem(30)
    with pytest.raises(ConfigError, match="batch_size"):
        GFITC(batch_size=10).init(whole(X, y, 2), key=KEY)
