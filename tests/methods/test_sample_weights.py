"""A row of weight w counts as w rows: objectives, gradients and predictions of weighted and of repeated rows agree."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, classes, inputs, targets

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.methods.base import Batch
from gpbench.train.batches import whole

N = 12
REPEATS = np.array([1, 3, 2, 1, 1, 4, 1, 2, 1, 1, 5, 1])
WEIGHT = jnp.asarray(REPEATS, float)
X, NEW = inputs(N), inputs(5, seed=3)

FIVE = ["method.inducing=5"]
SPARSE = {"svi": FIVE, "svi_natural": FIVE, "tsvgp": FIVE, "vsgpr": FIVE, "pep": FIVE, "gam": ["method.inducing=3"]}
NETWORK = ["method.hidden=[3]", "method.samples=4"]
DECOUPLED = ["mean_basis=8", "covariance_basis=4", "growth=4", "columns=6", "batch_size=null", "rates=[]"]
GRADIENT = {**SPARSE, "gpr": [], "svgp": [*FIVE, "method.batch_size=null", "method.subset_rows=8"], "fitc_gp": FIVE}
GRADIENT |= {"tvsgpr": FIVE, "sgpr_greedy": FIVE, "odsvgp": [f"method.{word}" for word in DECOUPLED]}
GRADIENT |= {"svdgp": [f"method.{word}" for word in DECOUPLED], "alacarte": ["method.frequencies=6"]}
GRADIENT |= {"dsdgp": [*FIVE, "method.hidden=[]", "method.batch_size=null"]}
GRADIENT |= {"vi_g": [*NETWORK, "method.batch_size=null"]}
GRADIENT |= {"vi_kw": [*NETWORK, "method.batch_size=null", "method.initial_std=1e-12"]}
"""Settings of methods with a loss.  The initial q of vi_kw is a point: each row has random numbers of its own."""
CLOSED = {"linear": "regression", "constant": "count", "logistic": "binary"}


def method_of(name, *words):
    return build_method(compose([f"method={name}", *GRADIENT.get(name, []), *words])["method"])


def batches_of(task="regression"):
    """The weighted rows, and the repeated ones."""
    y = {"regression": targets(X), "binary": classes(X), "count": jnp.floor(jnp.exp(targets(X)))}[task]
    count = {"regression": 0, "count": 1, "binary": 2}[task]
    return whole(X, y, count, weight=WEIGHT), whole(X.repeat(REPEATS, axis=0), y.repeat(REPEATS), count)


def require_close(ours, expected):
    np.testing.assert_allclose(ravel_pytree(ours)[0], ravel_pytree(expected)[0], rtol=2e-6, atol=1e-8)


def require_repeats(method, task="regression"):
    """Loss, gradient and a step from the same parameters agree; the bases of svdgp and odsvgp grow by rows."""
    pair = batches_of(task)
    states = [method.init(data, key=KEY) for data in pair]
    states[1] = eqx.tree_at(lambda s: s.parameters, states[1], states[0].parameters)

    @eqx.filter_jit
    def evaluated(state, data):
        value, gradient, _ = method.evaluate(state.parameters, getattr(state.optimiser, "extra", None), data, key=KEY)
        if hasattr(method, "growth"):
            return value, method.trainable(gradient)
        new, info = method.step(state, data, key=KEY)
        summary = method.predict(new, NEW, key=KEY).summary()
        return value, method.trainable(gradient), info.objective, summary

    require_close(*(evaluated(state, data) for state, data in zip(states, pair, strict=True)))


@pytest.mark.parametrize("name", GRADIENT)
def test_loss_gradient_and_predictions_of_weighted_rows_are_those_of_repeated_rows(name):
    require_repeats(method_of(name))


@pytest.mark.parametrize("likelihood, task", [("negative_binomial", "count"), ("probit", "binary")])
def test_so_they_are_under_other_likelihoods(likelihood, task):
    require_repeats(method_of("svi", f"method.likelihood={likelihood}", *FIVE), task)


@pytest.mark.parametrize("name, task", CLOSED.items())
def test_methods_in_closed_form_weigh_rows_too(name, task):
    method = method_of(name)
    summaries = []
    for data in batches_of(task):
        state = method.init(data, key=KEY)
        for _ in range(3):
            state, info = method.step(state, data, key=KEY)
        summaries.append((info.objective, method.predict(state, NEW, key=KEY).arrays(jnp.ones(5))))
    require_close(*summaries)


def test_the_joint_density_of_samples_of_a_network_weighs_rows():
    method = method_of("hmc", *NETWORK)
    weighted, repeated = batches_of()
    position = method.initial_position(weighted, key=KEY)
    require_close(method.log_joint(position, weighted), method.log_joint(position, repeated))


def test_a_sum_over_a_minibatch_of_weighted_rows_is_unbiased():
    """The scale is that of the number of rows: all pairs of rows together give the sum over all rows."""
    terms, y = jnp.arange(4.0), jnp.zeros(4)
    weight = jnp.array([0.5, 3.0, 2.0, 1.0])
    estimates = []
    for i in range(4):
        rows = jnp.array([i, (i + 1) % 4])
        estimates.append(Batch(jnp.zeros((2, 1)), y[rows], rows, weight[rows], 4).sum(terms[rows]))
    assert np.mean(estimates) == pytest.approx(float(weight @ terms))
    padded = Batch(jnp.zeros((3, 1)), y[:3], jnp.arange(3), weight[:3] * jnp.array([1.0, 1.0, 0.0]), 4)
    assert padded.sum(terms[:3]) == pytest.approx(4 / 2 * float(weight[:2] @ terms[:2]))
