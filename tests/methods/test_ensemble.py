"""`ensemble` and `laplace`: mixtures of networks, and the evidence and outputs of one with a Laplace posterior."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from networks import features, forward, parameters_of
from problems import KEY, binary, classes, inputs, predict, regression, run_steps, targets
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal, norm

from gpbench.core import laplace
from gpbench.core.likelihoods import Gaussian, Probit, Softmax
from gpbench.core.networks import initial_network
from gpbench.methods.bnn.ensemble import Ensemble
from gpbench.methods.bnn.laplace import LinearisedLaplace
from gpbench.train.batches import whole

ADAM = optax.adam(0.01)
FIELDS = {"name": "ensemble", "hidden": (3,), "optimiser": ADAM}
X = inputs(12)
DATA = whole(X, targets(X))
X_NEW = inputs(5, seed=3)

start = eqx.filter_jit(lambda method, data: method.init(data, key=KEY))
predictions_of = eqx.filter_jit(lambda method, state, X: method.predict(state, X, key=KEY))
log_density = jax.jit(lambda predictive, y: predictive.log_prob(y))
loss = eqx.filter_jit(lambda method, parameters, data: method.loss(parameters, data, key=KEY)[0])


def outputs(state, X):
    """Outputs (K, N, O) of all members."""
    return forward(parameters_of(state.parameters.members.network), np.asarray(X), output=slice(None))


def started(**fields):
    """A method without output scales, and its first state, with random biases too."""
    method = Ensemble(**{**FIELDS, "scaled": False, "members": 3, **fields})
    state = start(method, DATA)
    rng = np.random.default_rng(0)
    moved = jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.3 * rng.normal(size=leaf.shape)), state.parameters.members)
    return method, eqx.tree_at(lambda s: s.parameters.members, state, moved)


def moments(state, X):
    """Means and variances of all members, each (K, N)."""
    every = outputs(state, X)
    return every[..., 0], np.logaddexp(0.0, every[..., 1]) + 1e-6


def test_the_prediction_is_the_gaussian_of_the_mixtures_moments_or_the_mixture():
    method, state = started()
    mean, variance = moments(state, X_NEW)
    centre = mean.mean(0)
    gaussian = predictions_of(method, state, X_NEW)
    np.testing.assert_allclose(gaussian.mean, centre, rtol=1e-12)
    np.testing.assert_allclose(gaussian.var, (variance + mean**2).mean(0) - centre**2, rtol=1e-12)
    y = targets(X_NEW)
    expected = norm.logpdf(y, centre, np.sqrt((variance + mean**2).mean(0) - centre**2))
    np.testing.assert_allclose(log_density(gaussian, y), expected, rtol=1e-12)
    mixture = predictions_of(Ensemble(**FIELDS, scaled=False, members=3, pooling="mixture"), state, X_NEW)
    expected = logsumexp(norm.logpdf(y, mean, np.sqrt(variance)), axis=0) - np.log(3)
    np.testing.assert_allclose(log_density(mixture, y), expected, rtol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_of_classes_are_the_members_average(count):
    y = classes(X) if count == 2 else jnp.arange(12.0) % 3
    method = Ensemble(**FIELDS, scaled=False, members=3)
    state = start(method, whole(X, y, count))
    every = outputs(state, X_NEW)
    if count == 2:  # probit
        expected = np.mean([np.hstack([norm.cdf(-f), norm.cdf(f)]) for f in every], axis=0)
    else:
        expected = np.mean([softmax(f, axis=1) for f in every], axis=0)
    np.testing.assert_allclose(np.exp(predictions_of(method, state, X_NEW).summary()["log_probs"]), expected, rtol=1e-6)


def test_the_loss_is_the_sum_over_members_and_rows_that_count_and_gradients_do_not_mix():
    method, state = started()
    data = whole(X, targets(X), rows=9)
    mean, variance = moments(state, X[:9])
    expected = -norm.logpdf(np.asarray(data.y)[:9], mean, np.sqrt(variance)).sum()
    np.testing.assert_allclose(loss(method, state.parameters, data), expected, rtol=1e-12)
    method, state = started(adversarial=0.01)
    gradient = jax.jit(lambda p: jax.grad(lambda p: method.loss(p, DATA, key=KEY)[0])(p).members)
    others = jax.tree.map(lambda x: jnp.asarray(np.concatenate([x[:1], -1.7 * x[1:]])), state.parameters.members)
    before = gradient(state.parameters)
    after = gradient(eqx.tree_at(lambda p: p.members, state.parameters, others))
    for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after)):
        np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
        assert np.abs(a[1:] - b[1:]).max() > 1e-3


def test_adversarial_rows_move_by_a_part_of_each_inputs_range_to_where_the_loss_is_larger():
    """Signs from central differences of each member's log density; rows of weight 0 do not widen the ranges."""
    filled = whole(jnp.concatenate([X, 100.0 + X[:2]]), jnp.concatenate([DATA.y, DATA.y[:2]]), rows=12)
    method, state = started(adversarial=0.05)
    ranges = start(method, filled).parameters.ranges
    np.testing.assert_allclose(ranges, np.ptp(np.asarray(X), axis=0), rtol=1e-12)
    y, step = np.asarray(DATA.y), 0.05 * np.ptp(np.asarray(X), axis=0)
    expected = 0.0
    for k in range(3):

        def log_prob(X, k=k):
            mean, variance = (part[k] for part in moments(state, X))
            return norm.logpdf(y, mean, np.sqrt(variance))

        slopes = [log_prob(X + 1e-6 * axis) - log_prob(X - 1e-6 * axis) for axis in np.eye(2)]
        worse = np.asarray(X) - step * np.sign(np.transpose(slopes))
        expected -= log_prob(np.asarray(X)).sum() + log_prob(worse).sum()
    np.testing.assert_allclose(loss(method, state.parameters, DATA), expected, rtol=1e-12)


def test_members_differ_and_find_noise_that_grows_with_the_input():
    """Noise of standard deviation 0.1 + 0.9 |x|: the predicted one has a correlation above 0.9 with it."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (400, 1))
    spread = 0.1 + 0.9 * np.abs(X[:, 0])
    data = whole(jnp.asarray(X), jnp.asarray(X[:, 0] + spread * rng.normal(size=400)))
    method = Ensemble(**{**FIELDS, "hidden": (8,), "members": 2, "scaled": False, "steps": 800})
    state = start(method, data)
    state = jax.jit(lambda s: jax.lax.fori_loop(0, 800, lambda _, s: method.step(s, data, key=KEY)[0], s))(state)
    predicted = np.sqrt(predictions_of(method, state, data.X).var)
    assert np.corrcoef(predicted, spread)[0, 1] > 0.9
    first, second = moments(state, data.X)[0]
    assert np.abs(first - second).max() > 1e-3


def test_training_stops_after_the_steps_that_a_setting_says():
    method = Ensemble(**FIELDS, members=2, steps=5, search={"stop_after": [3, 5]})
    after = jax.jit(lambda state, n: jax.lax.fori_loop(0, n, lambda t, s: method.step(s, DATA, key=KEY)[0], state))
    state = start(method, DATA)
    stopped = method.with_settings(state, {"stop_after": 3.0})
    assert jax.tree.structure(stopped) == jax.tree.structure(state)
    assert [bool(method.converged(after(stopped, t))) for t in (2, 3, 5)] == [False, True, True]
    assert not method.converged(after(state, 3)) and method.converged(after(state, 5))
    leaves = [jax.tree.leaves(after(s, t).parameters) for s, t in ((stopped, 5), (state, 3), (state, 5))]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1]))
    assert not np.array_equal(leaves[0][0], leaves[2][0])
    assert method.settings(stopped)["stop_after"] == 3


NOISE = 0.3


def method_of(**fields):
    usual = {"name": "laplace", "optimiser": optax.adam(0.02), "target_noise": NOISE, "hidden": (3,), "minibatch": 10}
    return LinearisedLaplace(**{**usual, **fields})


def network_of(outputs, hidden=(3,)):
    """Two inputs, with random biases too."""
    network = initial_network((2, *hidden, outputs), scaled=True, key=KEY, dtype=jnp.float64)
    w, unravel = ravel_pytree(network)
    return unravel(w + 0.3 * jax.random.normal(jax.random.key(1), w.shape))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_jacobian_is_that_of_differences(outputs):
    network, X = network_of(outputs, (3, 2)), inputs(4)
    w, unravel = ravel_pytree(network)
    at = jax.jit(lambda w: unravel(w)(X).ravel())
    ours = np.asarray(jax.jit(laplace.jacobian)(network, X)).reshape(4 * outputs, -1)
    theirs = approx_fprime(np.asarray(w), lambda w: np.asarray(at(w)), 1e-6)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("rows", [7, 300])
def test_the_gauss_newton_matrix_is_the_sum_over_rows_of_the_dense_products(rows):
    """Of three classes, where Λ = diag p - p pᵀ; 300 rows are more than one chunk, and one row does not count."""
    network, X = network_of(3), inputs(rows)
    y, weight = jnp.arange(rows) % 3.0, jnp.ones(rows).at[2].set(0.0)
    ours = jax.jit(laplace.gauss_newton)(network, Softmax(3), X, y, weight)
    p = np.asarray(jax.jit(lambda network, X: jax.nn.softmax(network(X), axis=1))(network, X))
    J = np.asarray(jax.jit(laplace.jacobian)(network, X))
    dense = sum(J[n].T @ (np.diag(p[n]) - np.outer(p[n], p[n])) @ J[n] for n in range(rows) if n != 2)
    np.testing.assert_allclose(ours, dense, atol=1e-10 * np.abs(dense).max())


def test_without_a_hidden_layer_evidence_and_prediction_are_those_of_bayesian_regression():
    """At the posterior mean, where the model is linear and the approximation exact."""
    data, precision = regression(), jnp.asarray([2.0])
    Phi, y = features(data.X, True), np.asarray(data.y)
    H = Phi.T @ Phi / NOISE + 2.0 * np.eye(3)
    w = np.linalg.solve(H, Phi.T @ y / NOISE)
    learned = lambda n: (n.layers[0].weight, n.layers[0].bias)
    network = eqx.tree_at(learned, network_of(1, ()), (jnp.asarray(w[:2, None]), jnp.asarray(w[2:])))
    likelihood = Gaussian.initial(NOISE, 0, jnp.float64)

    @jax.jit
    def approximate(network):
        curvature = laplace.gauss_newton(network, likelihood, data.X, data.y, data.weight)
        posterior = laplace.approximate(network, precision, curvature)
        fit = jnp.sum(likelihood.log_prob(network(data.X), data.y))
        return posterior, laplace.log_evidence(posterior, network, precision, fit)

    posterior, evidence = approximate(network)
    exact = multivariate_normal(np.zeros(len(y)), Phi @ Phi.T / 2.0 + NOISE * np.eye(len(y))).logpdf(y)
    np.testing.assert_allclose(evidence, exact, rtol=1e-8)
    X = inputs(5, seed=3)
    New = features(X, True)
    expected = np.einsum("nd,de,ne->n", New, np.linalg.inv(H), New)
    variances = jax.jit(lambda posterior, network, X: posterior.variances(network, X))(posterior, network, X)
    np.testing.assert_allclose(variances[:, 0], expected, rtol=1e-7)


def test_training_a_linear_model_finds_the_largest_evidence():
    """Steps on all rows to the optimum of weights, precision and noise: those of the exact evidence, to 1 %."""
    data = regression(40)
    method = method_of(hidden=(), steps=60, inner_steps=100, minibatch=200, optimiser=optax.adam(0.01))
    state, objective = trained(method, data)
    Phi, y = features(data.X, True), np.asarray(data.y)

    def negative(x):
        cov = Phi @ Phi.T * np.exp(-x[0]) + np.exp(x[1]) * np.eye(40)
        return -multivariate_normal(np.zeros(40), cov).logpdf(y)

    best = minimize(negative, np.zeros(2), method="Nelder-Mead")
    np.testing.assert_allclose(np.log(state.precisions[0]), best.x[0], atol=0.05)
    np.testing.assert_allclose(state.likelihood.log_noise, best.x[1], atol=0.02)
    np.testing.assert_allclose(objective[-1], -best.fun, atol=0.05)


def trained(method, data):
    return_state, info = run_steps(method, data, method.init(data, key=KEY), None, np.arange(method.steps))
    return return_state, np.asarray(info.objective)


def test_a_network_is_surer_where_rows_are_and_classes_have_probit_outputs_and_no_noise():
    data = regression(60)
    method = method_of(hidden=(10,), steps=20, inner_steps=100, minibatch=30)
    state, objective = trained(method, data)
    assert objective[-1] > objective[2]
    near, far = (predict(method, state, X).summary() for X in (data.X, 5.0 + data.X))
    assert np.mean((near["mean"] - data.y) ** 2) < 0.3 * np.var(data.y)
    assert np.median(far["var"]) > 2.0 * np.median(near["var"])
    data, method = binary(40), method_of(steps=4, inner_steps=50)
    state, _ = trained(method, data)
    assert isinstance(state.likelihood, Probit)
    assert np.mean(predict(method, state, data.X).log_prob(data.y)) > np.log(0.5)


@pytest.mark.parametrize("steps", [1, 3, 6])
def test_after_every_step_the_approximation_is_that_of_the_states_precisions_and_noise(steps):
    """A stop may end training after any step."""
    data, method = regression(), method_of(steps=6, inner_steps=5, evidence_start=0.0)
    state, _ = run_steps(method, data, method.init(data, key=KEY), None, np.arange(steps))
    curvature = laplace.gauss_newton(state.network, state.likelihood, data.X, data.y, data.weight)
    posterior = laplace.approximate(state.network, state.precisions, curvature)
    for ours, theirs in zip(jax.tree.leaves(state.posterior), jax.tree.leaves(posterior), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)
    assert (steps == 1) == bool(jnp.all(state.precisions == 1.0))
