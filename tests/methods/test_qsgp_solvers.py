"""`solver` of `qsgp`: blocks, cg and dual against dense algebra and AdaGrad's bound, and what they refuse."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KEY, equations, predict

from gpbench.core import solvers
from gpbench.core.bases import kernel as kernel_products
from gpbench.core.kernels import Matern32, SquaredExponential
from gpbench.core.solvers import KernelSystem, Nystroem, Rows
from gpbench.methods.parts import mean_solver
from gpbench.methods.weight_space.qsgp import QSGP
from gpbench.train.batches import take_step, whole

N = 40
RNG = np.random.default_rng(1)
X = jnp.asarray(RNG.uniform(-2, 2, size=(N, 2)))
Y = jnp.asarray(np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N))
DATA = whole(X, Y)
TEST = jnp.asarray(RNG.uniform(-3, 3, size=(7, 2)))
STEPS = {"cg": 60, "blocks": 1500, "dual": 4000}


def qsgp(solver, **fields):
    """A small `qsgp`, with blocks of functions that do not fill the last one."""
    size = {"basis": None, "basis_batch": 40, "block": 7, "batch_size": 9, "steps": STEPS.get(solver, 10)}
    fixed = {"name": "qsgp", "features": "inducing", "kernel": "matern32", "control_rows": 5, "subset_rows": None}
    return QSGP(**{**fixed, **size, "solver": solver, "tolerance": 1e-9, **fields})


def trained(method, data=DATA):
    advance = lambda t, state: take_step(method, state, data, t, key=KEY)[0]
    loop = jax.jit(lambda state: jax.lax.fori_loop(0, method.steps, advance, state))
    return loop(method.init(data, key=KEY))


class Ends(dict):
    def __missing__(self, name):
        self[name] = trained(qsgp(name))
        return self[name]


@pytest.fixture(scope="module")
def ends():
    """The state of each solver after its steps."""
    return Ends()


def dense(state):
    """K and σ²."""
    hyper = state.hyper
    return np.asarray(hyper.kernel.cross(X, X)), float(hyper.likelihood.noise)


@pytest.mark.parametrize("name", STEPS)
def test_the_mean_and_the_variance_are_those_of_dense_algebra(ends, name):
    """mean = (K + σ²I)⁻¹y; C is proposition 1's, and the augmentation proposition 4's."""
    state = ends[name]
    K, noise = dense(state)
    mean = np.linalg.solve(K + noise * np.eye(N), Y)
    np.testing.assert_allclose(state.weights.mean.ravel()[:N], mean, atol=1e-6)
    assert not state.weights.mean.ravel()[N:].any()
    Phi = np.asarray(state.hyper.kernel.cross(TEST, X))
    scales2 = noise / ((K**2).sum(0) + noise * np.diag(K))
    ours = predict(qsgp(name), state, TEST)
    np.testing.assert_allclose(ours.mean, Phi @ mean, atol=1e-5)
    np.testing.assert_allclose(ours.var, Phi**2 @ scales2 + noise, rtol=1e-9)
    prior = np.asarray(state.hyper.kernel.diag(TEST))
    extra = noise * prior**2 / ((Phi**2).sum(1) + noise * prior)
    np.testing.assert_allclose(predict(qsgp(name, augmentation=True), state, TEST).var - ours.var, extra, rtol=1e-9)


def test_adagrads_bound_is_flat_where_the_solvers_end(ends):
    """All four have one fixed point: there the gradient of the bound in the mean vanishes, and at 0 it does not."""
    method, end = qsgp("adagrad"), ends["cg"]
    place = lambda mean: eqx.tree_at(lambda s: s.weights.mean, end, mean)
    gradient = jax.jit(jax.grad(lambda mean: method.objective(place(mean), DATA)))
    slope = lambda mean: float(jnp.abs(gradient(mean).ravel()[:N]).max())
    assert slope(end.weights.mean) < 1e-6 * slope(jnp.zeros_like(end.weights.mean))


@pytest.mark.parametrize("name", STEPS)
def test_at_the_tolerance_it_has_converged_and_stays_and_the_record_has_the_residual(ends, name):
    method, state = qsgp(name), ends[name]
    K, noise = dense(state)
    mean = np.asarray(state.weights.mean).ravel()[:N]
    residual = np.linalg.norm(Y - K @ mean - noise * mean) / np.linalg.norm(Y)
    np.testing.assert_allclose(method.diagnostics(state)["residual"], residual, atol=1e-14)
    assert residual < 2e-9 and method.converged(state)
    first = eqx.tree_at(lambda s: s.solver.level, state, jnp.ones(()))
    step = jax.jit(lambda state: take_step(method, state, DATA, jnp.asarray(9), key=KEY)[0])
    assert not method.converged(first) and np.any(step(first).weights.mean != state.weights.mean)
    np.testing.assert_array_equal(step(state).weights.mean, state.weights.mean)


def test_the_residual_of_float32_is_that_of_the_kernel_matrix_in_float64_and_decides_the_record(ends):
    """In float32 the mean is rounded, and with it the solution; the solver's own criterion does not see it."""
    exact, rounded = ends["cg"], jax.tree.map(lambda a: a.astype("float32") if a.dtype == float else a, ends["cg"])
    assert qsgp("cg").optimum(exact) and qsgp("cg").converged(rounded) and not qsgp("cg").optimum(rounded)
    hyper, inputs = jax.tree.map(lambda a: a.astype(float), (rounded.hyper, X.astype("float32")))
    mean = np.asarray(rounded.weights.mean, float).ravel()[:N]
    targets = np.asarray(rounded.solver.targets, float)[:, 0]
    left = targets - hyper.kernel.cross(inputs, inputs) @ mean - float(hyper.likelihood.noise) * mean
    residual = np.linalg.norm(left) / np.linalg.norm(targets)
    np.testing.assert_allclose(qsgp("cg").diagnostics(rounded)["residual"], residual, rtol=1e-6)
    assert qsgp("adagrad").optimum(trained(qsgp("adagrad"))) is None


@pytest.mark.parametrize("name", STEPS)
def test_the_reported_objective_is_the_bound(ends, name):
    """That of minibatches on average, over all that the loop may make of 10 rows; at the mean that the step sees."""
    method = qsgp(name)
    means = jnp.pad(jnp.asarray(RNG.normal(size=(N, 1))), ((0, 2), (0, 0)))
    state = eqx.tree_at(lambda s: (s.weights.mean, s.solver.level), ends[name], (means.reshape(6, 7), jnp.ones(())))
    where = {"dual": ["weights", "average"], "cg": ["weights"], "blocks": ["weights"]}[name]
    place = lambda s: [getattr(s.solver.solver, part) for part in where]
    state = eqx.tree_at(place, state, [means[:N]] * len(where))
    if name == "cg":
        residual = state.solver.equations(state.hyper, X).last_residual(means[:N], N)
        state = eqx.tree_at(lambda s: s.solver.solver.residual, state, residual)
    if name == "dual":
        state = eqx.tree_at(lambda s: s.solver.solver.velocity, state, jnp.zeros((N, 1)))
    index = (jnp.arange(N)[:, None] + jnp.arange(10)) % N
    batch = lambda i: dataclasses.replace(DATA, X=X[i], y=Y[i], index=i, weight=jnp.ones(10))
    values = jax.jit(jax.vmap(lambda i: method.step(state, batch(i), key=KEY)[1].objective))(index)
    np.testing.assert_allclose(np.mean(values), jax.jit(method.objective)(state, DATA), rtol=1e-9)


def test_adagrad_can_start_from_a_subset_of_regressors():
    method = qsgp("adagrad", regressors=12)
    state = method.init(DATA, key=KEY)
    K, noise = dense(state)
    few = np.linalg.solve(K[:12] @ K[:, :12] + noise * K[:12, :12], K[:12] @ Y)
    mean = np.asarray(state.weights.mean).ravel()
    np.testing.assert_allclose(mean[:12], few, rtol=1e-6)
    assert not mean[12:].any()
    np.testing.assert_allclose(state.control.running[:, 0], K[-5:, :12] @ few, rtol=1e-6)


def test_the_preconditioner_is_that_of_dense_algebra_and_no_kernel_matrix_is_whole(monkeypatch):
    system = KernelSystem(Matern32(jnp.zeros(()), jnp.zeros(2)), jnp.asarray(0.01), X, Y[:, None])
    K = np.asarray(system.kernel.cross(X, X))
    P = K[:, :15] @ np.linalg.solve(K[:15, :15], K[:15]) + 0.01 * np.eye(N)
    monkeypatch.setattr(solvers, "PRODUCT_COLUMNS", 6)
    monkeypatch.setattr(kernel_products, "PRODUCT_COLUMNS", 6)
    monkeypatch.setattr(kernel_products, "PRODUCT_ROWS", 5)
    ours = Nystroem.of_first(system, 15)
    np.testing.assert_allclose(ours.solve(system, Y[:, None])[:, 0], np.linalg.solve(P, Y), rtol=1e-5)
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), system)
    solved = Nystroem.of_first(single, 15).solve(single, single.targets)
    assert solved.dtype == jnp.float32
    np.testing.assert_allclose(solved[:, 0], np.linalg.solve(P, Y), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(system.times(Y[:, None])[:, 0], K @ Y + 0.01 * Y, rtol=1e-9)
    start = solvers.ConjugateGradients.start(system, ours)
    jaxpr = jax.make_jaxpr(lambda s: s.step(system))(start)
    rows = Rows(X[:9], jnp.arange(9), jnp.ones((9, 1)))
    jaxprs = [jaxpr, jax.make_jaxpr(lambda s: s.step(system, rows))(solvers.Blocks(start.weights))]
    sizes = [v.aval.size for j in jaxprs for equation in equations(j.jaxpr) for v in equation.outvars]
    assert max(sizes) < N * N / 2


def test_conjugate_gradients_converge_where_the_kernel_matrix_is_nearly_singular():
    """Long lengthscales, a noise of 1e-3: products in the wrong order would make the preconditioner indefinite."""
    kernel = SquaredExponential(jnp.log(4.0), jnp.full(2, 2 * np.log(10.0)))
    system = KernelSystem(kernel, jnp.asarray(1e-3), X, Y[:, None])
    state = solvers.ConjugateGradients.start(system, eqx.filter_jit(Nystroem.of_first)(system, 30))
    step = eqx.filter_jit(lambda state: state.step(system))
    for _ in range(5):
        state = step(state)
    H = np.asarray(kernel.cross(X, X)) + 1e-3 * np.eye(N)
    assert np.linalg.norm(Y - H @ np.asarray(state.weights)[:, 0]) < 1e-6 * np.linalg.norm(Y)


def _residuals(amplitude, tolerance):
    """Relative residuals of the weights after each iteration in float32, and what the solver takes them for."""
    kernel = SquaredExponential(jnp.log(amplitude), jnp.full(2, 2 * np.log(3.0)))
    system = KernelSystem(kernel, jnp.asarray(0.01), X, Y[:, None])
    system = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), system)
    start = solvers.ConjugateGradients.start(system, eqx.filter_jit(Nystroem.of_first)(system, 15))
    state = mean_solver.MeanSolver(system.targets, start, *(jnp.full((), k, jnp.float32) for k in (1, 0, 0, 0)))
    advance = eqx.filter_jit(lambda state: state._all_rows(tolerance, system))
    for _ in range(25):
        state = advance(state)
        residual = solvers.relative(system.targets - system.times(state.weights[:, None]), system.targets)
        yield float(residual), float(jnp.sqrt(state.level))


def test_conjugate_gradients_converge_by_the_residual_of_their_weights_and_diverge_in_plain_sight():
    """In float32 the latter falls to 0 where the former stays at 1e-3."""
    assert any(true > 100 * own for true, own in _residuals(100.0, 0.0))
    assert all(own > 1e-5 for _, own in _residuals(100.0, 1e-5))
    assert any(true <= 3e-3 * (1 + 1e-3) and own <= 3e-3 for true, own in _residuals(100.0, 3e-3))
    assert np.isnan([true for true, _ in _residuals(1e4, 1e-3)][-1])


def test_auto_is_cg_where_it_is_possible_and_adagrad_elsewhere(monkeypatch):
    chosen = lambda **fields: mean_solver.chosen_solver(qsgp("auto", **fields), DATA)
    adagrad = [{"dense_columns": 1}, {"basis": 20}, {"likelihood": "laplace"}, {"features": "rff", "basis": 20}]
    adagrad += [{"relevance": True}, {"search": {"rate": [0.1]}}]
    assert chosen() == "cg" and {chosen(**fields) for fields in adagrad} == {"adagrad"}
    monkeypatch.setattr(mean_solver, "_MOST", N - 1)
    assert chosen() == "adagrad"
