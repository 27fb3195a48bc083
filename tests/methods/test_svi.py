"""The variational bound against exact evidences, and natural gradients against the optimum they reach at once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from references import classes, exact_evidence, hyper_at, inputs
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from gpbench.core.gaussians import Normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.optimisers import adadelta, adam
from gpbench.errors import ConfigError
from gpbench.methods.vi.svi import SVI, Parameters
from gpbench.train.batches import at_step, whole

KEY = jax.random.key(0)
FROZEN = optax.set_to_zero()


def targets(X, seed=1):
    return jnp.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * jnp.asarray(np.random.default_rng(seed).normal(size=len(X)))


def some_q(m, key=KEY, scale=0.3):
    a, b = jax.random.normal(key, (m,)), jax.random.normal(jax.random.fold_in(key, 1), (m, m))
    return Normal(a, jnp.eye(m) + scale * jnp.tril(b))


def started(method, data, hyper):
    state = method.init(data, key=KEY)
    return eqx.tree_at(lambda s: s.parameters.hyper, state, hyper)


def run(method, state, data, steps):
    def one(state, t):
        return method.step(state, at_step(data, method.batch_size, t, key=KEY), key=KEY)

    return jax.jit(lambda s: jax.lax.scan(one, s, jnp.arange(steps)))(state)


def test_kl_is_that_of_two_normal_distributions():
    q = some_q(4)
    R = np.tril(q.root)
    S = R.T @ R
    expected = 0.5 * (np.trace(S) + q.mean @ q.mean - 4 - np.linalg.slogdet(S)[1])
    np.testing.assert_allclose(q.kl_from_standard(), expected, rtol=1e-12)


def test_bound_lies_below_the_exact_evidence_for_any_q_and_close_below_at_the_optimum():
    X = inputs(3)
    y = classes(X)
    data, hyper = whole(X, y, 2), hyper_at(X)
    exact = exact_evidence(np.asarray(hyper.kernel.gram(X, X)) + 0.05 * np.eye(3), np.asarray(y))
    method = SVI(inducing=3, optimiser=FROZEN, natural_step=0.7)
    for seed in range(20):
        q = some_q(3, jax.random.key(seed))
        assert method.bound(Parameters(hyper, q), data) < exact
    state, _ = run(method, started(method, data, hyper), data, 60)
    bound = method.objective(state, data)
    assert exact - 0.1 < bound < exact


def test_a_natural_step_of_size_one_solves_the_gaussian_case_at_once():
    X = inputs(15)
    y = targets(X)
    data, hyper = whole(X, y), hyper_at(X, noise=0.1)
    method = SVI(inducing=15, optimiser=FROZEN, natural_step=1.0)
    state, _ = run(method, started(method, data, hyper), data, 1)
    K = np.asarray(hyper.kernel.gram(X, X))
    evidence = multivariate_normal.logpdf(y, cov=K + 0.1 * np.eye(15))
    np.testing.assert_allclose(method.objective(state, data), evidence, rtol=1e-6)
    # and the predictions are exact GP regression's
    new = inputs(5, seed=9)
    k = np.asarray(hyper.kernel.gram(new, X))
    B = np.linalg.inv(K + 0.1 * np.eye(15))
    predictive = method.predict(state, new)
    np.testing.assert_allclose(predictive.mean, k @ B @ y, rtol=1e-5)
    np.testing.assert_allclose(predictive.var, np.exp(0.7) + 0.1 - np.sum((k @ B) * k, 1), rtol=1e-5)


def test_natural_steps_end_where_the_bound_is_flat_in_q():
    X = inputs(30)
    data, hyper = whole(X, classes(X), 2), hyper_at(X[:6])
    natural = SVI(inducing=6, optimiser=FROZEN, natural_step=0.7)
    state, _ = run(natural, started(natural, data, hyper), data, 60)
    gradient = jax.grad(lambda q: natural.bound(Parameters(hyper, q), data))(state.parameters.q)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 0.0, atol=1e-6)


def test_l_bfgs_with_gaussian_noise_and_all_data_as_inducing_points_reaches_the_best_exact_evidence():
    X = inputs(20)
    y = targets(X)
    data, method = whole(X, y), SVI(inducing=20, lengthscales="free")
    _, info = run(method, method.init(data, key=KEY), data, 800)

    def minus_evidence(x):
        kernel = SquaredExponential(x[0], x[1:3])
        K = kernel.gram(X, X) + (jnp.exp(x[3]) + 1e-10) * jnp.eye(20)
        return -jax.scipy.stats.multivariate_normal.logpdf(y, jnp.zeros(20), K)

    first = method.init(data, key=KEY).hyper
    x = jnp.concatenate([first.kernel.log_amplitude[None], first.kernel.log_lengthscale2, first.log_noise[None]])
    best = minimize(jax.jit(jax.value_and_grad(minus_evidence)), x, jac=True, method="L-BFGS-B")
    assert info.objective[-1] <= -best.fun + 1e-6
    np.testing.assert_allclose(info.objective[-1], -best.fun, atol=0.02)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_gradient_against_finite_differences(task):
    X = inputs(12)
    data = whole(X, classes(X), 2) if task == "binary" else whole(X, targets(X))
    method = SVI(inducing=4)
    x, unravel = ravel_pytree(Parameters(hyper_at(X[:4]), some_q(4)))
    value = jax.jit(lambda x: method.bound(unravel(x), data))
    h = 1e-6
    differences = [(value(x + h * e) - value(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    np.testing.assert_allclose(jax.grad(value)(x), differences, rtol=1e-5, atol=1e-6)


def test_minibatch_bound_is_unbiased():
    X = inputs(32)
    data, method = whole(X, classes(X), 2), SVI(inducing=5, batch_size=7, optimiser=adadelta())
    parameters = Parameters(hyper_at(X[:5]), some_q(5))

    def draw(k):
        return method.bound(parameters, at_step(data, 7, k, key=jax.random.fold_in(KEY, k)))

    bounds = jax.jit(jax.vmap(draw))(jnp.arange(4000))
    error = bounds.std() / np.sqrt(4000)
    full = method.bound(parameters, data)
    assert error < 0.01 * abs(full)  # so that the next line says something
    np.testing.assert_allclose(bounds.mean(), full, atol=4 * error)


def test_bound_does_not_depend_on_the_order_of_rows():
    X = inputs(30)
    y, order = classes(X), np.random.default_rng(3).permutation(30)
    method, parameters = SVI(), Parameters(hyper_at(X[:5]), some_q(5))
    np.testing.assert_allclose(
        method.bound(parameters, whole(X[order], y[order], 2)), method.bound(parameters, whole(X, y, 2)), rtol=1e-12
    )


@pytest.mark.parametrize("options", [{}, {"natural_step": 0.1}], ids=["everything", "natural"])
@pytest.mark.parametrize("optimiser", [adadelta(), adam()], ids=["adadelta", "adam"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_minibatches_raise_the_bound(options, optimiser, task):
    X = inputs(64)
    data = whole(X, classes(X), 2) if task == "binary" else whole(X, targets(X))
    method = SVI(inducing=6, batch_size=20, optimiser=optimiser, **options)
    first = method.init(data, key=KEY)
    state, _ = run(method, first, data, 200)
    assert method.objective(state, data) > method.objective(first, data) + 5.0


def test_natural_step_of_a_minibatch_is_unbiased_in_the_natural_parameters():
    X = inputs(32)
    data, method = whole(X, classes(X), 2), SVI(inducing=5, optimiser=FROZEN, natural_step=0.5)
    hyper, state = hyper_at(X[:5]), method.init(data, key=KEY)
    parameters = Parameters(hyper, some_q(5))
    batches = [at_step(data, 8, t, key=KEY) for t in jnp.arange(4)]  # an epoch
    epoch = [method.natural_gradient(parameters, state.natural, batch) for batch in batches]
    full = method.natural_gradient(parameters, state.natural, data)
    mean = jax.tree.map(lambda *leaves: sum(leaves) / 4, *epoch)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-10), mean, full)


def test_choices_that_do_not_fit_are_named():
    X = inputs(30)
    data = whole(X, classes(X), 2)
    with pytest.raises(ConfigError, match="L-BFGS needs all rows"):
        SVI(batch_size=10).init(data, key=KEY)
    with pytest.raises(ConfigError, match="natural_step needs"):
        SVI(natural_step=0.1).init(data, key=KEY)
