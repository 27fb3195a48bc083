"""Friedman's function with six inputs: its effects against quadrature, and the rows of its cards."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from gpbench.data import builtin

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2
RNG = np.random.default_rng(0)
ACTIVE = [(0,), (1,), (2,), (3,), (4,), (0, 1)]


def test_effects_have_the_mean_0_over_each_input():
    for inputs in ACTIVE:
        fixed = np.full((len(NODES), len(inputs)), 0.3)
        for d in range(len(inputs)):
            x = fixed.copy()
            x[:, d] = NODES
            assert abs(WEIGHTS @ builtin.friedman_effect(inputs, x)) < 1e-10


def test_effects_and_the_mean_add_up_to_the_function():
    X = RNG.uniform(size=(50, 6))
    total = sum(builtin.friedman_effect(inputs, X[:, list(inputs)]) for inputs in ACTIVE)
    offset = builtin.friedman(X) - total
    np.testing.assert_allclose(offset, offset[0], rtol=1e-10)
    grid = np.array(list(itertools.product(NODES, NODES)))
    weight = np.outer(WEIGHTS, WEIGHTS).ravel()
    mean = weight @ (10 * np.sin(np.pi * grid[:, 0] * grid[:, 1])) + 20 / 12 + 5 + 2.5
    assert offset[0] == pytest.approx(mean, rel=1e-10)
    others = [inputs for size in (1, 2) for inputs in itertools.combinations(range(6), size) if inputs not in ACTIVE]
    assert not any(builtin.friedman_effect(inputs, X[:, list(inputs)]).any() for inputs in others)


def test_inputs_out_of_order_are_refused():
    with pytest.raises(ValueError, match="ascending"):
        builtin.friedman_effect((1, 0), RNG.uniform(size=(3, 2)))


@pytest.mark.parametrize(("generator", "correlation"), [("friedman_effects", 0.0), ("friedman_copula", 0.8)])
def test_rows_have_uniform_inputs_of_that_correlation_and_noise_1(generator, correlation):
    """Within 5 standard errors of 20,000 rows; the correlation is that of the normal scores."""
    raw = builtin._GENERATORS[generator](np.random.default_rng(1), 20_000)
    np.testing.assert_allclose(raw.X.mean(0), 0.5, atol=5 * np.sqrt(1 / 12 / 20_000))
    correlations = np.corrcoef(norm.ppf(raw.X.T))[np.triu_indices(6, 1)]
    np.testing.assert_allclose(correlations, correlation, atol=5 / np.sqrt(20_000))
    assert (raw.target - builtin.friedman(raw.X)).std() == pytest.approx(1, abs=5 / np.sqrt(40_000))
