"""`vif` and `cagp` against dense algebra, and the limits where they are FITC or the exact GP."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KERNEL, KEY, bound_of, differences, evaluated, inputs, layer_at, predict, regression
from references import gp_prediction
from scipy.stats import multivariate_normal, norm

from gpbench.core.likelihoods import Gaussian
from gpbench.core.vecchia import Neighbours
from gpbench.methods.ep.pep import PowerEP
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters
from gpbench.methods.parts.exact import ExactGP
from gpbench.methods.vi.cagp import CAGP, CAGPParameters
from gpbench.methods.vi.vif import VIF, VIFParameters

N, NOISE = 25, 0.05
DATA, NEW = regression(N), inputs(6, seed=5)
LIKELIHOOD = Gaussian(jnp.asarray(np.log(NOISE)))
LAYER = layer_at(inputs(6, seed=3), None)
PARAMETERS = VIFParameters(LAYER, LIKELIHOOD)


def method_with(k):
    return VIF(name="vif", inducing=6, neighbours=k)


def dense(k, sparse=True):
    """Neighbours by rank, and the covariance of the targets: VᵀV + B⁻¹ D B⁻ᵀ, with B and D row by row."""
    Z, both = LAYER.features.Z, jnp.concatenate([DATA.X, NEW])
    Kzx, K = np.asarray(KERNEL.cross(Z, both)), np.asarray(KERNEL.cross(both, both))
    Q = Kzx.T @ np.linalg.solve(np.asarray(KERNEL.cross(Z, Z)), Kzx) if sparse else np.zeros_like(K)
    R, S = K - Q, K - Q + NOISE * np.eye(len(K))
    correlation = np.abs(R) / np.sqrt(np.outer(np.diag(R), np.diag(R)))
    B, D, near = np.eye(len(K)), np.zeros(len(K)), []
    for j in range(len(K)):
        near.append(np.argsort(-correlation[j, : min(j, N)])[:k])
        a = np.linalg.solve(S[np.ix_(near[j], near[j])], R[near[j], j])
        B[j, near[j]], D[j] = -a, S[j, j] - a @ R[near[j], j]
    joint = Q + np.linalg.solve(B, np.linalg.solve(B, np.diag(D)).T)
    return near, joint


def log_density(joint):
    return multivariate_normal(np.zeros(N), joint[:N, :N]).logpdf(np.asarray(DATA.y))


@pytest.fixture(scope="module")
def five():
    method = method_with(5)
    return method, *evaluated(method, DATA, PARAMETERS), dense(5)


def test_neighbours_are_the_rows_before_with_the_largest_correlation_and_empty_places_count_nothing(five):
    method, _, state, (near, _) = five
    found = state.optimiser.extra.neighbours
    for j in range(N):
        np.testing.assert_array_equal(np.asarray(found.index)[j][np.asarray(found.mask)[j]], near[j])
    other = Neighbours(jnp.where(found.mask, found.index, 7), found.mask)
    values = [jax.jit(lambda n: method.evidence(PARAMETERS, DATA, n)[0])(n) for n in (found, other)]
    np.testing.assert_allclose(*values, rtol=1e-12)


def test_evidence_and_predictions_are_those_of_the_dense_joint_gaussian(five):
    method, value, state, (_, joint) = five
    np.testing.assert_allclose(value, log_density(joint), rtol=1e-7)
    predictive = predict(method, state, NEW)
    mean, variance = gp_prediction(joint[:N, :N], joint[:N, N:], np.diag(joint)[N:], DATA.y, 0.0)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(predictive.var, variance, rtol=1e-6)


def test_the_gradient_is_that_of_finite_differences_and_inducing_points_stay(five):
    method, _, state, _ = five
    near = state.optimiser.extra.neighbours
    flat, unravel = ravel_pytree(PARAMETERS)
    value = lambda x: method.evidence(unravel(x), DATA, near)[0]
    gradient = unravel(jax.jit(jax.grad(value))(flat))
    numerical = unravel(jnp.asarray(differences(value, flat)))
    np.testing.assert_array_equal(gradient.layer.features.Z, 0.0)
    np.testing.assert_allclose(
        *(ravel_pytree((g.layer.kernel, g.likelihood))[0] for g in (gradient, numerical)), rtol=1e-5, atol=1e-6
    )


def test_without_neighbours_it_is_fitc_with_all_rows_before_gpr_and_without_inducing_points_vecchias_approximation():
    method = method_with(0)
    (ours, state), fitc = evaluated(method, DATA, PARAMETERS), PowerEP(name="fitc_gp", alpha=1.0, inducing=6)
    value, theirs = evaluated(fitc, DATA, CollapsedParameters(LAYER, LIKELIHOOD))
    np.testing.assert_allclose(ours, value, rtol=1e-7)
    for leaf in ("mean", "var"):
        pair = (getattr(predict(m, s, NEW), leaf) for m, s in ((method, state), (fitc, theirs)))
        np.testing.assert_allclose(*pair, rtol=1e-6)
    exact, _ = bound_of(GPR(name="gpr"), ExactGP(KERNEL, LIKELIHOOD), DATA)
    np.testing.assert_allclose(evaluated(method_with(N - 1), DATA, PARAMETERS)[0], exact, rtol=1e-6)
    # One inducing point that is independent of all rows stands for none.
    far = eqx.tree_at(lambda p: p.layer.features.Z, PARAMETERS, jnp.full((1, 2), 1e3))
    value = jax.jit(lambda p: method_with(5).evidence(p, DATA)[0])(far)
    np.testing.assert_allclose(value, log_density(dense(5, sparse=False)[1]), rtol=1e-7)


def test_training_ends_with_neighbours_that_belong_to_its_parameters_and_its_points_stay():
    """L-BFGS alone finds parameters whose evidence falls once their own neighbours are searched; rounds never fall."""
    method = method_with(3)
    state = method.init(DATA, key=KEY)
    start, step, values = state, jax.jit(method.step), []
    for _ in range(150):
        state, _ = step(state, DATA, key=KEY)
        values.append(float(state.variables.evidence))
    assert method.converged(state)
    assert np.all(np.diff(values) >= 0.0) and values[-1] > values[0]
    own = jax.jit(lambda p: method.evidence(p, DATA)[0])(state.parameters)
    np.testing.assert_allclose(own, method.objective(state, DATA), rtol=1e-9)
    np.testing.assert_allclose(own, values[-1], rtol=1e-9)
    np.testing.assert_array_equal(state.parameters.layer.features.Z, start.parameters.layer.features.Z)


@pytest.mark.parametrize("steps", [2, 6, 7])  # in the middle of a round, were it not for their end
def test_the_last_step_ends_a_round_so_that_its_gain_is_known(steps):
    method = VIF(name="vif", inducing=6, neighbours=3, steps=steps)
    state, step = method.init(DATA, key=KEY), jax.jit(method.step)
    for _ in range(steps):
        state, _ = step(state, DATA, key=KEY)
    assert eqx.tree_equal(state.parameters, state.variables.start) and state.variables.horizon == 0
    own = jax.jit(lambda p: method.evidence(p, DATA)[0])(state.parameters)
    np.testing.assert_allclose(own, state.variables.evidence, rtol=1e-9)


WEIGHTS = np.random.default_rng(2).normal(size=N)
K = np.asarray(KERNEL.cross(DATA.X, DATA.X))
C, Y = K + NOISE * np.eye(N), np.asarray(DATA.y)


def with_actions(actions, weights=WEIGHTS):
    """The method, its bound, and a state from which predictions are made."""
    method = CAGP(name="cagp", actions=actions)
    return method, *evaluated(method, DATA, CAGPParameters(KERNEL, LIKELIHOOD, jnp.asarray(weights)))


def dense_actions(actions):
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
    method, value, state = with_actions(actions)
    S, mean, covariance = dense_actions(actions)
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


def test_with_an_action_for_each_row_it_is_gpr_and_one_along_the_exact_weights_has_the_exact_mean():
    method, value, state = with_actions(N)
    gpr = GPR(name="gpr")
    exact, theirs = evaluated(gpr, DATA, ExactGP(KERNEL, LIKELIHOOD))
    np.testing.assert_allclose(value, exact, rtol=1e-8)
    for leaf in ("mean", "var"):
        np.testing.assert_allclose(*(getattr(predict(m, s, NEW), leaf) for m, s in ((method, state), (gpr, theirs))))
    np.testing.assert_allclose(method.kl(state), gpr.kl(theirs), rtol=1e-8)
    method, _, state = with_actions(1, np.linalg.solve(C, Y))
    exact = np.asarray(KERNEL.cross(NEW, DATA.X)) @ np.linalg.solve(C, Y)
    np.testing.assert_allclose(predict(method, state, NEW).mean, exact, rtol=1e-7)


def test_the_covariance_exceeds_the_exact_one_and_the_bound_is_below_the_evidence():
    cross = np.asarray(KERNEL.cross(NEW, DATA.X))
    exact = np.asarray(KERNEL.cross(NEW, NEW)) - cross @ np.linalg.solve(C, cross.T)
    for actions in (1, 5, 12):
        method, value, state = with_actions(actions)
        assert np.linalg.eigvalsh(method.covariance(state, NEW) - exact)[0] > -1e-8
        assert value < multivariate_normal(np.zeros(N), C).logpdf(Y)


def test_the_scale_and_sign_of_a_column_change_nothing_and_the_gradient_is_that_of_finite_differences():
    scaled = WEIGHTS * np.where(np.arange(N) < 5, -7.0, 0.3)  # the first of five runs has the rows 0 to 4
    np.testing.assert_allclose(with_actions(5)[1], with_actions(5, scaled)[1], rtol=1e-12)
    method, _, state = with_actions(5)
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
