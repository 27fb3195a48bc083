"""The variational bound against exact evidences, and natural gradients against the optimum they reach at once."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import (
    FROZEN,
    KEY,
    binary,
    bound_of,
    differences,
    equations,
    layer_at,
    minibatches,
    objective_of,
    regression,
    train,
)

from gpbench.core.gaussians import Normal
from gpbench.core.likelihoods import Gaussian, Probit
from gpbench.core.optimisers import adadelta
from gpbench.methods.parts.collapsed import CollapsedParameters as Collapsed
from gpbench.methods.vi.svi import SVI, VariationalParameters
from gpbench.methods.vi.vsgpr import VSGPR
from gpbench.train.batches import at_step, whole


def some_q(m, key=KEY, scale=0.3):
    a, b = jax.random.normal(key, (m,)), jax.random.normal(jax.random.fold_in(key, 1), (m, m))
    return Normal(a, jnp.eye(m) + scale * jnp.tril(b))


def test_kl_is_that_of_two_normal_distributions_and_the_bound_does_not_depend_on_the_order_of_rows():
    q = some_q(4)
    R = np.tril(q.root)
    S = R.T @ R
    expected = 0.5 * (np.trace(S) + q.mean @ q.mean - 4 - np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(q.kl(), expected, rtol=1e-12)
    data, order = binary(30), np.random.default_rng(3).permutation(30)
    method, parameters = SVI(), VariationalParameters(layer_at(data.X[:5]), Probit(), some_q(5))
    shuffled = whole(data.X[order], data.y[order], 2)
    values = [bound_of(method, parameters, rows) for rows in (shuffled, data)]
    np.testing.assert_allclose(*values, rtol=1e-12)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_gradient_against_finite_differences(task):
    data, likelihood = (binary(12), Probit()) if task == "binary" else (regression(12), Gaussian(jnp.log(0.1)))
    method = SVI(inducing=3)
    x, unravel = ravel_pytree(VariationalParameters(layer_at(data.X[:3]), likelihood, some_q(3)))
    value = lambda x: method.bound(unravel(x), data)
    gradient = jax.jit(jax.grad(value))(x)
    np.testing.assert_allclose(gradient, differences(value, x, 1e-6), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("natural_step", [None, 0.1])
@pytest.mark.parametrize(("data", "optimiser"), [(binary(64), adadelta()), (regression(64), optax.adam(1e-2))])
def test_minibatches_raise_the_bound(data, optimiser, natural_step):
    method = SVI(inducing=6, batch_size=20, optimiser=optimiser, natural_step=natural_step)
    start = method.init(data, key=KEY)
    state, _ = train(method, data, 200, start)
    assert objective_of(method, state, data) > objective_of(method, start, data) + 5.0


def test_a_step_with_natural_gradients_factorises_kzz_and_the_precision_of_q_once_each():
    data, method = binary(32), SVI(inducing=5, batch_size=8, optimiser=optax.adam(0.1), natural_step=0.5)
    state, batch = method.init(data, key=KEY), at_step(data, 8, jnp.asarray(0), key=KEY)
    # before compilation, in which XLA would merge two factorisations of one matrix
    program = jax.make_jaxpr(lambda state, batch: method.step(state, batch, key=KEY))(state, batch)
    assert sum(equation.primitive.name == "cholesky" for equation in equations(program.jaxpr)) == 2


def test_a_natural_step_is_unbiased_and_moves_the_rest_along_the_gradient_at_its_new_q():
    data, method = binary(32), SVI(inducing=5, batch_size=8, optimiser=optax.sgd(0.1), natural_step=0.5)
    state, batch = method.init(data, key=KEY), at_step(data, 8, jnp.asarray(0), key=KEY)
    after, info = jax.jit(lambda state: method.step(state, batch, key=KEY))(state)
    before = VariationalParameters(state.parameters.layer, state.parameters.likelihood, after.parameters.q)
    value, gradient = jax.jit(jax.value_and_grad(method.bound))(before, batch)
    np.testing.assert_allclose(info.objective, value, rtol=1e-12)
    moved = ravel_pytree(after.parameters.layer)[0] - ravel_pytree(before.layer)[0]
    np.testing.assert_allclose(moved, 0.1 * ravel_pytree(gradient.layer)[0], rtol=1e-8, atol=1e-12)
    data, method = binary(32), SVI(inducing=5, batch_size=8, optimiser=FROZEN, natural_step=0.5)
    parameters = VariationalParameters(layer_at(data.X[:5]), Probit(), some_q(5))
    factor = method.init_variables(parameters, data)
    update = jax.jit(lambda batch: method.update_and_evaluate(parameters, factor, batch, key=KEY)[1])
    epoch = jax.vmap(update)(minibatches(data, 8, 4))
    mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), epoch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), mean, update(data))


def test_with_automatic_natural_steps_a_regression_ends_at_the_collapsed_bound_of_its_hyper_parameters():
    data, method = regression(30), SVI(inducing=8, natural_step="auto", optimiser=optax.adam(0.05))
    state, _ = train(method, data, 40)
    collapsed, _ = VSGPR(inducing=8).evidence(Collapsed(state.parameters.layer, state.parameters.likelihood), data)
    np.testing.assert_allclose(objective_of(method, state, data), collapsed, rtol=1e-9)


def test_automatic_natural_steps_on_minibatches_do_not_forget_the_other_rows():
    """Steps of size 1 on 5 of 30 rows would leave q fitted to the last 5."""
    data = regression(30)
    fields = {"name": "svi", "inducing": 8, "optimiser": FROZEN, "natural_step": "auto"}
    whole, _ = train(SVI(**fields), data, 1)
    parts, _ = train(SVI(**fields, batch_size=5), data, 300)
    best, reached = (float(objective_of(SVI(**fields), state, data)) for state in (whole, parts))
    assert best - 10 < reached <= best + 1e-6
    same = [train(SVI(**fields | {"natural_step": size}, batch_size=15), data, 3)[0] for size in ("auto", 0.25)]
    jax.tree.map(np.testing.assert_array_equal, *same)


def test_fifty_steps_in_float32_end_where_those_in_float64_do():
    X = np.random.default_rng(0).normal(size=(300, 3))
    ends = {}
    for dtype in (jnp.float32, jnp.float64):
        data = whole(jnp.asarray(X, dtype), jnp.asarray(np.sin(X[:, 0]) + 0.1 * X[:, 1], dtype))
        method = SVI(inducing=20, batch_size=64, optimiser=optax.adam(0.01), natural_step=0.1)

        def fifty(state, data=data, method=method):
            step = lambda t, state: method.step(state, at_step(data, 64, t, key=KEY), key=KEY)[0]
            state = jax.lax.fori_loop(0, 50, step, state)
            return state.variables, method.objective(state, data), method.marginals(state, data.X)

        ends[dtype] = jax.jit(fifty)(method.init(data, key=KEY))
    factor, bound, (mean, variance) = ends[jnp.float32]
    exact_factor, exact_bound, (exact_mean, exact_variance) = ends[jnp.float64]
    assert mean.dtype == factor.precision.dtype == jnp.float32
    for ours, exact in ((factor.precision, exact_factor.precision), (factor.shift, exact_factor.shift)):
        assert jnp.max(jnp.abs(ours - exact)) < 1e-2 * jnp.max(jnp.abs(exact))
    assert abs(bound - exact_bound) < 1e-3 * len(X)  # nats
    assert jnp.max(jnp.abs(mean - exact_mean) / jnp.sqrt(exact_variance)) < 0.05
    np.testing.assert_allclose(variance, exact_variance, rtol=0.05)
