"""Methods with hidden layers explain the targets of their training rows; `dropout`, with all masks written out."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from networks import estimate, features, forward, losses, parameters_of
from problems import KEY, inputs, predict, regression, start_at, train
from scipy.stats import norm

from gpbench.core.networks import normal_network
from gpbench.methods.additive.gam import GAM
from gpbench.methods.base import Batch
from gpbench.methods.bnn.dropout import Dropout
from gpbench.methods.bnn.sgld import SGLD
from gpbench.methods.bnn.vi_g import VIG
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.vi.svi import SVI
from gpbench.train.batches import whole

ADAM = optax.adam(0.02)
DEEP = {"inducing": 5, "optimiser": ADAM}
TRAINED = {
    "dgp": DGP(name="dgp", hidden=(2, 2), hidden_covariance="full", **DEEP),
    "dgp, stochastic EP": DGP(name="dgp", hidden=(2,), energy="sep", batch_size=10, **DEEP),
    "dsdgp": DSDGP(name="dsdgp", hidden=(2,), **DEEP),
    "dropout": Dropout(name="dropout", hidden=(8,), samples=50, optimiser=ADAM),
    "vi_g": VIG(name="vi_g", hidden=(4,), samples=50, target_noise=0.3, optimiser=ADAM),
}


@pytest.mark.parametrize("method", TRAINED.values(), ids=TRAINED)
def test_training_raises_the_objective_and_explains_the_targets(method):
    data = regression(40)
    state, objective = train(method, data, 300 if "dgp" in method.name else 500)
    if not getattr(method, "batch_size", None):
        assert np.mean(objective[-50:]) > np.mean(objective[:50])
    assert np.mean((predict(method, state, data.X).mean - data.y) ** 2) < 0.5 * np.var(data.y)


ESTIMATED = {
    "dgp": (DGP(name="dgp", hidden=(2,), batch_size=5, **DEEP), "tied_energy"),
    "gam": (GAM(name="gam", inducing=4, batch_size=5, optimiser=ADAM, natural_step=None), "bound"),
    "sgld": (SGLD(name="sgld", hidden=(2,), batch_size=5), "log_joint"),
    "svi": (SVI(name="svi", inducing=5, batch_size=5, optimiser=ADAM), "bound"),
}


@pytest.mark.parametrize(("method", "name"), ESTIMATED.values(), ids=ESTIMATED)
def test_the_mean_over_an_epoch_of_minibatches_is_the_objective_of_all_rows(method, name):
    """An identity of functions of the parameters, near their start and further off, and so of their gradients too."""
    data, random = regression(20), np.random.default_rng(0)
    state = method.init(data, key=KEY)
    parameters = state.position if hasattr(state, "position") else state.parameters
    value = jax.jit(lambda parameters, batch: getattr(method, name)(parameters, batch))
    cut = lambda i: Batch(*(a[i] for a in (data.X, data.y, data.index, data.weight)), data.total, data.classes)
    parts = [cut(jnp.asarray(i)) for i in random.permutation(20).reshape(4, 5)]
    for size in (0.0, 0.1):
        moved = jax.tree.map(lambda leaf, size=size: leaf + size * random.normal(size=jnp.shape(leaf)), parameters)
        np.testing.assert_allclose(np.mean([value(moved, part) for part in parts]), value(moved, data), rtol=1e-10)


def dropout(**fields):
    return Dropout(**{"name": "dropout", "optimiser": optax.adam(0.02), **fields})


@pytest.fixture(scope="module")
def tiny():
    """A network with two inputs and two units at a random place, dropout at a rate of 0.3, and four rows."""
    X = inputs(4)
    data, method = whole(X, jnp.sin(X[:, 0])), dropout(hidden=(2,), dropout=0.3, noise_precision=4.0, samples=20_000)
    start = method.init_parameters(data, key=KEY)
    return method, eqx.tree_at(lambda p: p.network, start, normal_network(start.network, key=jax.random.key(1))), data


def every_mask(rate, widths=(2, 2)):
    """Probability (M,) and factors [(M, I)] of every mask of the inputs of layers of these widths."""
    masks = np.array(list(itertools.product((0.0, 1.0), repeat=sum(widths))))
    probability = np.prod(np.where(masks, 1.0 - rate, rate), axis=1)
    return probability, np.split(masks / (1.0 - rate), np.cumsum(widths)[:-1], axis=1)


def test_at_rate_0_without_hidden_layers_it_is_ridge_regression():
    """The gradient vanishes at the closed form, of a convex loss; and the prediction is that line with noise 1/τ."""
    data = regression()
    method = dropout(hidden=(), scaled=False, dropout=0.0, noise_precision=4.0, prior_lengthscale=1.5, samples=3)
    Phi = features(data.X, False)
    w = np.linalg.solve(Phi.T @ Phi + 1.5**2 / 4.0 * np.eye(3), Phi.T @ np.asarray(data.y))
    places = lambda p: (p.network.layers[0].weight, p.network.layers[0].bias)
    start = method.init_parameters(data, key=KEY)
    parameters = eqx.tree_at(places, start, (jnp.asarray(w[:2, None]), jnp.asarray(w[2:])))
    _, gradient, _ = jax.jit(lambda p: method.evaluate(p, None, data, key=KEY))(parameters)
    for leaf in jax.tree.leaves(gradient.network):
        np.testing.assert_allclose(leaf, 0.0, atol=1e-10)
    predictive = predict(method, start_at(method, data, parameters), data.X)
    np.testing.assert_allclose(predictive.mean, Phi @ w, rtol=1e-10)
    np.testing.assert_allclose(predictive.var, 0.25, rtol=1e-10)


def test_a_predictive_density_is_its_mean_over_all_masks(tiny):
    """Of 20,000 samples: within four standard errors of the sum over all 16 masks."""
    method, parameters, data = tiny
    probability, masks = every_mask(0.3)
    density = norm.pdf(np.asarray(data.y), forward(parameters_of(parameters.network), np.asarray(data.X), masks), 0.5)
    mean = probability @ density
    error = np.sqrt((probability @ density**2 - mean**2) / method.samples)
    predictive = predict(method, start_at(method, data, parameters), data.X)
    assert np.all(error < 0.02 * mean)
    log_prob = jax.jit(lambda predictive, y: predictive.log_prob(y))(predictive, data.y)
    assert np.all(np.abs(np.exp(log_prob) - mean) < 4 * error)


def test_a_sample_has_the_same_masks_in_all_rows(tiny):
    method, parameters, data = tiny
    same = np.repeat(data.X[:1], 5, axis=0)
    means = predict(method, start_at(method, data, parameters), same).components.mean
    assert np.ptp(means, axis=1).max() < 1e-12
    assert np.ptp(means, axis=0).min() > 0.1


def test_the_expected_loss_is_that_of_all_masks(tiny):
    """Of 20,000 samples: within four standard errors, of which each is below 1 %."""
    method, parameters, data = tiny
    probability, masks = every_mask(0.3)
    f = forward(parameters_of(parameters.network), np.asarray(data.X), masks)
    fit = np.sum(probability @ norm.logpdf(np.asarray(data.y), f, 0.5))
    size = sum(np.sum(np.square(leaf)) for leaf in jax.tree.leaves(parameters.network))
    mean, error = estimate(losses(method, parameters, data, jax.random.split(KEY, 20_000)))
    assert error < 0.01 * mean
    assert abs(mean - (0.5 * 0.01**2 * 0.7 * size - fit)) < 4 * error


def test_rows_have_masks_of_their_own_in_training(tiny):
    """The loss of one row twice varies as a sum of two independent losses does, not as twice the same: to 5 %."""
    method, parameters, data = tiny
    keys = jax.random.split(KEY, 20_000)
    one = Batch(data.X[:1], data.y[:1], data.index[:1], data.weight[:1], 1)
    two = Batch(*(jnp.repeat(leaf, 2, axis=0) for leaf in (one.X, one.y, one.index, one.weight)), 2)
    single, double = (np.var(losses(method, parameters, batch, keys)) for batch in (one, two))
    np.testing.assert_allclose(double, 2.0 * single, rtol=0.05)


def test_the_loss_is_n_tau_times_the_papers():
    """Where the inputs are 0, and so no mask matters: (1/N) Σ ½ (y - b)² + λ |w|², λ = l² (1 - p) / (2 N τ)."""
    rate, lengthscale, tau, n = 0.3, 0.7, 4.0, 6
    data = whole(jnp.zeros((n, 2)), jnp.sin(jnp.arange(6.0)))
    method = dropout(hidden=(), dropout=rate, prior_lengthscale=lengthscale, noise_precision=tau)
    start = method.init_parameters(data, key=KEY)
    parameters = eqx.tree_at(lambda p: p.network, start, normal_network(start.network, key=jax.random.key(1)))
    ((weight, bias, scale),) = parameters_of(parameters.network)
    decay = lengthscale**2 * (1.0 - rate) / (2.0 * n * tau)
    paper = 0.5 * np.mean((np.asarray(data.y) - bias / scale) ** 2) + decay * (np.sum(weight**2) + np.sum(bias**2))
    (loss,) = losses(method, parameters, data, KEY[None])
    np.testing.assert_allclose(loss, n * tau * paper + 0.5 * n * np.log(2.0 * np.pi / tau), rtol=1e-10)


def test_one_program_serves_several_rates_and_precisions_which_training_leaves_alone(tiny):
    _, _, data = tiny
    methods = [dropout(hidden=(2,), dropout=rate, noise_precision=tau) for rate, tau in ((0.0, 1.0), (0.4, 9.0))]
    states = [method.init(data, key=KEY) for method in methods]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    step = jax.jit(jax.vmap(lambda state: methods[0].step(state, data, key=KEY)))
    moved, info = step(both)
    np.testing.assert_array_equal(moved.parameters.rate, [0.0, 0.4])
    np.testing.assert_array_equal(moved.parameters.noise_precision, [1.0, 9.0])
    assert not np.array_equal(moved.parameters.network.layers[0].weight, both.parameters.network.layers[0].weight)
    alone = [losses(method, state.parameters, data, KEY[None])[0] for method, state in zip(methods, states)]
    np.testing.assert_allclose(-info.objective, alone, rtol=1e-10)
