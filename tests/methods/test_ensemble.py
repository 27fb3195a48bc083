"""Deep ensembles: mixtures of their members, which are trained each for itself, with predicted variances."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, classes, inputs, targets
from scipy.special import logsumexp, softmax
from scipy.stats import norm

from gpbench.methods.bnn.ensemble import Ensemble
from gpbench.train.batches import whole

ADAM = optax.adam(0.01)
FIELDS = {"name": "ensemble", "hidden": (3,), "optimiser": ADAM}
X = inputs(12)
DATA = whole(X, targets(X))
X_NEW = inputs(5, seed=3)

start = eqx.filter_jit(lambda method, data: method.init(data, key=KEY))
predict = eqx.filter_jit(lambda method, state, X: method.predict(state, X, key=KEY))
log_density = jax.jit(lambda predictive, y: predictive.log_prob(y))
loss = eqx.filter_jit(lambda method, parameters, data: method.loss(parameters, data, key=KEY)[0])


def outputs(member, X):
    """A member's network, written out; its scales are 1."""
    first, second = member.network.layers
    hidden = np.maximum(np.asarray(X) @ first.weight + first.bias, 0.0)
    return hidden @ second.weight + second.bias


def each(parameters):
    """The members one by one."""
    count = len(parameters.members.network.layers[0].bias)
    return [jax.tree.map(lambda leaf, k=k: np.asarray(leaf)[k], parameters.members) for k in range(count)]


def started(**fields):
    """A method without output scales, and its first state, with random biases too."""
    method = Ensemble(**{**FIELDS, "scaled": False, "members": 3, **fields})
    state = start(method, DATA)
    rng = np.random.default_rng(0)
    moved = jax.tree.map(lambda leaf: jnp.asarray(leaf + 0.3 * rng.normal(size=leaf.shape)), state.parameters.members)
    return method, eqx.tree_at(lambda s: s.parameters.members, state, moved)


def moments(state, X):
    """Means and variances of all members, each (K, N)."""
    every = np.stack([outputs(member, X) for member in each(state.parameters)])
    return every[..., 0], np.logaddexp(0.0, every[..., 1]) + 1e-6


def test_the_prediction_is_the_gaussian_of_the_mixtures_moments_or_the_mixture():
    method, state = started()
    mean, variance = moments(state, X_NEW)
    centre = mean.mean(0)
    gaussian = predict(method, state, X_NEW)
    np.testing.assert_allclose(gaussian.mean, centre, rtol=1e-12)
    np.testing.assert_allclose(gaussian.var, (variance + mean**2).mean(0) - centre**2, rtol=1e-12)
    y = targets(X_NEW)
    expected = norm.logpdf(y, centre, np.sqrt((variance + mean**2).mean(0) - centre**2))
    np.testing.assert_allclose(log_density(gaussian, y), expected, rtol=1e-12)
    mixture = predict(Ensemble(**FIELDS, scaled=False, members=3, pooling="mixture"), state, X_NEW)
    expected = logsumexp(norm.logpdf(y, mean, np.sqrt(variance)), axis=0) - np.log(3)
    np.testing.assert_allclose(log_density(mixture, y), expected, rtol=1e-12)


@pytest.mark.parametrize("pooling", ["moments", "mixture"])
def test_an_ensemble_of_one_is_that_network(pooling):
    method, state = started(members=1, pooling=pooling)
    (mean,), (variance,) = moments(state, X_NEW)
    p = predict(method, state, X_NEW).summary()
    np.testing.assert_allclose(p["mean"], mean, rtol=1e-12)
    np.testing.assert_allclose(p["var"], variance, rtol=1e-12)


@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_of_classes_are_the_members_average(count):
    y = classes(X) if count == 2 else jnp.arange(12.0) % 3
    method = Ensemble(**FIELDS, scaled=False, members=3)
    state = start(method, whole(X, y, count))
    every = [outputs(member, X_NEW) for member in each(state.parameters)]
    if count == 2:  # probit
        expected = np.mean([np.hstack([norm.cdf(-f), norm.cdf(f)]) for f in every], axis=0)
    else:
        expected = np.mean([softmax(f, axis=1) for f in every], axis=0)
    np.testing.assert_allclose(np.exp(predict(method, state, X_NEW).summary()["log_probs"]), expected, rtol=1e-6)


def test_the_loss_is_the_sum_of_the_members_negative_log_likelihoods_of_rows_that_count():
    method, state = started()
    data = whole(X, targets(X), rows=9)
    mean, variance = moments(state, X[:9])
    expected = -norm.logpdf(np.asarray(data.y)[:9], mean, np.sqrt(variance)).sum()
    np.testing.assert_allclose(loss(method, state.parameters, data), expected, rtol=1e-12)


def test_a_members_gradient_does_not_depend_on_the_others():
    method, state = started(adversarial=0.01)
    gradient = jax.jit(lambda p: jax.grad(lambda p: method.loss(p, DATA, key=KEY)[0])(p).members)
    others = jax.tree.map(
        lambda leaf: jnp.asarray(np.concatenate([leaf[:1], -1.7 * leaf[1:]])), state.parameters.members
    )
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
    predicted = np.sqrt(predict(method, state, data.X).var)
    assert np.corrcoef(predicted, spread)[0, 1] > 0.9
    first, second = moments(state, data.X)[0]
    assert np.abs(first - second).max() > 1e-3


def test_training_stops_after_the_steps_that_a_setting_says():
    method = Ensemble(**FIELDS, members=2, steps=5, search={"stop_after": [3, 5]})
    after = jax.jit(
        lambda state, steps: jax.lax.fori_loop(0, steps, lambda t, s: method.step(s, DATA, key=KEY)[0], state)
    )
    state = start(method, DATA)
    stopped = method.with_settings(state, {"stop_after": 3.0})
    assert jax.tree.structure(stopped) == jax.tree.structure(state)
    assert [bool(method.converged(after(stopped, t))) for t in (2, 3, 5)] == [False, True, True]
    assert not method.converged(after(state, 3)) and method.converged(after(state, 5))
    leaves = [jax.tree.leaves(after(s, t).parameters) for s, t in ((stopped, 5), (state, 3), (state, 5))]
    assert all(np.array_equal(a, b) for a, b in zip(leaves[0], leaves[1]))
    assert not np.array_equal(leaves[0][0], leaves[2][0])
    assert method.settings(stopped)["stop_after"] == 3
