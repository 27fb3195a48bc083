"""Recalibrated predictions against closed forms and integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.predictive import GaussianPredictive, MixturePredictive, StudentTPredictive
from gpbench.core.predictive.recalibrated import Recalibration
from gpbench.core.predictive.warped import fit_warp

Y = jnp.linspace(-1.0, 2.0, 7)
MEAN, VAR = jnp.sin(3.0 * Y), 0.5 + Y**2
SCALE = Recalibration(jnp.asarray(1.7), "scale")
WEIGHTS = jnp.log(jnp.array([0.2, 0.8]))


def mixture(factor=1.0):
    means, var = jnp.stack([MEAN - 1.0, MEAN + 2.0]), jnp.stack([VAR, 0.3 * VAR])
    centre = jnp.exp(WEIGHTS) @ means
    parts = jax.vmap(GaussianPredictive)(centre + factor * (means - centre), factor**2 * var)
    return MixturePredictive(parts, WEIGHTS)


@pytest.mark.parametrize(
    ("before", "after"),
    [(GaussianPredictive(MEAN, VAR), GaussianPredictive(MEAN, 1.7**2 * VAR)), (mixture(), mixture(1.7))],
    ids=["gaussian", "mixture"],
)
def test_scaled_deviations_are_those_of_the_family_where_it_is_closed(before, after):
    """As they are, and under a transform of the targets."""
    warp = fit_warp("yeo_johnson", np.random.default_rng(0).normal(size=40) ** 3)
    scaled = SCALE.predictive(before)
    for ours, exact in ((scaled, after), (warp.predictive(scaled), warp.predictive(after))):
        arrays, expected = ours.arrays(Y), exact.arrays(Y)
        assert arrays.keys() == expected.keys()
        for name in arrays:
            np.testing.assert_allclose(arrays[name], expected[name], rtol=1e-6, err_msg=name)


def test_a_scaled_student_t_density_integrates_to_its_distribution_function():
    value = StudentTPredictive(*(jnp.full(20_001, v) for v in (0.3, 0.2)), jnp.asarray(0.5), jnp.asarray(4.0))
    grid = jnp.linspace(-60.0, 60.0, 20_001)
    arrays = SCALE.predictive(value).pointwise(grid)
    below = np.concatenate([[0.0], np.cumsum(np.exp(arrays["log_prob"]))]) * (grid[1] - grid[0])
    np.testing.assert_allclose(below[:-1], arrays["cdf"], atol=2e-3)


def test_conformal_intervals_and_nothing_else_are_scaled_about_their_middle():
    before = mixture()
    arrays, plain = Recalibration(jnp.asarray(3.0), "conformal").predictive(before).arrays(Y), before.arrays(Y)
    ends = {name: 2.0 * plain[name] - plain[other] for name, other in (("low95", "high95"), ("high95", "low95"))}
    for name, expected in (plain | ends).items():
        np.testing.assert_allclose(arrays[name], expected, rtol=1e-12, err_msg=name)
