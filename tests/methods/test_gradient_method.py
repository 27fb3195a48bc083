"""The contract of `GradientMethod`, on ridge regression: what its hooks see, and that both kinds of optimiser agree."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, regression, train

from gpbench.contract.findings import examine
from gpbench.core.predictive import GaussianPredictive
from gpbench.errors import ConfigError
from gpbench.methods.parts.gradient import GradientMethod


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


def test_minibatches_reach_the_neighbourhood_of_the_closed_form(data, solution):
    state, _ = train(Ridge(name="ridge", optimiser=optax.sgd(2e-3), batch_size=10), data, 600)
    np.testing.assert_allclose(state.parameters, solution, atol=0.05)


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


def test_update_counts_and_trainable_freezes(data):
    method = Guided(name="guided", optimiser=optax.adam(0.1))
    state, _ = train(method, data, 7)
    assert state.variables == 7
    np.testing.assert_array_equal(state.parameters[1], 1.0)
    assert (state.parameters[0] != 0.0).all()


def test_the_objective_of_an_optax_step_is_that_of_where_it_started(data):
    method = Ridge(name="ridge", optimiser=optax.sgd(0.02))
    _, objective = train(method, data, 1)
    np.testing.assert_allclose(objective, [-0.5 * data.y @ data.y], rtol=1e-12)


def test_l_bfgs_on_minibatches_is_refused_in_one_line(data):
    with pytest.raises(ConfigError, match=r"^ridge: L-BFGS needs all rows in each step") as error:
        Ridge(name="ridge", batch_size=10).init(data, key=KEY)
    assert "\n" not in str(error.value)
    assert eqx.is_array(Ridge(name="ridge", batch_size=30).init(data, key=KEY).parameters)  # a batch of all rows


@pytest.mark.parametrize("optimiser", [None, {"_target_": "optax.sgd", "learning_rate": 0.01}], ids=["lbfgs", "sgd"])
def test_a_gradient_method_keeps_every_rule_of_a_method(optimiser):
    configuration = {"_target_": "test_gradient_method.Ridge", "name": "ridge", "steps": 4, "optimiser": optimiser}
    findings = list(examine(configuration, rows=20))
    assert [finding for finding in findings if finding.verdict != "kept"] == []
