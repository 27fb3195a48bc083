"""vif: evidence, predictions and gradients against the dense joint Gaussian, and the limits where it is another."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, bound_of, differences, inputs, layer_at, predict, regression, start_at
from scipy.stats import multivariate_normal

from gpbench.core import lbfgs
from gpbench.core.likelihoods import Gaussian
from gpbench.core.vecchia import Neighbours
from gpbench.methods.ep.pep import PowerEP
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters
from gpbench.methods.parts.exact import ExactGP
from gpbench.methods.parts.gradient import GradientState
from gpbench.methods.vi.vif import VIF, VIFParameters

N, NOISE = 25, 0.05
DATA, NEW = regression(N), inputs(6, seed=5)
LIKELIHOOD = Gaussian(jnp.asarray(np.log(NOISE)))
LAYER = layer_at(inputs(6, seed=3), None)
PARAMETERS = VIFParameters(LAYER, LIKELIHOOD)
KERNEL = LAYER.kernel


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


def evaluated(method):
    """The evidence, and a state from which predictions are made."""
    value, posterior = jax.jit(method.evidence)(PARAMETERS, DATA)
    return value, GradientState(PARAMETERS, lbfgs.start(PARAMETERS, posterior))


@pytest.fixture(scope="module")
def five():
    method = method_with(5)
    return method, *evaluated(method), dense(5)


def test_neighbours_are_the_rows_before_with_the_largest_residual_correlation(five):
    _, _, state, (near, _) = five
    found = state.optimiser.extra.neighbours
    for j in range(N):
        np.testing.assert_array_equal(np.asarray(found.index)[j][np.asarray(found.mask)[j]], near[j])


def test_evidence_and_predictions_are_those_of_the_dense_joint_gaussian(five):
    method, value, state, (_, joint) = five
    np.testing.assert_allclose(value, log_density(joint), rtol=1e-7)
    predictive = predict(method, state, NEW)
    cross, C = joint[N:, :N], joint[:N, :N]
    np.testing.assert_allclose(predictive.mean, cross @ np.linalg.solve(C, np.asarray(DATA.y)), rtol=1e-6)
    variance = np.diag(joint)[N:] - np.sum(cross.T * np.linalg.solve(C, cross.T), axis=0)
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


def test_without_neighbours_it_is_fitc():
    method = method_with(0)
    (ours, state), fitc = evaluated(method), PowerEP(name="fitc_gp", alpha=1.0, inducing=6)
    value, optimum = bound_of(fitc, CollapsedParameters(LAYER, LIKELIHOOD), DATA)
    np.testing.assert_allclose(ours, value, rtol=1e-7)
    theirs = start_at(fitc, DATA, CollapsedParameters(LAYER, LIKELIHOOD))
    theirs = eqx.tree_at(lambda s: s.optimiser.extra, theirs, optimum)
    np.testing.assert_allclose(predict(method, state, NEW).mean, predict(fitc, theirs, NEW).mean, rtol=1e-6)
    np.testing.assert_allclose(predict(method, state, NEW).var, predict(fitc, theirs, NEW).var, rtol=1e-6)


def test_with_all_rows_before_as_neighbours_the_evidence_is_that_of_gpr():
    exact, _ = bound_of(GPR(name="gpr"), ExactGP(KERNEL, LIKELIHOOD), DATA)
    np.testing.assert_allclose(evaluated(method_with(N - 1))[0], exact, rtol=1e-6)


def test_without_inducing_points_it_is_vecchias_approximation():
    """One inducing point that is independent of all rows stands for none."""
    far = eqx.tree_at(lambda p: p.layer.features.Z, PARAMETERS, jnp.full((1, 2), 1e3))
    value = jax.jit(lambda p: method_with(5).evidence(p, DATA)[0])(far)
    np.testing.assert_allclose(value, log_density(dense(5, sparse=False)[1]), rtol=1e-7)


def test_places_without_a_neighbour_count_for_nothing(five):
    method, _, state, _ = five
    near = state.optimiser.extra.neighbours
    other = Neighbours(jnp.where(near.mask, near.index, 7), near.mask)
    values = [jax.jit(lambda n: method.evidence(PARAMETERS, DATA, n)[0])(n) for n in (near, other)]
    np.testing.assert_allclose(*values, rtol=1e-12)


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
