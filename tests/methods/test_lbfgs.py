"""L-BFGS inside a program against known minima and SciPy's, and the contract of `GradientMethod`."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, binary, regression, train
from scipy.optimize import minimize

from gpbench.contract.findings import examine
from gpbench.core import lbfgs
from gpbench.core.predictive import GaussianPredictive
from gpbench.errors import ConfigError
from gpbench.methods.parts.gradient import GradientMethod
from gpbench.methods.vi.svi import SVI


def rosenbrock(x):
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def run(function, x, steps, **options):
    """(x, state, values) after `steps` steps, with the number of accepted points as `extra`."""

    def evaluate(x, extra):
        return *jax.value_and_grad(function)(x), extra + 1

    def one(carry, _):
        x, state = carry
        return lbfgs.step(evaluate, x, state, **options), state.value

    (x, state), values = jax.lax.scan(one, (x, lbfgs.start(x, jnp.array(0))), length=steps)
    return x, state, values


def test_the_first_step_only_evaluates_a_nan_is_too_far_and_extra_is_that_of_the_accepted_point():
    x = jnp.array([-1.2, 1.0])
    moved, state, _ = run(rosenbrock, x, 1)
    np.testing.assert_array_equal(moved, x)
    np.testing.assert_allclose(state.value, rosenbrock(x))
    np.testing.assert_allclose(state.gradient, jax.grad(rosenbrock)(x))
    assert not state.converged
    # minimum at x = 1.8, not a number beyond 2, where the line search arrives by doubling
    x, state, _ = run(lambda x: jnp.sum(-5.0 * x - jnp.log(2.0 - x)), jnp.array([0.0]), 40)
    np.testing.assert_allclose(x, 1.8, atol=1e-4)
    assert state.converged
    # Each evaluation adds one to what the last accepted point had, so it counts accepted points.
    _, state, _ = run(lambda x: 0.5 * jnp.sum(x**2), jnp.array([3.0, 4.0]), 3)
    assert state.extra == 3


def test_minimum_of_rosenbrock_from_several_starts_in_one_program_where_a_converged_one_stays():
    starts = jnp.array([[1.0, 1.0], [-1.2, 1.0]])  # the first is the minimum
    few, *_ = jax.vmap(lambda x: run(rosenbrock, x, 20))(starts)
    x, states, _ = jax.vmap(lambda x: run(rosenbrock, x, 100))(starts)
    np.testing.assert_array_equal(x[0], [1.0, 1.0])
    np.testing.assert_array_equal(few[0], [1.0, 1.0])
    assert states.converged.all()
    np.testing.assert_allclose(x[1], 1.0, atol=1e-3)
    starts = jax.random.normal(jax.random.key(0), (5, 6))
    together, states, values = jax.jit(jax.vmap(lambda x: run(rosenbrock, x, 200, tolerance=1e-15)))(starts)
    assert (states.value < 4.0).all()  # 0, or the other local minimum near 3.97
    np.testing.assert_allclose(jax.vmap(jax.grad(rosenbrock))(together), 0.0, atol=1e-4)
    assert (np.diff(values[:, 1:], axis=1) <= 0).all()
    alone, *_ = run(rosenbrock, starts[0], 200, tolerance=1e-15)
    np.testing.assert_allclose(alone, together[0], atol=1e-6)


def test_same_optimum_as_l_bfgs_b_of_scipy_on_svi():
    data, method = binary(40), SVI(inducing=5)
    start = method.init(data, key=KEY)
    _, objective = train(method, data, 600, start)
    x, unravel = ravel_pytree(start.parameters)
    minus_bound = jax.jit(jax.value_and_grad(lambda x: -method.bound(unravel(x), data)))
    theirs = minimize(minus_bound, x, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 10000})
    # Both stop in a flat valley where a step gains next to nothing: rounding alone moves the end by 1e-4.
    np.testing.assert_allclose(objective[-1], -theirs.fun, rtol=3e-4)
    assert (np.diff(objective) >= 0).all()


class Ridge(GradientMethod):
    """w minimises ½ Σ (y - Xw)² + ½ |w|²; the loss's by-product is w itself."""

    tasks: ClassVar[frozenset[str]] = frozenset({"regression"})

    def init_parameters(self, data, *, key):
        return jnp.zeros(data.X.shape[1], data.X.dtype)

    def init_extra(self, parameters, data):
        return jnp.full_like(parameters, jnp.inf)

    def loss(self, parameters, batch, *, key):
        error = batch.weight * (batch.y - batch.X @ parameters)
        return 0.5 * batch.scale * error @ error + 0.5 * parameters @ parameters, parameters

    def predict(self, state, X, *, key):
        return GaussianPredictive(X @ state.parameters, jnp.ones(len(X), X.dtype))


class Guided(Ridge):
    """Counts its updates and leaves the second of two groups of parameters alone."""

    def init_parameters(self, data, *, key):
        return super().init_parameters(data, key=key), jnp.ones(3)

    def init_variables(self, parameters, data):
        return jnp.zeros((), int)

    def update(self, parameters, variables, batch):
        return parameters, variables + 1

    def trainable(self, parameters):
        return parameters[0]

    def loss(self, parameters, batch, *, key):
        return super().loss(parameters[0], batch, key=key)[0] + jnp.sum(parameters[1]), None


@pytest.fixture(scope="module")
def data():
    return regression(30)


@pytest.fixture(scope="module")
def solution(data):
    X, y = np.asarray(data.X), np.asarray(data.y)
    return np.linalg.solve(X.T @ X + np.eye(2), X.T @ y)


@pytest.mark.parametrize("optimiser", [None, optax.sgd(0.02)], ids=["lbfgs", "sgd"])
def test_training_reaches_the_closed_form(optimiser, data, solution):
    state, objective = train(Ridge(name="ridge", optimiser=optimiser), data, 100)
    np.testing.assert_allclose(state.parameters, solution, rtol=1e-4)
    assert (np.diff(objective) >= -1e-9).all()


def test_minibatches_reach_the_neighbourhood_of_the_closed_form_and_l_bfgs_refuses_them(data, solution, one_line):
    state, _ = train(Ridge(name="ridge", optimiser=optax.sgd(2e-3), batch_size=10), data, 600)
    np.testing.assert_allclose(state.parameters, solution, atol=0.05)
    with one_line(ConfigError, match=r"^ridge: L-BFGS needs all rows in each step"):
        Ridge(name="ridge", batch_size=10).init(data, key=KEY)
    assert eqx.is_array(Ridge(name="ridge", batch_size=30).init(data, key=KEY).parameters)  # a batch of all rows


def test_l_bfgs_first_evaluates_and_keeps_the_by_products_of_where_it_is(data):
    method = Ridge(name="ridge")
    start = method.init(data, key=KEY)
    np.testing.assert_array_equal(start.optimiser.extra, jnp.inf)
    first, objective = train(method, data, 1, start)
    np.testing.assert_array_equal(first.parameters, start.parameters)
    np.testing.assert_array_equal(first.optimiser.extra, first.parameters)
    np.testing.assert_allclose(objective, [-0.5 * data.y @ data.y], rtol=1e-12)
    later, objective = train(method, data, 5, start)
    np.testing.assert_array_equal(later.optimiser.extra, later.parameters)
    np.testing.assert_allclose(objective[-1], -method.loss(later.parameters, data, key=KEY)[0], rtol=1e-12)


def test_update_counts_trainable_freezes_and_the_objective_is_that_of_where_a_step_started(data):
    method = Guided(name="guided", optimiser=optax.adam(0.1))
    state, _ = train(method, data, 7)
    assert state.variables == 7
    np.testing.assert_array_equal(state.parameters[1], 1.0)
    assert (state.parameters[0] != 0.0).all()
    method = Ridge(name="ridge", optimiser=optax.sgd(0.02))
    _, objective = train(method, data, 1)
    np.testing.assert_allclose(objective, [-0.5 * data.y @ data.y], rtol=1e-12)


@pytest.mark.parametrize("optimiser", [None, {"_target_": "optax.sgd", "learning_rate": 0.01}], ids=["lbfgs", "sgd"])
def test_a_gradient_method_keeps_every_rule_of_a_method(optimiser):
    configuration = {"_target_": "test_lbfgs.Ridge", "name": "ridge", "steps": 4, "optimiser": optimiser}
    findings = list(examine(configuration, rows=20))
    assert [finding for finding in findings if finding.verdict != "kept"] == []
