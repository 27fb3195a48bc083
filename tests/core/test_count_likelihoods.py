"""Counts and noise that varies: densities, expectations, intervals and scores against SciPy and dense sums."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from gpbench import metrics
from gpbench.core.likelihoods import likelihood_spec
from gpbench.core.predictive import CountPredictive, VaryingNoisePredictive
from gpbench.core.predictive.counts import log_count
from gpbench.scored import ENDS

SHAPES = [None, 0.5, 8.0]
COUNTS = {-2.0: (0, 3), 1.0: (2, 30), 3.5: (10, 60)}
ROWS = np.array([(m, v, y) for m, counts in COUNTS.items() for v in (1e-4, 0.5) for y in counts])


def of(mu, shape):
    """SciPy's distribution of counts with this mean."""
    return stats.poisson(mu) if shape is None else stats.nbinom(shape, shape / (shape + mu))


def likelihood_of(shape):
    """The likelihood with this shape, at a rate of e^f."""
    name = "poisson" if shape is None else {"negative_binomial": {"start": shape}}
    return likelihood_spec(name).initial("count", 1, noise=0.1, dtype="float64")


def of_rows(shape):
    """The predictive distribution of `ROWS`, and their counts."""
    mean, variance, y = jnp.asarray(ROWS.T)
    return CountPredictive(mean, variance, None if shape is None else jnp.asarray(shape)), y


@pytest.mark.parametrize("shape", [0.05, 1e3, 1e6, 1e8])
def test_log_probabilities_of_float32_hold_their_precision_far_from_the_count_at_any_shape(shape):
    rows = [(-4.0, 0), (-1.75, 1), (-0.5, 1), (0, 3), (1, 7), (3, 2), (5, 40)]
    f, y, shape = (jnp.asarray(x, "float32") for x in (*np.array(rows).T, shape))
    exact = jax.jit(log_count)(*(x.astype("float64") for x in (f, y, shape)))
    np.testing.assert_allclose(jax.jit(log_count)(f, y, shape), exact, atol=5e-5)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-9), ("float32", 2e-4)])
@pytest.mark.parametrize("shape", [None, 0.1, 7.0, 1e3, 1e6])
def test_log_probabilities_are_scipys_in_either_precision_up_to_counts_of_100_000(shape, dtype, tolerance):
    y = np.array([0, 1, 7, 100, 1e5])
    f = np.log(np.maximum(y, 0.5) * np.array([[0.99], [1.0], [1.003]])).astype(dtype)
    ours = jax.jit(log_count)(f, y.astype(dtype), None if shape is None else jnp.asarray(shape, dtype))
    gap = np.abs(ours - of(np.exp(f.astype(float)), shape).logpmf(y))
    assert gap[:, :4].max() < tolerance
    assert gap.max() < 10 * tolerance  # e^f of a float32 has an error of 5e-7, and the count of 1e5 multiplies it


def moments_over(row, g):
    """E g(f) over a dense grid of f ~ N(mean, variance)."""
    x = np.linspace(-12.0, 12.0, 4001)
    return stats.norm.pdf(x) * (x[1] - x[0]) @ g(row[0] + np.sqrt(row[1]) * x)


@pytest.mark.parametrize("shape", SHAPES)
def test_expectations_and_normalisers_are_those_of_dense_sums(shape):
    likelihood = likelihood_of(shape)
    mean, variance, y = jnp.asarray(ROWS.T)
    expected = [moments_over(row, lambda f, row=row: of(np.exp(f), shape).logpmf(row[2])) for row in ROWS]
    ours = jax.jit(lambda *args: likelihood.expected_log_prob(*args))(mean, variance, y)
    np.testing.assert_allclose(ours, expected, rtol=1e-7)
    for alpha in (1.0, 0.5):
        x = np.linspace(-12.0, 12.0, 20_001)
        weight = stats.norm.logpdf(x) + np.log(x[1] - x[0])
        powers = [alpha * of(np.exp(m + np.sqrt(v) * x), shape).logpmf(t) for m, v, t in ROWS]
        ours = jax.jit(lambda *args, a=alpha: likelihood.log_normaliser(*args, alpha=a))(mean, variance, y)
        np.testing.assert_allclose(ours, [logsumexp(weight + power) for power in powers], atol=5e-6)


def test_slopes_of_normalisers_are_those_of_differences():
    likelihood, (mean, variance, y) = likelihood_of(8.0), jnp.asarray(ROWS.T)
    value = jax.jit(lambda mean: likelihood.log_normaliser(mean, variance, y))
    slope = jax.jit(jax.grad(lambda mean: jnp.sum(likelihood.log_normaliser(mean, variance, y))))(mean)
    h = 1e-5
    np.testing.assert_allclose(slope, (value(mean + h) - value(mean - h)) / (2 * h), rtol=1e-5, atol=1e-6)


def dense_cdf(row, shape, largest=2500):
    """P(target ≤ k) for k = 0 .. largest - 1."""
    x = np.linspace(-8.0, 8.0, 401)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    mu = np.exp(row[0] + np.sqrt(row[1]) * x)
    return weight @ of(mu[:, None], shape).cdf(np.arange(largest))


@pytest.mark.parametrize("shape", SHAPES)
def test_cdfs_intervals_and_scores_are_those_of_sums_over_all_counts(shape):
    predictive, y = of_rows(shape)
    arrays = jax.jit(lambda p, y: p.arrays(y))(predictive, y)
    for i, row in enumerate(ROWS):
        cdf, count = dense_cdf(row, shape), int(row[2])
        assert abs(arrays["cdf"][i] - cdf[count]) < 1e-4
        assert abs(arrays["below"][i] - (cdf[count - 1] if count else 0.0)) < 1e-4
        assert [arrays[name][i] for name in ENDS] == [np.argmax(cdf >= p) for p in ENDS.values()]
        score = np.sum((cdf - (np.arange(len(cdf)) >= count)) ** 2)
        np.testing.assert_allclose(arrays["crps"][i], score, rtol=2e-3)
        mean = moments_over(row, np.exp)
        var = moments_over(row, lambda f, mean=mean: of(np.exp(f), shape).var() + (np.exp(f) - mean) ** 2)
        np.testing.assert_allclose([arrays["mean"][i], arrays["var"][i]], [mean, var], rtol=1e-6)


@pytest.mark.parametrize("shape", [None, 0.05, 3.0])
def test_cdfs_are_those_of_dense_sums_at_any_variance_of_the_log_rate(shape):
    rows = np.array([(m, v, y) for m, y in ((-2.223, 0), (1.0, 5), (5.0, 3)) for v in (0.0, 1e-6, 1e-2, 4.0)])
    mean, variance, y = jnp.asarray(rows.T)
    predictive = CountPredictive(mean, variance, None if shape is None else jnp.asarray(shape))
    arrays = jax.jit(lambda p, y: p.pointwise(y))(predictive, y)
    expected = [moments_over(row, lambda f, row=row: of(np.exp(f), shape).cdf(row[2])) for row in rows]
    np.testing.assert_allclose(arrays["cdf"], expected, atol=1e-6)
    assert not np.any(arrays["below"][:4])  # no count is below 0


@pytest.mark.parametrize("row, shape", [((2.25, 4.0), 0.05), ((5.0, 4.0), 0.05), ((-6.0, 0.01), None)])
def test_scores_of_float32_leave_out_the_rounding_of_far_tails(row, shape):
    counts = np.concatenate([np.arange(64.0), np.unique(np.round(np.geomspace(64.0, 1e7, 2000)))])
    x = np.linspace(-8.0, 8.0, 201)
    weight = stats.norm.pdf(x) / stats.norm.pdf(x).sum()
    tail = weight @ of(np.exp(row[0] + np.sqrt(row[1]) * x)[:, None], shape).sf(counts)
    expected = np.sum(tail[:64] ** 2) + 0.5 * tail[64] ** 2 + np.trapezoid(tail[64:] ** 2, counts[64:])
    mean, variance = (jnp.asarray([moment], "float32") for moment in row)
    predictive = CountPredictive(mean, variance, None if shape is None else jnp.asarray(shape, "float32"))
    score = jax.jit(lambda p, y: p.intervals(y)["crps"])(predictive, jnp.zeros(1, "float32"))
    np.testing.assert_allclose(score, expected, rtol=1e-3)


def test_the_coverage_of_true_distributions_of_counts_is_nominal():
    rng = np.random.default_rng(0)
    mean = rng.uniform(-1.0, 2.0, 4000)
    y = rng.poisson(np.exp(mean)).astype(float)
    cdf, log_prob = stats.poisson.cdf(y, np.exp(mean)), stats.poisson.logpmf(y, np.exp(mean))
    fields = dict.fromkeys(("mean", "var", "crps", *ENDS), mean)
    scored = metrics.Scored(y=y, log_prob=log_prob, cdf=cdf, below=cdf - np.exp(log_prob), **fields)
    values = metrics.score("count", scored)
    assert values["coverage_error"] < 0.02
    assert {"rmse", "test_ll", "crps"} < values.keys() and "ll_std" not in values
    wrong = metrics.Scored(y=y, log_prob=log_prob, cdf=cdf, below=cdf, **fields)
    assert metrics.score("count", wrong)["coverage_error"] > 0.02  # as if a count were a number of a density


def test_the_density_of_noise_that_varies_is_the_integral_over_both_functions():
    likelihood = likelihood_spec("heteroscedastic").initial("regression", 0, noise=0.3, dtype="float64")
    mean, variance = np.array([[0.2, -0.5], [1.0, 0.8]]), np.array([[0.4, 0.7], [0.05, 0.2]])
    y = np.array([1.1, -2.0])
    x, w = np.polynomial.hermite_e.hermegauss(80)
    w = np.outer(w, w) / w.sum() ** 2

    def density(i):
        f, g = mean[i, 0] + np.sqrt(variance[i, 0]) * x, np.log(0.3) + mean[i, 1] + np.sqrt(variance[i, 1]) * x
        return stats.norm.logpdf(y[i], f[:, None], np.exp(0.5 * g))

    args = tuple(map(jnp.asarray, (mean, variance, y)))
    expected = [np.sum(w * density(i)) for i in range(2)]
    np.testing.assert_allclose(jax.jit(lambda *args: likelihood.expected_log_prob(*args))(*args), expected, rtol=1e-9)
    log_normaliser = jax.jit(lambda *at, alpha: likelihood.log_normaliser(*at, alpha=alpha), static_argnames="alpha")
    for alpha in (1.0, 0.5):
        value = [np.log(np.sum(w * np.exp(alpha * density(i)))) for i in range(2)]
        np.testing.assert_allclose(log_normaliser(*args, alpha=alpha), value, atol=1e-4)
    arrays, log_prob = jax.jit(lambda p, y: (p.arrays(y), p.log_prob(y)))(likelihood.predictive(*args[:2]), args[2])
    np.testing.assert_allclose(log_prob, log_normaliser(*args, alpha=1.0), rtol=1e-9)
    rng = np.random.default_rng(1)
    f, g = (mean[:, p] + np.sqrt(variance[:, p]) * rng.normal(size=(200_000, 2)) for p in (0, 1))
    draws = f + np.exp(0.5 * (np.log(0.3) + g)) * rng.normal(size=f.shape)
    np.testing.assert_allclose(arrays["mean"], draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(arrays["var"], draws.var(axis=0), rtol=0.02)
    np.testing.assert_allclose(arrays["high95"], np.quantile(draws, 0.975, axis=0), rtol=0.02)
    np.testing.assert_allclose(arrays["cdf"], (draws <= y).mean(axis=0), atol=3e-3)
    # E|Y - y| - ½ E|Y - Y'| (Gneiting and Raftery 2007, eq. 21)
    score = np.abs(draws - y).mean(axis=0) - 0.5 * np.abs(draws - draws[::-1]).mean(axis=0)
    np.testing.assert_allclose(arrays["crps"], score, rtol=0.02)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-6), ("float32", 1e-4)])
def test_densities_of_noise_that_varies_are_those_of_dense_sums_at_gross_outliers(dtype, tolerance):
    spread, y = (a.ravel() for a in np.meshgrid([0.01, 0.1, 1.0], [0.0, 3.0, 10.0, 31.0, 60.0]))
    z = np.linspace(-10.0, 100.0, 11_001)
    scale = np.sqrt(0.01 + np.exp(np.sqrt(spread)[:, None] * z))
    weight = stats.norm.logpdf(z) + np.log(z[1] - z[0])
    expected = logsumexp(stats.norm.logpdf(y[:, None], 0.0, scale) + weight, axis=1)
    moments = (np.zeros_like(y), np.full_like(y, 0.01), np.zeros_like(y), spread)
    predictive = VaryingNoisePredictive(*(jnp.asarray(moment, dtype) for moment in moments))
    ours = jax.jit(lambda p, y: p.log_prob(y))(predictive, jnp.asarray(y, dtype))
    np.testing.assert_allclose(ours, expected, atol=tolerance)
