"""`mile` against quadrature on a linear model, its mixture and its log joint against NumPy, and divergences."""

import sys
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from networks import forward, parameters_of
from problems import KEY, binary, predict, regression, train
from scipy.special import logsumexp
from scipy.stats import norm

from gpbench.core.samplers import Chain, Samples, Scales
from gpbench.errors import ConfigError
from gpbench.methods.bnn.mile import MILE, MileState
from gpbench.train.batches import whole

ADAM = optax.adam(0.01)
FLOOR, STEPS, CHAINS = 0.01, 4000, 4
FIELDS = {"name": "mile", "optimiser": ADAM, "noise_floor": FLOOR, "minibatch": 10, "start_steps": 200}


@pytest.fixture(scope="module")
def line():
    """Rows of one input, whose noise grows with it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, 20)
    return whole(jnp.asarray(x[:, None]), jnp.asarray(0.8 * x - 0.3 + np.exp(0.5 * x - 1.0) * rng.normal(size=20)))


@pytest.fixture(scope="module")
def linear():
    """A network without a hidden layer."""
    fields = {"hidden": (), "members": CHAINS, "steps": STEPS, "samples": STEPS, "tuning": 1000}
    return MILE(**FIELDS, **fields, energy_variance=0.002)


@pytest.fixture(scope="module")
def run(linear, line):
    """The last state, and the objective of every step."""
    return train(linear, line, STEPS)


SMALL = MILE(**FIELDS, hidden=(4, 3), members=2, steps=6, samples=3)
"""A network of two hidden layers."""


def draws_of(state):
    """Kept positions (S, C, P) of linear networks: slopes of mean and log noise, then their values at 0."""
    network = state.samples.in_order()[0].network
    return np.concatenate([np.asarray(leaf).reshape(STEPS, CHAINS, -1) for leaf in jax.tree.leaves(network)], axis=-1)


def exact_moments(data):
    """Posterior mean and second moments: the mean's two weights in closed form, summed over a grid of the others'."""
    F = np.hstack([np.asarray(data.X), np.ones((20, 1))]) / np.sqrt(2.0)
    y, axis = np.asarray(data.y), np.linspace(-6.0, 6.0, 121)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    noise = FLOOR + np.exp(2.0 * grid @ F.T)
    # posterior N(A⁻¹ Fᵀ y / s, A⁻¹) with A = I + Fᵀ F / s, and the evidence by the matrix determinant lemma
    covariance = np.linalg.inv(np.eye(2) + np.einsum("ni,gn,nj->gij", F, 1.0 / noise, F))
    projected = np.einsum("ni,gn->gi", F, y / noise)
    centre = np.einsum("gij,gj->gi", covariance, projected)
    log_evidence = 0.5 * (np.linalg.slogdet(covariance)[1] + np.sum(projected * centre, 1))
    log_evidence -= 0.5 * np.sum(np.log(noise) + y**2 / noise, axis=1)
    logs = log_evidence - 0.5 * np.sum(grid**2, axis=1)
    weights = np.exp(logs - logsumexp(logs))
    every = np.hstack([centre, grid])[:, [0, 2, 1, 3]]  # slope of the mean, of the log noise, their values at 0
    second = np.einsum("g,gi,gj->ij", weights, every, every)
    second[np.ix_([0, 2], [0, 2])] += np.einsum("g,gij->ij", weights, covariance)
    return weights @ every, second


def test_the_samples_have_the_posterior_mean_and_covariance_of_a_linear_model(line, run):
    """First and second moments within 4 standard errors, from the effective sample sizes."""
    from blackjax.diagnostics import effective_sample_size

    draws = draws_of(run[0])
    mean, second = exact_moments(line)
    rows, columns = np.triu_indices(4)
    centred = draws - mean
    quantities = np.concatenate([centred, centred[..., rows] * centred[..., columns]], axis=-1)
    expected = np.concatenate([np.zeros(4), (second - np.outer(mean, mean))[rows, columns]])
    size = np.asarray(jax.jit(partial(effective_sample_size, chain_axis=1, sample_axis=0))(quantities))
    error = quantities.std((0, 1)) / np.sqrt(size)
    assert (size > 300).all(), size
    gap = quantities.mean((0, 1)) - expected
    assert (np.abs(gap) < 4 * error).all(), gap / error


def test_the_diagnostics_of_chains_that_agree_and_the_energy_error_that_was_asked_for(linear, run):
    """Steps that diverge have no energy error: had half of them, it would be the mean square of the others."""
    diagnostics = jax.jit(linear.diagnostics)
    scalars = diagnostics(run[0])
    assert 0.99 < scalars["rhat"] < 1.03 and scalars["ess"] > 300 and scalars["divergences"] == 0
    assert 0.002 / 4 < scalars["energy_variance"] < 0.002 * 4
    half = eqx.tree_at(lambda s: s.divergences, run[0], jnp.full_like(run[0].divergences, STEPS // 2))
    np.testing.assert_allclose(diagnostics(half)["energy_variance"], 2 * scalars["energy_variance"])


def log_densities(network, data):
    """log p(y|x) of every network in regression, with the floor of the noise variance."""
    f = forward(parameters_of(network), np.asarray(data.X), output=slice(None))
    return norm.logpdf(np.asarray(data.y), f[..., 0], np.sqrt(FLOOR + np.exp(2.0 * f[..., 1])))


def test_a_prediction_is_the_mixture_of_the_kept_networks_of_all_chains(linear, line, run):
    network = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), run[0].samples.values[0].network)
    expected = logsumexp(log_densities(network, line), axis=0) - np.log(STEPS * CHAINS)
    np.testing.assert_allclose(predict(linear, run[0], line.X).log_prob(line.y), expected, rtol=1e-9)


def test_of_two_classes_it_is_the_mixture_of_probabilities():
    data = binary(8)
    members = jax.jit(jax.vmap(lambda key: SMALL.initial_member(data, key=key)))(jax.random.split(KEY, 6))
    kept = jax.tree.map(lambda leaf: leaf.reshape(3, 2, *leaf.shape[1:]), members)
    samples = Samples((kept, jnp.zeros((3, 2, 6))), jnp.asarray(3))
    zeros = jnp.zeros(2)
    chain = Chain(jax.tree.map(lambda leaf: leaf[0], kept), zeros[:, None], zeros, zeros[:, None])
    state = MileState(chain, Scales(zeros, zeros), zeros, zeros.astype(int), samples, jnp.asarray(6))
    logs = norm.logcdf(np.asarray(data.y) * forward(parameters_of(members.network), np.asarray(data.X)))
    expected = logsumexp(logs, axis=0) - np.log(6)
    np.testing.assert_allclose(predict(SMALL, state, data.X).log_prob(data.y), expected, rtol=1e-6)


def test_chains_with_a_step_size_of_0_stay_the_ensemble_that_they_start_from(linear, line):
    start = linear.init(line, key=KEY)
    start = eqx.tree_at(lambda s: s.scales.step_size, start, jnp.zeros(CHAINS))
    state, objective = train(linear, line, STEPS, state=start)
    np.testing.assert_allclose(objective, np.mean(start.chain.log_density), rtol=1e-12)
    assert (state.energy == 0.0).all() and state.samples.count == STEPS
    expected = logsumexp(log_densities(start.position.network, line), axis=0) - np.log(CHAINS)
    np.testing.assert_allclose(predict(linear, state, line.X).log_prob(line.y), expected, rtol=1e-9)


def test_the_log_joint_is_that_of_scipy_and_training_raises_it():
    data = regression(25)

    @jax.jit
    def members():
        member = SMALL.initial_member(data, key=KEY)
        trained = SMALL.pretrain(member, data, key=KEY)
        return trained, SMALL.log_joint(member, data), SMALL.log_joint(trained, data)

    trained, before, after = members()
    network = jax.tree.map(lambda leaf: leaf[None], trained.network)
    expected = log_densities(network, data).sum()
    expected += sum(norm.logpdf(leaf).sum() for leaf in jax.tree.leaves(network))
    np.testing.assert_allclose(after, expected)
    assert after > before + 20.0


def test_a_chain_that_always_diverges_makes_the_run_a_diverged_one(linear, line, run):
    """With an absurd step size in one of the chains; the state itself stays finite."""
    start = linear.init(line, key=KEY)
    assert linear.diagnose(start) == "" and linear.diagnose(run[0]) == ""
    start = eqx.tree_at(lambda s: s.scales.step_size, start, start.scales.step_size.at[1].set(1e200))
    state, objective = train(linear, line, STEPS, state=start)
    assert np.isfinite(objective[:-1]).all() and np.isnan(objective[-1])
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state.position))
    of_all = f"{STEPS} of {CHAINS * STEPS} of all chains"
    assert linear.diagnose(state) == f"every transition of a chain diverged ({of_all})"


def test_the_start_of_another_split_of_that_shape_is_not_traced_again(linear, line, monkeypatch):
    first = linear.init(line, key=KEY)  # compiled programs can be forgotten between tests
    monkeypatch.setattr(MILE, "log_joint", None)
    state = linear.init(eqx.tree_at(lambda d: d.y, line, -line.y), key=jax.random.key(5))
    assert (state.scales.step_size != first.scales.step_size).all()


def test_a_missing_blackjax_is_one_line(line, monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ConfigError, match=r"^method=mile needs blackjax: pip install .* in the checkout$"):
        SMALL.init(line, key=KEY)
