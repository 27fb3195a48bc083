"""Transformed targets: maps with their slopes, and distributions against closed forms and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import lognorm, norm, yeojohnson

from gpbench.core.predictive import GaussianPredictive, MixturePredictive
from gpbench.core.predictive.warped import fit_warp
from gpbench.errors import DataError
from gpbench.scored import ENDS

Z = np.linspace(-2.5, 2.5, 41)
arrays_of = jax.jit(lambda predictive, u: predictive.arrays(u))


def samples() -> np.ndarray:
    """Skewed numbers of both signs."""
    rng = np.random.default_rng(0)
    return rng.standard_t(4, size=3000) + rng.exponential(2.0, 3000)


def scaled(warp, y):
    return jnp.asarray((y - float(warp.mean)) / float(warp.scale))


@pytest.mark.parametrize("name", ["log", "log1p", "yeo_johnson"])
def test_a_warp_standardises_and_has_an_inverse_and_the_slope_of_finite_differences(name):
    y = samples() if name == "yeo_johnson" else np.exp(0.7 * samples() / 3)
    warp = fit_warp(name, y)
    z = np.asarray(warp.forward(scaled(warp, y)))
    assert abs(z.mean()) < 1e-12 and abs(z.std() - 1) < 1e-12
    u = np.asarray(warp.inverse(jnp.asarray(Z)))
    np.testing.assert_allclose(warp.forward(jnp.asarray(u)), Z, atol=1e-10)
    step = 1e-6
    slope = (np.asarray(warp.forward(u + step)) - np.asarray(warp.forward(u - step))) / (2 * step)
    np.testing.assert_allclose(warp.log_slope(u), np.log(slope), atol=1e-6)


def test_the_power_of_yeo_and_johnson_is_scipys_and_weights_are_repeated_rows():
    y = samples()
    warp = fit_warp("yeo_johnson", y)
    z, power = yeojohnson(y)
    assert float(warp.power) == pytest.approx(power, abs=1e-5)
    np.testing.assert_allclose(warp.forward(scaled(warp, y)), (z - z.mean()) / z.std(), atol=1e-5)
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    once, again = fit_warp("yeo_johnson", y, weight.astype(float)), fit_warp("yeo_johnson", np.repeat(y, weight))
    np.testing.assert_allclose(jax.tree.leaves(once), jax.tree.leaves(again), rtol=1e-6)


@pytest.mark.parametrize("spread", [0.3, 2.0])
def test_a_gaussian_under_a_logarithm_is_log_normal_in_every_number(spread):
    y = np.exp(1.0 + spread * np.random.default_rng(0).normal(size=500))
    warp = fit_warp("log", y)
    mean, var = np.array([0.0, 0.5, -2.0]), np.array([0.3, 1.0, 0.1])
    m, s = float(warp.centre) + float(warp.width) * mean, float(warp.width) * np.sqrt(var)
    at = np.exp(m + np.array([0.3, 2.0, -1.0]) * s)
    made = arrays_of(warp.predictive(GaussianPredictive(jnp.asarray(mean), jnp.asarray(var))), scaled(warp, at))
    shift, scale = float(warp.mean), float(warp.scale)
    total, standard = np.exp(m + s**2 / 2), (np.log(at) - m) / s
    score = at * (2 * norm.cdf(standard) - 1) - 2 * total * (norm.cdf(standard - s) + norm.cdf(s / np.sqrt(2)) - 1)
    right = {
        "log_prob": lognorm.logpdf(at, s, scale=np.exp(m)) + np.log(scale),
        "cdf": norm.cdf(standard),
        "mean": (total - shift) / scale,
        "var": np.expm1(s**2) * total**2 / scale**2,
        **{name: (np.exp(m + norm.ppf(p) * s) - shift) / scale for name, p in ENDS.items()},
        "crps": score / scale,  # Baran and Lerch 2015
    }
    assert made.keys() == right.keys()
    for name, values in right.items():
        np.testing.assert_allclose(made[name], values, rtol=1e-9, err_msg=name)
    # a density without the slope of the map is of other units
    assert np.abs(norm.logpdf(standard) - np.log(np.sqrt(var)) - right["log_prob"]).max() > 0.05


def test_a_mixture_under_yeo_and_johnson_is_that_of_its_draws():
    warp, rng = fit_warp("yeo_johnson", samples()), np.random.default_rng(2)
    mean, var, weights = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[0.3, 1.0], [0.1, 0.5]]), [0.3, 0.7]
    parts = jax.vmap(GaussianPredictive)(jnp.asarray(mean), jnp.asarray(var))
    u = np.array([0.2, -1.0])
    made = arrays_of(warp.predictive(MixturePredictive(parts, jnp.log(jnp.asarray(weights)))), jnp.asarray(u))
    which = rng.choice(2, size=400_000, p=weights)
    for row in range(2):
        z = mean[which, row] + np.sqrt(var[which, row]) * rng.normal(size=len(which))
        draws = np.asarray(warp.inverse(jnp.asarray(z)))
        error = 5 / np.sqrt(len(draws)) * draws.std()
        assert float(made["mean"][row]) == pytest.approx(draws.mean(), abs=error)
        assert float(made["var"][row]) == pytest.approx(draws.var(), rel=0.02)
        assert float(made["cdf"][row]) == pytest.approx(np.mean(draws <= u[row]), abs=0.004)
        score = np.mean(np.abs(draws - u[row])) - 0.5 * np.mean(np.abs(draws - draws[::-1]))
        assert float(made["crps"][row]) == pytest.approx(score, abs=error)
        ends = [float(made[name][row]) for name in ENDS]
        np.testing.assert_allclose(ends, np.quantile(draws, [*ENDS.values()]), atol=0.03)


def test_narrow_parts_of_a_mixture_and_small_targets_are_scored_and_lost_digits_are_an_error():
    """The score of log-normal mixtures in closed form, with one part fifty times as wide as the other."""
    z = np.random.default_rng(3).normal(size=400)
    warp = fit_warp("log", np.exp((z - z.mean()) / z.std()))
    m, s, w = np.array([2.0221, -1.1498]), np.array([0.02, 1.0]), np.array([0.5, 0.5])
    parts = jax.vmap(GaussianPredictive)(jnp.asarray(m)[:, None], jnp.asarray(s)[:, None] ** 2)
    y = np.array([0.10789])
    total = np.exp(m + s**2 / 2)
    to_y = total * (1 - 2 * norm.cdf((np.log(y) - m - s**2) / s)) - y * (1 - 2 * norm.cdf((np.log(y) - m) / s))
    beyond = lambda i, j: total[j] * (2 * norm.cdf((m[j] - m[i] + s[j] ** 2) / np.hypot(s[i], s[j])) - 1)
    pairs = sum(w[i] * w[j] * beyond(i, j) * 2 for i in range(2) for j in range(2))
    score = w @ to_y - 0.5 * pairs
    made = arrays_of(warp.predictive(MixturePredictive(parts, jnp.log(jnp.asarray(w)))), scaled(warp, y))
    assert float(made["crps"][0]) * float(warp.scale) == pytest.approx(score, rel=1e-6)
    with pytest.raises(DataError, match="too many orders of magnitude"):
        fit_warp("log", np.exp(8.0 * z))
