"""Predictive distributions: they sum to one, their cdf is their integral, and mixtures are what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate
from scipy.stats import laplace, norm, t

from gpbench.core.predictive import (
    BernoulliPredictive,
    CategoricalPredictive,
    GaussianPredictive,
    LaplacePredictive,
    MixturePredictive,
    StudentTPredictive,
    numerical,
)
from gpbench.scored import ENDS

MEAN, LATENT = jnp.array([0.3, -1.0, 2.0]), jnp.array([0.5, 1e-4, 3.0])
DENSITIES = {
    "gaussian": GaussianPredictive(MEAN, LATENT + 0.2),
    "laplace": LaplacePredictive(MEAN, LATENT, jnp.array(0.2)),
    "student_t": StudentTPredictive(MEAN, LATENT, jnp.array(0.4), jnp.array(5.0)),
}
shifted = jax.vmap(lambda shift, scale, df: StudentTPredictive(MEAN + shift, LATENT + shift, scale, df))
PARTS = shifted(jnp.array([0.0, 1.0]), jnp.array([0.3, 0.5]), jnp.array([5.0, 9.0]))
DENSITIES["mixture"] = MixturePredictive(PARTS, jnp.log(jnp.array([0.3, 0.7])))


# Compiled whole: operation by operation every shape is compiled for each of them
arrays_of = jax.jit(lambda predictive, y: predictive.arrays(y))
intervals_of = jax.jit(lambda predictive, y: predictive.intervals(y))
log_prob_of = jax.jit(lambda predictive, y: predictive.log_prob(y))
cdf_of = jax.jit(lambda predictive, y: predictive.cdf(y))
cdf_of_all = jax.jit(lambda predictive, y: jax.vmap(predictive.cdf)(y))
tails_of = jax.jit(lambda predictive, *given: numerical.tails(predictive.cdf, *given))


@pytest.fixture(scope="module", params=DENSITIES)
def grid(request):
    """A density with targets in rising order (Q, N), far out and dense in the middle, and its arrays there."""
    predictive = DENSITIES[request.param]
    targets = predictive.mean + 0.5 * jnp.sinh(jnp.linspace(-9.0, 9.0, 8001))[:, None]
    return predictive, np.asarray(targets), jax.jit(jax.vmap(predictive.pointwise))(targets)


def test_a_density_integrates_to_one_and_has_its_mean_and_variance(grid):
    predictive, targets, arrays = grid
    density = np.exp(arrays["log_prob"])
    np.testing.assert_allclose(np.trapezoid(density, targets, axis=0), 1.0, rtol=1e-4)
    np.testing.assert_allclose(np.trapezoid(targets * density, targets, axis=0), predictive.mean, atol=1e-4)
    second = np.trapezoid((targets - np.asarray(predictive.mean)) ** 2 * density, targets, axis=0)
    np.testing.assert_allclose(second, predictive.var, rtol=1e-3)


def test_the_cdf_is_the_integral_of_the_density(grid):
    _, targets, arrays = grid
    density, cdf = np.exp(arrays["log_prob"]), np.asarray(arrays["cdf"])
    parts = 0.5 * (density[1:] + density[:-1]) * np.diff(targets, axis=0)
    np.testing.assert_allclose(np.diff(cdf, axis=0), parts, atol=2e-6)
    np.testing.assert_allclose(cdf[[0, -1]], [[0, 0, 0], [1, 1, 1]], atol=1e-6)


def test_the_crps_is_the_squared_distance_of_the_cdf_from_a_step_and_the_interval_its_quantiles(grid):
    predictive, targets, pointwise = grid
    cdf = np.asarray(pointwise["cdf"])
    for k in (300, 3500, 4100, 6000):  # about -2,000, -1, 0.1 and 22 from the mean
        below = np.trapezoid(cdf[: k + 1] ** 2, targets[: k + 1], axis=0)
        above = np.trapezoid((1.0 - cdf[k:]) ** 2, targets[k:], axis=0)
        ours = arrays_of(predictive, jnp.asarray(targets[k]))
        np.testing.assert_allclose(ours["crps"], below + above, rtol=1e-3)
        for first in (k - 200, k + 200):  # the part above a threshold, on either side of the target
            threshold, late = targets[first, 1], targets[first:]
            values = cdf_of_all(predictive, jnp.asarray(np.maximum(late, threshold)))
            squares = (np.asarray(values) - (late >= targets[k])) ** 2
            part = np.trapezoid(squares[:, 1], late[:, 1])
            tails = tails_of(predictive, jnp.asarray(targets[k]), threshold, ours)
            np.testing.assert_allclose(tails["tail_crps"][1], part, rtol=5e-3, atol=1e-9)
            assert tails["above"][1] == (targets[k, 1] > threshold)
            np.testing.assert_allclose(np.exp(tails["log_below"][1]), values[0, 1], rtol=1e-9, atol=1e-300)
    for name, p in ENDS.items():
        np.testing.assert_allclose(cdf_of(predictive, ours[name]), p, rtol=1e-9)


@pytest.mark.parametrize("y", [-20.0, 0.0, 0.4, 3.0])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 2e-5)])
def test_numerical_intervals_of_a_gaussian_are_those_in_closed_form(y, dtype, tolerance):
    gaussian = jax.tree.map(lambda a: a.astype(dtype), DENSITIES["gaussian"])
    at = jnp.full(3, y, dtype)
    numbers = jax.jit(lambda g, at: numerical.intervals(g.cdf, g.mean, g.var, at))(gaussian, at)
    for name, value in intervals_of(gaussian, at).items():
        assert value.dtype == numbers[name].dtype == dtype
        np.testing.assert_allclose(numbers[name], value, rtol=tolerance, atol=tolerance)


def test_the_crps_of_laplace_noise_has_its_closed_form_and_quantiles_exist_where_the_variance_does_not():
    """|d| + b e^(-|d|/b) - 3b/4 (Jordan, Krüger and Lerch 2019, appendix A)."""
    y, b = np.array([-3.0, -0.2, 0.0, 0.6, 20.0]), 0.7
    ours = intervals_of(LaplacePredictive(jnp.zeros(5), jnp.full(5, 1e-12), jnp.array(2 * b**2)), jnp.asarray(y))
    np.testing.assert_allclose(ours["crps"], np.abs(y) + b * np.exp(-np.abs(y) / b) - 0.75 * b, rtol=1e-4)
    np.testing.assert_allclose(ours["high95"], laplace.ppf(0.975, scale=b), rtol=1e-6)
    wide = StudentTPredictive(jnp.zeros(1), jnp.array([1e-9]), jnp.array(2.0), jnp.array(1.5))
    assert not np.isfinite(wide.var).any()
    np.testing.assert_allclose(intervals_of(wide, jnp.zeros(1))["high95"], t.ppf(0.975, 1.5, scale=2.0), rtol=1e-6)


def test_laplace_noise_has_the_convolution_in_closed_form_and_stays_finite_far_from_its_rows():
    x = np.linspace(-9.0, 9.0, 50_001)
    weight = norm.pdf(x) * (x[1] - x[0])
    y, b = np.array([0.4, -1.3, -2.0]), np.sqrt(0.1)
    f = np.asarray(MEAN)[:, None] + np.sqrt(np.asarray(LATENT))[:, None] * x
    ours = DENSITIES["laplace"]
    density = np.exp(log_prob_of(ours, jnp.asarray(y)))
    np.testing.assert_allclose(density, laplace.pdf(y[:, None], f, b) @ weight, rtol=1e-6)
    np.testing.assert_allclose(cdf_of(ours, jnp.asarray(y)), laplace.cdf(y[:, None], f, b) @ weight, rtol=1e-6)
    far = LaplacePredictive(jnp.zeros(4), jnp.array([1e-9, 1.0, 1e4, 1.0]), jnp.array(1e-3))
    y = jnp.array([50.0, -50.0, 50.0, 0.0])
    log_prob = log_prob_of(far, y)
    assert np.isfinite(log_prob).all()
    np.testing.assert_allclose(log_prob[2], norm.logpdf(50.0, 0.0, 100.0), rtol=1e-6)  # the noise is nothing beside f
    b = np.sqrt(0.5 * 1e-3)
    np.testing.assert_allclose(log_prob[0], -50.0 / b - np.log(2 * b), rtol=1e-6)  # and f beside it
    np.testing.assert_allclose(cdf_of(far, y), [1.0, 0.0, norm.cdf(0.5), 0.5], atol=1e-6)


@pytest.mark.parametrize("name", DENSITIES)
def test_densities_are_finite_at_40_in_single_precision_too(name):
    single = jax.tree.map(lambda a: a.astype("float32"), DENSITIES[name])
    for y in (-40.0, 40.0):
        arrays = arrays_of(single, jnp.full(3, y, "float32"))
        assert {a.dtype for a in arrays.values()} == {jnp.dtype("float32")}
        assert all(np.isfinite(a).all() for a in arrays.values())
    at = jnp.array([0.4, -1.02, 4.0])
    np.testing.assert_allclose(log_prob_of(single, at.astype("float32")), log_prob_of(DENSITIES[name], at), atol=1e-3)


@pytest.mark.parametrize("count", [1, 4, 5])
@pytest.mark.parametrize("distance", [0.1, 1e3], ids=["near", "far"])
def test_a_mixture_of_gaussians_has_the_score_of_all_pairs_and_the_quantiles_of_its_cdf(count, distance):
    rng = np.random.default_rng(0)
    mean, var = distance * rng.normal(size=(count, 3)), np.exp(rng.normal(size=(count, 3)))
    weights, y = rng.dirichlet(np.ones(count)), distance * rng.normal(size=3)
    parts = jax.vmap(GaussianPredictive)(jnp.asarray(mean), jnp.asarray(var))
    mixture = MixturePredictive(parts, jnp.log(jnp.asarray(weights)))
    arrays = arrays_of(mixture, jnp.asarray(y))
    # Σ w A(y - m, v) - ½ ΣΣ w w' A(m - m', v + v') with A(d, v) = E|N(d, v)| (Grimit et al. 2006)
    expected = lambda d, v: 2 * np.sqrt(v) * norm.pdf(d / np.sqrt(v)) + d * (2 * norm.cdf(d / np.sqrt(v)) - 1)
    pairs = expected(mean[:, None] - mean, var[:, None] + var)
    crps = weights @ expected(y - mean, var) - 0.5 * np.einsum("s,t,stn->n", weights, weights, pairs)
    np.testing.assert_allclose(arrays["crps"], crps, rtol=1e-11)
    for name, p in ENDS.items():
        np.testing.assert_allclose(weights @ norm.cdf(arrays[name], mean, np.sqrt(var)), p, rtol=1e-9)


def test_a_mixture_of_gaussians_is_what_it_is_by_hand():
    mean, var = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([[1.0, 0.5], [4.0, 2.0]])
    weights = np.array([0.25, 0.75])
    parts = jax.vmap(GaussianPredictive)(jnp.asarray(mean), jnp.asarray(var))
    mixture = MixturePredictive(parts, jnp.log(jnp.array([1.0, 3.0])))
    y = jnp.array([0.5, -1.0])
    by_hand = {
        "log_prob": np.log(weights @ norm.pdf(y, mean, np.sqrt(var))),
        "cdf": weights @ norm.cdf(y, mean, np.sqrt(var)),
        "mean": [1.5, 1.0],
        "var": [0.25 * 1 + 0.75 * 4 + 0.25 * 1.5**2 + 0.75 * 0.5**2, 0.25 * 0.5 + 0.75 * 2],
    }
    arrays = arrays_of(mixture, y)
    assert set(arrays) == {*by_hand, "crps", *ENDS} and set(mixture.summary()) == {"mean", "var"}
    for name, expected in by_hand.items():
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-9)
    np.testing.assert_array_equal(mixture.mean, arrays["mean"])
    np.testing.assert_array_equal(cdf_of(mixture, y), arrays["cdf"])


def test_classes_have_the_log_prob_of_their_column_and_a_mixture_averages_probabilities():
    log_p = jnp.log(jnp.array([[0.2, 0.8], [0.6, 0.4]]))
    y = jnp.array([1.0, -1.0])
    for predictive in (BernoulliPredictive(log_p[:, 0], log_p[:, 1]), CategoricalPredictive(log_p)):
        np.testing.assert_allclose(predictive.log_prob(y), np.log([0.8, 0.6]), rtol=1e-12)
        np.testing.assert_allclose(predictive.summary()["log_probs"], log_p, rtol=1e-12)
    three = CategoricalPredictive(jnp.zeros((2, 3)))
    np.testing.assert_allclose(three.log_prob(jnp.array([0.0, 2.0])), -np.log(3.0), rtol=1e-12)
    logits = jnp.array([[[0.0, 1.0, 2.0]], [[3.0, 0.0, -1.0]]])
    mixture = MixturePredictive(jax.vmap(CategoricalPredictive)(logits), jnp.zeros(2))
    p = np.asarray(jax.nn.softmax(logits)).mean(axis=0)
    np.testing.assert_allclose(np.exp(mixture.log_probs), p, rtol=1e-12)
    np.testing.assert_allclose(np.exp(mixture.log_prob(jnp.array([2.0]))), p[:, 2], rtol=1e-12)
    assert set(mixture.arrays(jnp.array([2.0]))) == {"log_prob", "log_probs"}


@pytest.mark.parametrize("ratio", [0.3, 4.9, 5.1, 100.0, 1e4])
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-12), ("float32", 1e-5)])
def test_the_normal_laplace_density_is_exact_however_small_its_noise(ratio, dtype, tolerance):
    """Against quadrature over the noise, whose scale is 1/ratio of the latent standard deviation."""
    y, scale = np.array([-3.0, -0.7, 0.0, 2.5]), 1.0 / ratio

    def density(y):
        joint = lambda e: laplace.pdf(e, scale=scale) * norm.pdf(y - e)
        sides = ((-60 * scale, 0), (0, 60 * scale))
        return sum(integrate.quad(joint, *ends, epsabs=0, epsrel=1e-12)[0] for ends in sides)

    ours = LaplacePredictive(jnp.zeros(4, dtype), jnp.ones(4, dtype), jnp.asarray(2 * scale**2, dtype))
    expected = np.log([density(x) for x in y])
    np.testing.assert_allclose(log_prob_of(ours, jnp.asarray(y, dtype)), expected, atol=tolerance)
