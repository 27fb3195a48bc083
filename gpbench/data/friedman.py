"""Friedman's function with six inputs (paper `gam`, section 7), and its effects in closed form."""

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr

from gpbench.data.dataset import Raw

TEST_ROWS = 5000
_CORRELATION = 0.8


def friedman_effects(rng: np.random.Generator, rows: int) -> Raw:
    """Independent uniform inputs on [0, 1], and noise of standard deviation 1."""
    return _rows(rng, rng.uniform(size=(rows, 6)))


def friedman_copula(rng: np.random.Generator, rows: int) -> Raw:
    """Uniform inputs of a Gaussian copula in which each pair has the correlation 0.8, and noise as above."""
    shared, own = rng.standard_normal((rows, 1)), rng.standard_normal((rows, 6))
    return _rows(rng, ndtr(np.sqrt(_CORRELATION) * shared + np.sqrt(1 - _CORRELATION) * own))


def _rows(rng: np.random.Generator, X: Float[np.ndarray, "N 6"]) -> Raw:
    return Raw(X, function(X) + rng.standard_normal(len(X)))


def function(X: Float[np.ndarray, "N 6"]) -> Float[np.ndarray, " N"]:
    """10 sin(π x₀ x₁) + 20 (x₂ - ½)² + 10 x₃ + 5 x₄, without noise."""
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def effect(inputs: tuple[int, ...], x: Float[np.ndarray, "N S"]) -> Float[np.ndarray, " N"]:
    """The effect of these inputs in the analysis of variance of `function` under independent uniform inputs.

    0 where there is none.  Raises ValueError for the interaction (1, 0): inputs are in ascending order.
    """
    if list(inputs) != sorted(inputs):
        raise ValueError(f"inputs in ascending order, not {inputs}")
    match inputs:
        case (0,) | (1,):
            return _mean_over_other(x[:, 0]) - _MEAN
        case (2,):
            return 20 * (x[:, 0] - 0.5) ** 2 - 20 / 12
        case (3,) | (4,):
            return {3: 10, 4: 5}[inputs[0]] * (x[:, 0] - 0.5)
        case (0, 1):
            main = _mean_over_other(x[:, 0]) + _mean_over_other(x[:, 1])
            return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) - main + _MEAN
        case _:
            return np.zeros(len(x))


def _mean_over_other(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """∫₀¹ 10 sin(π x t) dt = 10 (1 - cos π x)/(π x)."""
    safe = np.where(x == 0, 1.0, np.pi * x)
    return np.where(x == 0, 0.0, 10 * (1 - np.cos(safe)) / safe)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(30)
_MEAN = float(_WEIGHTS @ _mean_over_other((_NODES + 1) / 2) / 2)
"""Mean of 10 sin(π x₀ x₁)."""
