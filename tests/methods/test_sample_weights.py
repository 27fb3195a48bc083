"""A row of weight w counts as w rows: objectives, gradients and predictions of weighted and of repeated rows agree."""

import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import KEY, classes, inputs, targets
from sklearn.ensemble import AdaBoostClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.estimators import Classifier, Regressor
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


ROWS = np.random.default_rng(0).normal(size=(60, 2))
F = np.sin(2 * ROWS[:, 0]) + 0.5 * ROWS[:, 1]


WEIGHTS = np.random.default_rng(2).integers(0, 4, size=60)


@pytest.mark.parametrize("method", ["linear", "gpr"])
def test_a_weight_is_a_number_of_repeats_through_scaling_training_and_prediction(method):
    options = {"method.steps": 3} | ({"method.lengthscale_start": "root_median"} if method == "gpr" else {})
    weighted = Regressor(method, options=options, weights="repeats").fit(ROWS, F, sample_weight=WEIGHTS)
    repeated = Regressor(method, options=options).fit(ROWS.repeat(WEIGHTS, axis=0), F.repeat(WEIGHTS))
    assert weighted._y_scaler.scale == pytest.approx(float(repeated._y_scaler.scale), rel=1e-12)
    np.testing.assert_allclose(weighted._x_scaler.shift, repeated._x_scaler.shift, rtol=1e-12)
    if method == "linear":
        pairs = zip(weighted.predict(ROWS, return_std=True), repeated.predict(ROWS, return_std=True), strict=True)
        for ours, expected in pairs:
            np.testing.assert_allclose(ours, expected, rtol=1e-7)


@pytest.mark.parametrize("method", ["linear", "gpr", "svi"])
def test_weights_are_precisions_relative_to_their_mean(method):
    """Whatever their scale; equal ones, which as repeats make the noise smaller, change nothing."""
    fit = lambda w, **kind: Regressor(method, options={"method.steps": 20}, **kind).fit(ROWS, F, sample_weight=w)
    spread = lambda *args, **kind: fit(*args, **kind).predict(ROWS, return_std=True)
    plain, equal = spread(None), spread(np.full(60, 10.0))
    np.testing.assert_array_equal(plain, equal)
    np.testing.assert_allclose(spread(WEIGHTS), spread(0.25 * WEIGHTS), rtol=1e-12)
    with pytest.warns(UserWarning, match="^sample_weight has the mean 10, and repeats count as that many times"):
        repeats = spread(np.full(60, 10.0), weights="repeats")
    assert np.abs(repeats[1] / plain[1] - 1).max() > 1e-3


def test_repeats_keep_scikit_learns_equivalence():
    estimator = Regressor("linear", weights="repeats")
    named = [one for _, one in estimator_checks_generator(estimator) if "equivalence_on_dense" in one.func.__name__]
    assert named
    for check in named:
        check(estimator)


def test_precisions_are_those_of_weighted_least_squares():
    counted = WEIGHTS > 0
    w, rows = WEIGHTS[counted] / WEIGHTS[counted].mean(), np.c_[ROWS[counted], np.ones(counted.sum())]
    model = Regressor("linear", options={"method.ridge": 0.0}).fit(ROWS, F, sample_weight=WEIGHTS)
    gram = rows.T @ (w[:, None] * rows)
    coefficients = np.linalg.solve(gram, rows.T @ (w * F[counted]))
    s2 = np.sum(w * (F[counted] - rows @ coefficients) ** 2) / (len(w) - rows.shape[1])
    new = np.c_[ROWS, np.ones(60)]
    mean, std = model.predict(ROWS, return_std=True)
    np.testing.assert_allclose(mean, new @ coefficients, rtol=1e-6)
    np.testing.assert_allclose(std**2, s2 * (1 + np.sum(new @ np.linalg.inv(gram) * new, axis=1)), rtol=1e-6)


def test_a_method_without_weights_takes_whole_numbers_as_repeated_rows():
    options = {"method.inducing": 3, "method.steps": 2}
    weighted = Classifier(options=options).fit(ROWS, F > 0, sample_weight=WEIGHTS)
    repeated = Classifier(options=options).fit(ROWS.repeat(WEIGHTS, axis=0), F.repeat(WEIGHTS) > 0)
    np.testing.assert_array_equal(weighted.predict_proba(ROWS), repeated.predict_proba(ROWS))


def test_unfit_weights_are_one_line_for_boosting_too(one_line):
    few = "sample_weight sums to 1, and a weight w is w rows, so that fewer than two are left: multiply"
    for weight, line in (
        ([1.0, 2.0], "sample_weight has the shape (2,): give one weight for each of the 60 rows"),
        (np.full(60, "a"), "sample_weight must be numbers, one for each row"),
        ([1.0] * 59 + [-1.0], "sample_weight[59] is -1: weights must be finite, and at least 0"),
        ([1.0] * 59 + [np.nan], "sample_weight[59] is nan: weights must be finite, and at least 0"),
        (np.zeros(60), "sample_weight is zero in all rows but 0: at least two rows must count"),
        (np.full(60, 1 / 60), few),
        (np.full(60, 1.5), "method sep takes whole numbers alone as sample_weight, as repeats: use one of alacarte"),
    ):
        with one_line(ValueError, match="^" + re.escape(line)):
            Classifier(weights="repeats").fit(ROWS, F > 0, sample_weight=weight)
    line = r"^sample_weight sums to 1, .*AdaBoostClassifier gives weights that sum to 1: use BaggingClassifier$"
    for method in ("sep", "logistic"):
        with pytest.raises(ValueError, match=line):
            AdaBoostClassifier(Classifier(method, weights="repeats")).fit(ROWS, F > 0)
    with pytest.raises(ValueError, match=r"^repeated rows need "), pytest.warns(UserWarning):
        Classifier(weights="repeats").fit(ROWS, F > 0, sample_weight=np.full(60, 1e12))
    with pytest.raises(ValueError, match=r"^weights='equal': give 'precision' or 'repeats'"):
        Classifier(weights="equal").fit(ROWS, F > 0)
