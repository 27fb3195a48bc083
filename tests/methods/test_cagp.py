"""cagp: bound, KL and posterior against dense algebra, and the limits where it is the exact GP."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KERNEL, KEY, bound_of, differences, inputs, predict, regression
from scipy.stats import multivariate_normal, norm

from gpbench.core import lbfgs
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.exact import ExactGP
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.vi.cagp import CAGP, CAGPParameters

N, NOISE = 25, 0.05
DATA, NEW = regression(N), inputs(6, seed=5)
LIKELIHOOD = Gaussian(jnp.asarray(np.log(NOISE)))
WEIGHTS = np.random.default_rng(2).normal(size=N)
K = np.asarray(KERNEL.cross(DATA.X, DATA.X))
C, Y = K + NOISE * np.eye(N), np.asarray(DATA.y)


def evaluated(actions, weights=WEIGHTS):
    """The method, its bound, and a state from which predictions are made."""
    method = CAGP(name="cagp", actions=actions)
    parameters = CAGPParameters(KERNEL, LIKELIHOOD, jnp.asarray(weights))
    value, posterior = jax.jit(method.evidence)(parameters, DATA)
    return method, value, GradientState(parameters, lbfgs.start(parameters, posterior))


def dense(actions):
    """S, whose columns are runs of rows, and the posterior mean and covariance at all rows, old and new."""
    ends = [b * N // actions for b in range(actions + 1)]
    S = np.zeros((N, actions))
    for column in range(actions):
        rows = range(ends[column], ends[column + 1])
        S[rows, column] = WEIGHTS[rows]
    both = jnp.concatenate([DATA.X, NEW])
    prior = np.asarray(KERNEL.cross(both, both))
    gain = prior[:, :N] @ S @ np.linalg.inv(S.T @ C @ S)
    return S, gain @ S.T @ Y, prior - gain @ S.T @ prior[:N]


@pytest.mark.parametrize("actions", [1, 5, 12])
def test_posterior_bound_and_kl_are_those_of_dense_algebra(actions):
    method, value, state = evaluated(actions)
    S, mean, covariance = dense(actions)
    m, V = mean[:N], covariance[:N, :N]
    fit = np.sum(norm.logpdf(Y, m, np.sqrt(NOISE))) - 0.5 * np.trace(V) / NOISE
    A, alpha = S.T @ C @ S, S @ np.linalg.solve(S.T @ C @ S, S.T @ Y)
    log_dets = np.linalg.slogdet(A)[1] - np.linalg.slogdet(S.T @ S)[1] - actions * np.log(NOISE)
    kl = 0.5 * (alpha @ K @ alpha - np.trace(np.linalg.solve(A, S.T @ K @ S)) + log_dets)
    np.testing.assert_allclose(method.kl(state), kl, rtol=1e-6)
    np.testing.assert_allclose(value, fit - kl, rtol=1e-7)
    predictive = predict(method, state, NEW)
    np.testing.assert_allclose(predictive.mean, mean[N:], rtol=1e-6)
    np.testing.assert_allclose(predictive.var, np.diag(covariance)[N:] + NOISE, rtol=1e-6)
    np.testing.assert_allclose(method.covariance(state, NEW), covariance[N:, N:], atol=1e-8)


def test_with_an_action_for_each_row_it_is_gpr():
    method, value, state = evaluated(1.0)
    gpr = GPR(name="gpr")
    exact, extra = bound_of(gpr, ExactGP(KERNEL, LIKELIHOOD), DATA)
    np.testing.assert_allclose(value, exact, rtol=1e-8)
    theirs = GradientState(ExactGP(KERNEL, LIKELIHOOD), lbfgs.start(ExactGP(KERNEL, LIKELIHOOD), extra))
    for leaf in ("mean", "var"):
        np.testing.assert_allclose(*(getattr(predict(m, s, NEW), leaf) for m, s in ((method, state), (gpr, theirs))))
    np.testing.assert_allclose(method.kl(state), gpr.kl(theirs), rtol=1e-8)


def test_one_action_along_the_exact_weights_has_the_exact_mean():
    method, _, state = evaluated(1, np.linalg.solve(C, Y))
    exact = np.asarray(KERNEL.cross(NEW, DATA.X)) @ np.linalg.solve(C, Y)
    np.testing.assert_allclose(predict(method, state, NEW).mean, exact, rtol=1e-7)


def test_the_covariance_exceeds_the_exact_one_and_the_bound_is_below_the_evidence():
    cross = np.asarray(KERNEL.cross(NEW, DATA.X))
    exact = np.asarray(KERNEL.cross(NEW, NEW)) - cross @ np.linalg.solve(C, cross.T)
    for actions in (1, 5, 12):
        method, value, state = evaluated(actions)
        assert np.linalg.eigvalsh(method.covariance(state, NEW) - exact)[0] > -1e-8
        assert value < multivariate_normal(np.zeros(N), C).logpdf(Y)


def test_the_scale_and_sign_of_a_column_change_nothing():
    scaled = WEIGHTS * np.where(np.arange(N) < 5, -7.0, 0.3)  # the first of five runs has the rows 0 to 4
    np.testing.assert_allclose(evaluated(5)[1], evaluated(5, scaled)[1], rtol=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    method, _, state = evaluated(5)
    flat, unravel = ravel_pytree(state.parameters)
    value = jax.jit(lambda x: method.evidence(unravel(x), DATA)[0])
    np.testing.assert_allclose(jax.grad(value)(flat), differences(value, flat), rtol=1e-5, atol=1e-6)


def test_training_moves_actions_and_hyper_parameters_to_a_larger_bound():
    method = CAGP(name="cagp", actions=5)
    state, step = method.init(DATA, key=KEY), jax.jit(method.step)
    begin, values = state.parameters, []
    for _ in range(15):
        state, info = step(state, DATA, key=KEY)
        values.append(float(info.objective))
    assert np.all(np.diff(values) >= 0.0) and values[-1] > values[0] + 1.0
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), begin, state.parameters)
    assert all(jax.tree.leaves(eqx.filter(moved, lambda leaf: isinstance(leaf, bool))))
