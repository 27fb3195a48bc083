"""Probabilistic backpropagation against exact conditioning, the paper's equations weight by weight, and training."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, inputs, targets
from scipy.stats import norm

from gpbench.core.assumed_density import Gamma, output_moments
from gpbench.core.networks import Affine, Network
from gpbench.methods.bnn.pbp import PBP, PbpPosterior, PbpState, PriorFactors, include, random_order, refine_prior
from gpbench.train.batches import whole

INCLUDE = jax.jit(include)
REFINE = jax.jit(refine_prior)
NOISE = Gamma(jnp.array(9.0), jnp.array(2.0))


def flat(network):
    return np.asarray(ravel_pytree(network)[0])


def posterior(widths, seed=0):
    """Random means and variances, and NOISE."""
    rng = np.random.default_rng(seed)

    def network(draw):
        layer = lambda i, o: Affine(jnp.asarray(draw((i, o))), jnp.asarray(draw((o,))), (i + 1.0) ** 0.5)
        return Network(tuple(layer(i, o) for i, o in pairwise(widths)))

    mean = network(lambda shape: rng.normal(size=shape))
    return PbpPosterior(mean, network(lambda shape: rng.uniform(0.1, 2.0, shape)), NOISE)


def test_a_row_under_a_linear_model_has_the_marginals_of_exact_conditioning():
    q = posterior((2, 1))
    x, y = np.array([0.7, -1.2]), 1.5
    new, log_z = INCLUDE(q, (jnp.asarray(x), jnp.asarray(y), jnp.asarray(True)))
    m, V = (np.array([*layer.weight[:, 0], layer.bias[0]]) for layer in (q.mean.layers[0], q.variance.layers[0]))
    V, a, noise = np.diag(V), np.array([*x, 1.0]) / np.sqrt(3.0), 2.0 / 8.0
    s = a @ V @ a + noise
    exact_mean, exact = m + V @ a * (y - a @ m) / s, V - np.outer(V @ a, V @ a) / s
    np.testing.assert_allclose([*new.mean.layers[0].weight[:, 0], new.mean.layers[0].bias[0]], exact_mean, rtol=1e-12)
    variances = [*new.variance.layers[0].weight[:, 0], new.variance.layers[0].bias[0]]
    np.testing.assert_allclose(variances, np.diag(exact), rtol=1e-12)
    np.testing.assert_allclose(log_z, norm.logpdf(y, a @ m, np.sqrt(s)), rtol=1e-12)


def test_updates_of_a_hidden_layer_are_the_papers_by_finite_differences_and_negative_variances_are_omitted():
    """m + v g and v - v² (g² - 2 h), with central differences g and h of log Z.

    With the second row, which is far off, some variances would be negative.
    """
    q = posterior((2, 3, 1), seed=3)
    m, v = flat(q.mean), flat(q.variance)
    unravel = ravel_pytree(q.mean)[1]
    omitted = 0
    for x, y in ((np.array([0.7, -1.2]), 0.5), (np.array([0.7, -0.5]), -9.0)):

        @jax.jit
        def log_z(m, v, x=x, y=y):
            mean, variance = output_moments(unravel(m), unravel(v), jnp.asarray(x)[None])
            return NOISE.log_evidence(y - mean[0], variance[0])

        steps = 1e-5 * np.eye(len(m))
        g = np.array([log_z(m + e, v) - log_z(m - e, v) for e in steps]) / 2e-5
        h = np.array([log_z(m, v + e) - log_z(m, v - e) for e in steps]) / 2e-5
        narrowed = v - v**2 * (g**2 - 2.0 * h)
        ok = narrowed > 0.0
        omitted += (~ok).sum()
        new, _ = INCLUDE(q, (jnp.asarray(x), jnp.asarray(y), jnp.asarray(True)))
        np.testing.assert_allclose(flat(new.mean), np.where(ok, m + v * g, m), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(flat(new.variance), np.where(ok, narrowed, v), rtol=1e-6, atol=1e-8)
    assert 0 < omitted < len(m)


@pytest.mark.parametrize("y, counts", [(0.3, False), (np.nan, True), (np.inf, True)])
def test_a_row_that_does_not_count_or_is_not_finite_changes_nothing(y, counts):
    q = posterior((2, 3, 1))
    new, _ = INCLUDE(q, (jnp.array([0.7, -1.2]), jnp.asarray(y), jnp.asarray(counts)))
    assert all(map(np.array_equal, jax.tree.leaves(new), jax.tree.leaves(q)))


def refine_as_printed(m, v, gamma, factors):
    """EP on the prior's factors in natural parameters, by the general updates from log Z, Z₁ and Z₂."""
    a, b = gamma
    for i, (m_hat, v_hat, a_hat, b_hat) in enumerate(factors):
        v_cav = 1.0 / (1.0 / v[i] - v_hat)
        m_cav = v_cav * (m[i] / v[i] - m_hat)
        a_cav, b_cav = a - a_hat, b - b_hat
        if not (v_cav > 0.0 and v_cav < 1e6 and a_cav > 1.0 and b_cav > 0.0):
            continue
        s0, s1, s2 = (v_cav + b_cav / (a_cav - 1.0 + k) for k in range(3))
        z0, z1, z2 = (norm.logpdf(0.0, m_cav, np.sqrt(s)) for s in (s0, s1, s2))
        g, h = -m_cav / s0, -0.5 / s0 + 0.5 * m_cav**2 / s0**2
        m[i], v[i] = m_cav + v_cav * g, v_cav - v_cav**2 * (g**2 - 2.0 * h)
        a = 1.0 / (np.exp(z2 - 2.0 * z1 + z0) * (a_cav + 1.0) / a_cav - 1.0)
        b = 1.0 / (np.exp(z2 - z1) * (a_cav + 1.0) / b_cav - np.exp(z1 - z0) * a_cav / b_cav)
        factors[i] = m[i] / v[i] - m_cav / v_cav, 1.0 / v[i] - 1.0 / v_cav, a - a_cav, b - b_cav
    return m, v, (a, b), factors


def test_the_priors_factors_are_refined_by_expectation_propagation_one_weight_after_another():
    """Twice, with other means and variances between, as a pass makes; one weight's cavity is not a distribution."""
    q = posterior((2, 2, 1), seed=4)
    count = len(flat(q.mean))
    variance = jax.tree.map(lambda leaf: 0.3 * leaf, q.variance)
    variance = Network((variance.layers[0], Affine(variance.layers[1].weight, jnp.array([50.0]), 3.0**0.5)))
    zeros = jnp.zeros(count)
    prior = Gamma(jnp.array(6.0), jnp.array(6.0)), PriorFactors(zeros + 5.0 / 6.0, zeros, zeros)
    state = PbpState(PbpPosterior(q.mean, variance, NOISE), *prior)
    m, v, gamma = flat(q.mean).copy(), flat(variance).copy(), (6.0, 6.0)
    factors = [(0.0, 5.0 / 6.0, 0.0, 0.0)] * count
    for _ in range(2):
        state = REFINE(state)
        m, v, gamma, factors = refine_as_printed(m, v, gamma, factors)
        np.testing.assert_allclose(flat(state.posterior.mean), m, rtol=1e-9)
        np.testing.assert_allclose(flat(state.posterior.variance), v, rtol=1e-9)
        np.testing.assert_allclose([state.prior.shape, state.prior.rate], gamma, rtol=1e-9)
        parts = state.factors.precision, state.factors.shape, state.factors.rate
        expected = np.transpose(factors)
        np.testing.assert_allclose(expected[0], 0.0, atol=1e-9)
        np.testing.assert_allclose(np.stack(parts), expected[1:], rtol=1e-7, atol=1e-9)
        moved = [
            jax.tree.map(lambda leaf, by=by: by * leaf, part)
            for part, by in ((state.posterior.mean, 1.3), (state.posterior.variance, 0.8))
        ]
        state = PbpState(PbpPosterior(*moved, NOISE), state.prior, state.factors)
        m, v = 1.3 * m, 0.8 * v
    assert factors[-1][2] == 0.0 and all(factor[2] != 0.0 for factor in factors[:-1])


def test_a_pass_sees_every_row_that_counts_once_and_first():
    data = whole(inputs(12), targets(inputs(12)), rows=9)
    orders = [np.asarray(random_order(data, key=jax.random.key(seed))) for seed in range(3)]
    assert all(sorted(order[:9]) == list(range(9)) and sorted(order[9:]) == [9, 10, 11] for order in orders)
    assert len({tuple(order) for order in orders}) == 3


def test_passes_lower_the_error_and_the_predicted_variance_includes_the_noise():
    """From a constant's error, above 1, to below 0.3, the noise's standard deviation."""
    X = inputs(150)
    y = targets(X)
    scale = jnp.std(y)
    data = whole(X, (y - jnp.mean(y)) / scale)
    method = PBP(name="pbp", hidden=(8,))
    state = method.init(data, key=KEY)

    @jax.jit
    def train(state, keys):
        return jax.lax.scan(lambda state, key: method.step(state, data, key=key), state, keys)

    state, info = train(state, jax.random.split(KEY, 20))
    assert info.objective[-1] > info.objective[4] > info.objective[0]
    X_new = inputs(400, seed=7)
    truth = (jnp.sin(2.0 * X_new[:, 0]) + X_new[:, 1] - jnp.mean(y)) / scale
    p = method.predict(state, X_new, key=KEY)
    rmse = float(jnp.sqrt(jnp.mean((p.mean - truth) ** 2)) * scale)
    assert scale > 1.0 and rmse < 0.3
    assert (p.var > state.posterior.noise.noise).all()
