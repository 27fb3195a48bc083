"""sgpr_greedy: the bounds of Burt et al. (2020) against dense algebra, and the rounds of its outer loop."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KEY, bound_of, layer_at, objective_of, predict, regression, start_at, train
from scipy.stats import multivariate_normal

from gpbench.core.greedy import select_rows
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters
from gpbench.methods.parts.exact import ExactGP
from gpbench.methods.vi.sgpr_greedy import GreedySGPR
from gpbench.methods.vi.vsgpr import VSGPR

NOISE = 0.05
DATA = regression()
LAYER = layer_at(DATA.X[:1], None)
LIKELIHOOD = Gaussian(jnp.asarray(np.log(NOISE)))
K = np.asarray(LAYER.kernel.cross(DATA.X, DATA.X)) + NOISE * np.eye(25)


def chosen(m, tolerance=0.0):
    """The method, and its parameters with m points chosen under the kernel of the tests."""
    method = GreedySGPR(name="sgpr_greedy", inducing=m, tolerance=tolerance)
    return method, method.choose(CollapsedParameters(LAYER, LIKELIHOOD), DATA)[0]


def evaluated(method, parameters):
    """The state after the first step, which only evaluates."""
    return jax.jit(method.step)(start_at(method, DATA, parameters), DATA, key=KEY)[0]


@pytest.mark.parametrize("m", [4, 12])
def test_the_bounds_enclose_the_evidence_as_dense_algebra_has_them(m):
    """The mean gap for targets from the model is KL(N(0, C) || N(0, Q + σ²I)) + t/(2σ²)."""
    method, parameters = chosen(m)
    state = evaluated(method, parameters)
    numbers = {name: float(value) for name, value in method.diagnostics(state).items()}
    y, bound = np.asarray(DATA.y), -float(state.optimiser.value)
    exact = multivariate_normal(np.zeros(25), K).logpdf(y)
    rows = np.asarray(select_rows(LAYER.kernel, DATA.X, m).index)
    Kzx = K[rows] - NOISE * np.eye(25)[rows]
    Q = Kzx.T @ np.linalg.solve(Kzx[:, rows], Kzx)
    S, t = Q + NOISE * np.eye(25), np.trace(K - Q) - 25 * NOISE
    np.testing.assert_allclose(numbers["gap"], t / (2 * NOISE), rtol=1e-6)
    upper = -0.5 * (25 * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + y @ np.linalg.solve(S + t * np.eye(25), y))
    np.testing.assert_allclose(numbers["evidence_upper"], upper, rtol=1e-6)
    np.testing.assert_allclose(bound, multivariate_normal(np.zeros(25), S).logpdf(y) - t / (2 * NOISE), rtol=1e-6)
    assert bound < exact < upper
    assert exact - bound <= t / (2 * NOISE) * (1 + y @ y / (t + NOISE))
    ratio = np.linalg.solve(S, K)
    mean_gap = 0.5 * (np.trace(ratio) - 25 - np.linalg.slogdet(ratio)[1]) + t / (2 * NOISE)
    assert t / (2 * NOISE) <= mean_gap <= t / NOISE
    assert (numbers["selected"], numbers["rule"], numbers["rounds"]) == (m, 0, 1)


def test_the_bound_rises_with_each_point_and_with_all_rows_it_is_the_evidence_of_gpr():
    method, parameters = chosen(25)
    features = parameters.layer.features
    at = jax.jit(
        lambda m: method.evidence(
            eqx.tree_at(lambda p: p.layer.features.mask, parameters, (jnp.arange(25) < m) * 1.0), DATA
        )[0]
    )
    values = [float(at(m)) for m in range(1, 26)]
    assert np.all(np.diff(values) > -1e-6) and features.mask.sum() == 25
    exact = ExactGP(LAYER.kernel, LIKELIHOOD)
    np.testing.assert_allclose(values[-1], bound_of(GPR(name="gpr"), exact, DATA)[0], rtol=1e-6)


def test_at_the_chosen_points_bound_and_predictions_are_those_of_vsgpr():
    method, parameters = chosen(25, tolerance=2.0)
    mask = np.asarray(parameters.layer.features.mask)
    assert 0 < mask.sum() < 25
    layer = layer_at(parameters.layer.features.Z[: int(mask.sum())], None)
    reference = VSGPR(name="vsgpr", inducing=int(mask.sum()))
    ours, theirs = evaluated(method, parameters), evaluated(reference, CollapsedParameters(layer, LIKELIHOOD))
    np.testing.assert_allclose(ours.optimiser.value, theirs.optimiser.value, rtol=1e-7)
    new = DATA.X[:6] + 0.3
    np.testing.assert_allclose(predict(method, ours, new).mean, predict(reference, theirs, new).mean, rtol=1e-6)
    np.testing.assert_allclose(predict(method, ours, new).var, predict(reference, theirs, new).var, rtol=1e-6)


def test_points_move_only_between_rounds_and_only_where_the_bound_rises():
    method = GreedySGPR(name="sgpr_greedy", inducing=6, start="rows", rounds=4)
    states = [train(method, DATA, 1)[0]]
    step = jax.jit(method.step)
    while not states[-1].variables.finished and len(states) < 400:
        states.append(step(states[-1], DATA, key=KEY)[0])
    assert states[-1].variables.finished and states[-1].variables.count > 1
    for old, new in itertools.pairwise(states):
        moved = not np.array_equal(old.parameters.layer.features.Z, new.parameters.layer.features.Z)
        assert moved == bool(new.variables.count > old.variables.count)
        assert new.optimiser.value <= old.optimiser.value
    last = states[-1]
    np.testing.assert_allclose(objective_of(method, last, DATA), -last.optimiser.value, rtol=1e-8)
    assert np.isin(np.asarray(last.parameters.layer.features.Z), np.asarray(DATA.X)).all()
    if last.variables.count < 4:  # the last choice was no better
        other = method.choose(last.parameters, DATA)[0]
        assert method.evidence(other, DATA)[0] <= -last.optimiser.value + 1e-6


def test_a_sparse_method_can_start_at_the_chosen_rows():
    method = VSGPR(name="vsgpr", inducing=6, start="greedy")
    layer = method.init_parameters(DATA, key=KEY).layer
    np.testing.assert_array_equal(layer.features.Z, DATA.X[select_rows(layer.kernel, DATA.X, 6).index])
