"""`qsgp` in training and prediction: exact limits, running vectors, augmentation, theorem 3, and what it refuses."""

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, objective_of, predict
from scipy.optimize import minimize

from gpbench.core.operations import count_operations
from gpbench.errors import ConfigError
from gpbench.methods.parts.basis_weights import columns
from gpbench.methods.weight_space.qsgp import QSGP
from gpbench.train.batches import take_step, whole

N = 12
RNG = np.random.default_rng(1)
X = jnp.asarray(RNG.uniform(-2, 2, size=(N, 1)))
Y = jnp.asarray(np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=N))
DATA = whole(X, Y)
TEST = jnp.linspace(-4, 4, 9)[:, None]


qsgp = partial(QSGP, name="qsgp", basis=20, basis_batch=8, block=2, batch_size=4, steps=30, control_rows=3)


def initial(method, data=DATA):
    return method.init(data, key=KEY)


def trained(method, data=DATA, steps=30):
    """The state after these steps, and what each of them says."""
    advance = lambda state, t: take_step(method, state, data, t, key=KEY)
    return jax.jit(lambda state: jax.lax.scan(advance, state, jnp.arange(steps)))(initial(method, data))


def optimum(method, data=DATA):
    """The state with the largest deterministic bound in the weights, by L-BFGS."""
    state = initial(method, data)
    flat, unravel = jax.flatten_util.ravel_pytree(state.weights)
    place = lambda flat: eqx.tree_at(lambda s: s.weights, state, unravel(flat))
    loss = jax.jit(jax.value_and_grad(lambda flat: -method.objective(place(flat), data)))
    options = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
    evaluate = lambda x: jax.tree.map(np.asarray, loss(jnp.asarray(x)))
    end = minimize(evaluate, flat, jac=True, method="L-BFGS-B", options=options)
    return place(jnp.asarray(end.x))


@jax.jit
def every_block(basis, kernel, X):
    return basis.evaluate(kernel, X, jnp.arange(basis.blocks))


def whole_basis(state, X):
    return np.asarray(every_block(state.basis, state.hyper.kernel, X))[:, : state.basis.size]


@pytest.mark.parametrize("features", ["rff", "inducing"])
def test_with_as_many_dense_columns_as_functions_it_is_the_exact_posterior(features):
    """Of the weights given all rows; and with a diagonal C, of their mean (theorem 1)."""
    for k in (6, 0):
        method = qsgp(features=features, kernel="matern12", basis=6, dense_columns=k, control_rows=None)
        state = optimum(method)
        Phi, noise = whole_basis(state, X), 0.1
        S = np.eye(6) if features == "rff" else np.asarray(state.hyper.kernel.cross(X[:6], X[:6]))
        precision = Phi.T @ Phi / noise + S
        Phi_test = whole_basis(state, TEST)
        predictive = predict(method, state, TEST)
        np.testing.assert_allclose(predictive.mean, Phi_test @ np.linalg.solve(precision, Phi.T @ Y / noise), atol=2e-4)
        if k:
            variance = np.sum(Phi_test * np.linalg.solve(precision, Phi_test.T).T, axis=1) + noise
        else:
            variance = Phi_test**2 @ (1 / np.diag(precision)) + noise if features == "inducing" else predictive.var
        np.testing.assert_allclose(predictive.var, variance, rtol=1e-3)


CONTROLLED = [{"features": "inducing", "basis": None, "dense_columns": 3}]
CONTROLLED += [{"replacement": True, "dense_columns": 1}, {"optimiser": optax.adam(0.01)}]


@pytest.mark.parametrize("fields", CONTROLLED)
def test_the_running_vectors_stay_those_of_all_weights(fields):
    method = qsgp(freeze=0.0, **fields)
    state, info = trained(method)
    basis, control = state.basis, state.control

    @jax.jit
    def product(basis, weights):
        return every_block(basis, control.kernel, control.X) @ columns(weights, basis.index(jnp.arange(basis.blocks)))

    expected = product(basis, state.weights)
    assert abs(expected).max() > 1e-3 and np.isfinite(info.objective).all()
    np.testing.assert_allclose(state.control.running, expected, atol=1e-10)


def test_a_step_touches_the_drawn_blocks_alone_and_mean_squares_follow_the_minibatches():
    method = qsgp(basis_batch=4)
    state = initial(method)
    after, _ = jax.jit(method.step)(state, DATA, key=KEY)
    changed = np.flatnonzero(np.any(np.asarray(after.weights.mean != state.weights.mean), axis=1))
    sample = method._sample(state, DATA, key=KEY)
    assert set(changed) == set(np.asarray(sample.blocks)) and len(changed) < state.basis.blocks
    # After many steps with fixed hyper-parameters they are those of all rows, and c_rr that of proposition 1.
    state, _ = trained(qsgp(steps=2_000), steps=2_000)
    basis = state.basis
    values = basis.values(state.hyper.kernel, X, basis.locations(jnp.arange(basis.blocks), 1, X.dtype))
    np.testing.assert_allclose(state.squares.ravel(), jnp.mean(values**2, axis=0), atol=0.03)


@pytest.mark.parametrize("features, rest", [("rff", 0.02), ("inducing", 0.6)])
def test_training_comes_near_the_best_bound(features, rest):
    """Of the gain from the start; kernel functions are nearly collinear, and AdaGrad is slow along some directions."""
    method = qsgp(features=features, basis=10, basis_batch=6, steps=4_000, batch_size=None, rate=0.3, decay=0.003)
    end, _ = trained(method, steps=4_000)
    best, first, last = (objective_of(method, s, DATA) for s in (optimum(method), initial(method), end))
    assert last > best - rest * (best - first)


def test_augmentation_equals_a_model_with_one_more_function():
    """Proposition 4 by brute force: the best diagonal entry of a function around the test point, its own variance."""
    method = qsgp(features="inducing", basis=None, augmentation=True, control_rows=None)
    plain = dataclasses.replace(method, augmentation=False)
    state = optimum(method)
    kernel, noise = state.hyper.kernel, 0.1
    ours, without = (predict(m, state, TEST).var for m in (method, plain))
    for i, x in enumerate(TEST):
        phi = np.asarray(kernel.cross(X, x[None]))[:, 0]
        k = float(kernel.diag(x[None])[0])
        total = phi @ phi / noise + k
        best = minimize(lambda c, total=total: total * np.exp(2 * c[0]) - 2 * c[0], [0.0], tol=1e-14).x[0]
        np.testing.assert_allclose(ours[i] - without[i], k**2 * np.exp(2 * best), rtol=1e-5)
    assert (ours >= without).all()
    far = predict(method, state, jnp.asarray([[60.0]])).var[0]
    np.testing.assert_allclose(far, kernel.amplitude + noise, rtol=1e-6)  # remark 2: the prior's


def test_augmentation_adds_a_twentieth_of_a_rows_operations_or_less_and_twice_as_many_to_random_features():
    """Mean and variance have k(x, X) and its squares already; random features need it beside their own."""
    rows, x, weights = jnp.zeros((500, 8)), jnp.zeros((1, 8)), jnp.ones(500)
    kernel = initial(qsgp(features="inducing", basis=None, control_rows=None), whole(rows, weights)).hyper.kernel
    moments = lambda phi: (phi @ weights, phi**2 @ weights)
    augmentation = lambda squares: 0.1 / (jnp.sum(squares, axis=1) + 0.1)

    def augmented(x):
        phi = kernel.cross(x, rows)
        squares = phi**2
        return phi @ weights, squares @ weights + augmentation(squares)

    cosines = lambda x: jnp.cos(x @ rows.T + weights)
    programs = (
        lambda x: moments(kernel.cross(x, rows)),
        augmented,
        lambda x: moments(cosines(x)),
        lambda x: (*moments(cosines(x)), augmentation(kernel.cross(x, rows) ** 2)),
    )
    plain, more, random, both = (count_operations(jax.make_jaxpr(program)(x)) for program in programs)
    assert 1 < more / plain < 1.05 and both / random > 2


def test_predictions_in_parts_are_those_of_one_and_plug_in_ones_have_no_variance_of_f(monkeypatch):
    method = qsgp(dense_columns=3, basis=19)
    state, _ = trained(method)
    at_once = predict(method, state, TEST)
    monkeypatch.setattr("gpbench.methods.parts.basis_weights._ROWS", 4)
    monkeypatch.setattr("gpbench.methods.parts.basis_weights._FUNCTIONS", 6)
    parts = predict(method, state, TEST)
    np.testing.assert_allclose(parts.mean, at_once.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.var, at_once.var, rtol=1e-12)
    data = whole(X, jnp.sign(Y), 2)
    method = qsgp(likelihood="logistic")
    state, _ = trained(method, data)
    averaged, plugged = (
        predict(m, state, TEST).arrays(jnp.ones(9))["log_prob"]
        for m in (method, dataclasses.replace(method, plug_in=True))
    )
    assert (abs(np.exp(averaged) - 0.5) < abs(np.exp(plugged) - 0.5)).all()


@pytest.mark.parametrize(
    "likelihood, classes, bound",
    [("logistic", 2, "corrected"), ("logistic", 2, "printed"), ("probit", 2, "corrected"), ("laplace", 0, "corrected")],
)
def test_theorem_3_trains(likelihood, classes, bound):
    data = whole(X, jnp.sign(Y), classes) if classes else DATA
    method = qsgp(likelihood=likelihood, bound=bound, dense_columns=2, basis_batch=10, steps=300)
    state = initial(method, data)
    end, info = trained(method, data, steps=300)
    assert np.isfinite(info.objective).all() and end.control is None
    assert objective_of(method, end, data) > objective_of(method, state, data) + 0.1


def test_at_the_best_bound_few_relevance_vectors_are_left():
    rows = jnp.linspace(-1.7, 1.7, 25)[:, None]
    data = whole(rows, jnp.asarray(np.sinc(rows[:, 0]) + 0.05 * RNG.normal(size=25)))
    fields = {"features": "inducing", "basis": None, "relevance": True, "block": 1}
    method = qsgp(**fields, control_rows=None, target_noise=0.0025)
    state = optimum(method, data)
    relevant = int(jnp.sum(state.weights.log_precision < np.log(1e4)))
    assert 2 <= relevant <= 12, state.weights.log_precision
    predictive = predict(method, state, rows)
    assert np.sqrt(np.mean((predictive.mean - np.sinc(rows[:, 0])) ** 2)) < 0.05


@pytest.mark.parametrize("limit, count", [("relevant_1e3", 3), ("relevant", 5), ("relevant_1e5", 9)])
def test_relevance_vectors_are_the_functions_whose_prior_precision_is_below_1e4(limit, count):
    """Precisions 10^2.5 (3 times), 10^3.5 (2), 10^4.5 (4), 10^6 (3); blocks of 5 fill up to 15 functions."""
    method = qsgp(features="inducing", basis=None, block=5, relevance=True)
    state = initial(method)
    powers = jnp.asarray([2.5] * 3 + [3.5] * 2 + [4.5] * 4 + [6.0] * 3 + [0.0] * 3).reshape(3, 5)
    state = eqx.tree_at(lambda s: s.weights.log_precision, state, powers * np.log(10.0))
    assert method.diagnostics(state)[limit] == count
    centres = np.asarray(method.arrays(state)["inducing"])
    np.testing.assert_array_equal(centres, np.where(np.arange(N)[:, None] < 5, np.asarray(X), np.nan))


def test_only_kernel_functions_have_centres_and_the_most_functions_of_a_draw_are_all_of_them(monkeypatch):
    kernels, random = qsgp(features="inducing", basis=None), qsgp()
    states = [initial(method) for method in (kernels, random)]
    np.testing.assert_array_equal(kernels.arrays(states[0])["inducing"], X)
    assert random.arrays(states[1]) == kernels.diagnostics(states[0]) == random.diagnostics(states[1]) == {}
    method = QSGP(name="qsgp", basis=500, basis_batch=2000, control_rows=None)
    assert method.limits(60) == {"basis_batch": 500}
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"^500 basis functions .* try fewer of them \(method.basis, "):
        method.init(DATA, key=KEY)
