"""`svi` from the hyper-parameters of an exact GP of some rows; sgpr_greedy: its bounds and its rounds."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import multivariate_normal
from problems import KEY, binary, bound_of, differences, layer_at, objective_of, predict, regression, start_at, train
from scipy import stats

from gpbench.core.greedy import select_rows
from gpbench.core.kernels import LengthscalePrior
from gpbench.core.likelihoods import Gaussian
from gpbench.errors import ConfigError
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters
from gpbench.methods.parts.exact import ExactGP, log_posterior
from gpbench.methods.vi.sgpr_greedy import GreedySGPR
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vsgpr import VSGPR
from gpbench.train.batches import whole

ROWS = 30
ADAM = {"optimiser": optax.adam(0.02)}
"""Of q and the inducing points, and of the rest where that is learned."""


def of(task, dtype):
    """60 rows in this precision."""
    data = regression(60) if task == "regression" else binary(60)
    return whole(data.X.astype(dtype), data.y.astype(dtype), data.classes)


def started(data, **fields):
    """The kernel and noise that `svi` starts from, as an exact GP."""
    parameters = SVI(name="svi", inducing=6, subset_rows=ROWS, **fields).init(data, key=KEY).parameters
    return ExactGP(parameters.layer.kernel, parameters.likelihood)


@pytest.mark.parametrize("prior", [None, LengthscalePrior(1.0, 1.0)], ids=["no prior", "prior"])
def test_the_start_is_where_the_exact_gps_evidence_is_largest(prior):
    data = of("regression", "float64")
    start = started(data, lengthscale_prior=prior)
    loss = lambda gp: -log_posterior(gp, data.first(ROWS), prior)[0]
    least, gradient = jax.jit(jax.value_and_grad(loss))(start)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 0.0, atol=1e-3)
    gpr = GPR(name="gpr", rows=ROWS, lengthscale_prior=prior)
    best, objective = train(gpr, data, 200)
    assert gpr.converged(best)
    np.testing.assert_allclose(-least, objective[-1], rtol=1e-8)
    np.testing.assert_allclose(ravel_pytree(start)[0], ravel_pytree(best.parameters)[0], atol=1e-5)


def test_a_start_in_float32_is_that_of_float64_and_inducing_points_are_the_same_from_either_start():
    single, double = (started(of("regression", dtype), noise_floor=1e-3) for dtype in ("float32", "float64"))
    assert {leaf.dtype for leaf in jax.tree.leaves(single)} == {jnp.dtype("float32")}
    np.testing.assert_allclose(ravel_pytree(single)[0], ravel_pytree(double)[0], atol=0.02)
    assert single.likelihood.floor == 1e-3
    data = of("regression", "float64")
    states = [SVI(name="svi", inducing=6, subset_rows=rows).init(data, key=KEY) for rows in (None, 60, 1000)]
    for state in states[1:]:
        np.testing.assert_array_equal(state.parameters.layer.features.Z, states[0].parameters.layer.features.Z)
    same = [ravel_pytree(state.parameters)[0] for state in states[1:]]
    np.testing.assert_array_equal(*same)


def test_greedy_inducing_points_are_those_of_the_kernel_that_training_starts_from():
    data = of("regression", "float64")
    layer = SVI(name="svi", inducing=6, subset_rows=ROWS, start="greedy").init(data, key=KEY).parameters.layer
    np.testing.assert_array_equal(layer.features.Z, data.X[select_rows(layer.kernel, data.X, 6).index])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("regression", {}),
        ("regression", ADAM),
        ("regression", ADAM | {"natural_step": "auto", "subset_rows": ROWS}),
        ("regression", ADAM | {"natural_step": 0.3, "subset_rows": ROWS, "batch_size": 20, "noise_floor": 1e-6}),
        ("regression", {"optimiser": optax.adamw(0.02, weight_decay=0.1)}),
        ("binary", ADAM | {"natural_step": 0.3}),
    ],
    ids=["lbfgs", "adam", "natural", "minibatches", "weight decay", "binary"],
)
def test_fixed_hyper_parameters_keep_every_bit_while_the_bound_rises(task, fields, dtype):
    data, method = of(task, dtype), SVI(name="svi", inducing=6, fixed=True, **fields)
    start = method.init(data, key=KEY)
    state, _ = train(method, data, 60, start)
    hyper = lambda state: (state.parameters.layer.kernel, state.parameters.layer.log_noise, state.parameters.likelihood)
    assert eqx.tree_equal(hyper(state), hyper(start))
    for part in (lambda p: p.layer.features, lambda p: p.q):
        assert not np.allclose(ravel_pytree(part(state.parameters))[0], ravel_pytree(part(start.parameters))[0])
    assert objective_of(method, state, data) > objective_of(method, start, data) + 1.0


def test_classes_have_no_such_start():
    fields = {"name": "svi", "inducing": 6, "batch_size": 20, "natural_step": None}
    starts = [SVI(subset_rows=rows, **ADAM, **fields).init(of("binary", "float64"), key=KEY) for rows in (None, 10)]
    assert eqx.tree_equal(*(start.parameters for start in starts))


@pytest.mark.parametrize(
    "method, key",
    [(SVI(name="svi", inducing=6, subset_rows=ROWS), "method.subset_rows"), (GPR(name="gpr"), "method.rows")],
    ids=["svi", "gpr"],
)
def test_an_exact_gp_that_memory_cannot_hold_is_refused_before_it_is_trained(method, key, monkeypatch):
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=f"^11 covariance matrices of .* in an exact GP need .* fewer rows .{key}"):
        method.init(of("regression", "float64"), key=KEY)


@pytest.mark.parametrize("prior", [None, LengthscalePrior(1.0, 1.0)], ids=["no prior", "prior"])
def test_the_closed_form_of_the_evidences_gradient_is_its_derivative(prior):
    """Against that of JAX's own Cholesky factor, and against differences of values."""
    X, y = regression(30).X, regression(30).y
    data = whole(X, y)
    gp = GPR(name="gpr").init(data, key=KEY).parameters
    direct = lambda gp: (
        multivariate_normal.logpdf(y, jnp.zeros(30), gp.covariance(X))
        + (0.0 if prior is None else prior.log_prob(gp.kernel, X.shape[1]))
    )
    ours, theirs = (ravel_pytree(jax.grad(f)(gp))[0] for f in (lambda gp: log_posterior(gp, data, prior)[0], direct))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    x, unravel = ravel_pytree(gp)
    value = lambda x: log_posterior(unravel(x), data, prior)[0]
    np.testing.assert_allclose(ours, differences(value, x), rtol=1e-5, atol=1e-5)
    slope = jax.grad(lambda y: gp.evidence(X, y, data.weight)[0])(y)
    np.testing.assert_allclose(slope, -np.linalg.solve(gp.covariance(X), y), rtol=1e-6, atol=1e-8)


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
    exact = stats.multivariate_normal(np.zeros(25), K).logpdf(y)
    rows = np.asarray(select_rows(LAYER.kernel, DATA.X, m).index)
    Kzx = K[rows] - NOISE * np.eye(25)[rows]
    Q = Kzx.T @ np.linalg.solve(Kzx[:, rows], Kzx)
    S, t = Q + NOISE * np.eye(25), np.trace(K - Q) - 25 * NOISE
    np.testing.assert_allclose(numbers["gap"], t / (2 * NOISE), rtol=1e-6)
    upper = -0.5 * (25 * np.log(2 * np.pi) + np.linalg.slogdet(S)[1] + y @ np.linalg.solve(S + t * np.eye(25), y))
    np.testing.assert_allclose(numbers["evidence_upper"], upper, rtol=1e-6)
    np.testing.assert_allclose(bound, stats.multivariate_normal(np.zeros(25), S).logpdf(y) - t / (2 * NOISE), rtol=1e-6)
    assert bound < exact < upper
    assert exact - bound <= t / (2 * NOISE) * (1 + y @ y / (t + NOISE))
    ratio = np.linalg.solve(S, K)
    mean_gap = 0.5 * (np.trace(ratio) - 25 - np.linalg.slogdet(ratio)[1]) + t / (2 * NOISE)
    assert t / (2 * NOISE) <= mean_gap <= t / NOISE
    assert (numbers["selected"], numbers["rule"], numbers["rounds"]) == (m, 0, 1)


def test_the_bound_rises_with_each_point_and_with_all_rows_it_is_the_evidence_of_gpr():
    method, parameters = chosen(25)
    features = parameters.layer.features
    of_first = lambda m: eqx.tree_at(lambda p: p.layer.features.mask, parameters, (jnp.arange(25) < m) * 1.0)
    at = jax.jit(lambda m: method.evidence(of_first(m), DATA)[0])
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
