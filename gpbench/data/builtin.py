"""Data sets that need no file: scikit-learn's own, rows of a card, and seeded generated ones, which are rounded to six
decimals: sin and exp may differ in their last bit from one machine to another, and the checksum must not.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from gpbench.data.dataset import Raw
from gpbench.data.robots import kuka_sim
from gpbench.errors import ConfigError, nearest, require


def sklearn(options: Mapping) -> Raw:
    """Loads one of scikit-learn's data sets; classes keep the names it gives them."""
    from sklearn import datasets

    loader = getattr(datasets, f"load_{options['loader']}")
    try:
        bunch = loader(**(options.get("arguments") or {}))
    except (TypeError, ValueError) as error:  # scikit-learn's InvalidParameterError is both
        raise ConfigError(f"scikit-learn's load_{options['loader']}: {' '.join(str(error).split())}") from None
    target = bunch.target if "target_names" not in bunch else np.array(bunch.target_names).astype(str)[bunch.target]
    return Raw(bunch.data, target, tuple(name.replace(" ", "_") for name in bunch.feature_names))


def rows(options: Mapping) -> Raw:
    """Takes the rows that a card has itself."""
    columns = {**options["inputs"], "target": options["target"]}
    try:
        table = np.array([list(column) for column in columns.values()], dtype=float)
    except (TypeError, ValueError):
        form = "lists of numbers, all of one length"
        raise ConfigError(f"the rows source: its inputs and target must be {form}") from None
    return Raw(table[:-1].T, table[-1], tuple(map(str, options["inputs"])))


def generated(options: Mapping) -> Raw:
    """Generates the rows of a data set.  Raises ConfigError: an unknown generator, or more rows than it may make."""
    name, count = options["generator"], options["rows"]
    if name not in _GENERATORS:
        raise ConfigError(f"unknown generator {name!r}: {nearest(name, _GENERATORS)}")
    most = f"rows={count}: {name} makes at most {_LARGEST:,} rows"
    require(name not in _LARGE or count <= _LARGEST, most, ConfigError)
    raw = _GENERATORS[name](np.random.default_rng(options["seed"]), count)
    return replace(raw, X=raw.X.round(6), target=raw.target.round(6))


def _sinc(rng: np.random.Generator, rows: int) -> Raw:
    """sin(πx)/(πx) on [-4, 4] with noise 0.1: one input, for plots and quick checks."""
    x = rng.uniform(-4, 4, rows)
    return Raw(x[:, None], np.sinc(x) + 0.1 * rng.standard_normal(rows))


def _moons(rng: np.random.Generator, rows: int) -> Raw:
    """Two interleaved half circles with noise 0.25: a stand-in for banana that needs no download."""
    label = np.arange(rows) % 2
    angle = np.pi * rng.uniform(size=rows)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    return Raw(np.stack([x, y], axis=1) + 0.25 * rng.standard_normal((rows, 2)), label)


def _mountain_car(rng: np.random.Generator, rows: int) -> Raw:
    from gpbench.data.mountain_car import mountain_car  # here: it imports SciPy's sparse matrices

    return mountain_car(rng, rows)


def _sines(rng: np.random.Generator, rows: int) -> Raw:
    """A sine wave of each of 32 uniform inputs, each with its phase, and noise 0.5: to time additive models."""
    X = rng.uniform(size=(rows, 32))
    return Raw(X, np.sin(2 * np.pi * (X + np.arange(32) / 32)).sum(axis=1) / 4 + 0.5 * rng.standard_normal(rows))


def _friedman(rng: np.random.Generator, X: Float[np.ndarray, "N D"]) -> Raw:
    """Friedman (1991), MARS, example 1: of uniform inputs five matter, noise 1."""
    return Raw(X, friedman(X) + rng.standard_normal(len(X)))


def _friedman_copula(rng: np.random.Generator, rows: int) -> Raw:
    """Six uniform inputs of a Gaussian copula in which each pair has the correlation 0.8."""
    from scipy import special

    shared, own = rng.standard_normal((rows, 1)), rng.standard_normal((rows, 6))
    return _friedman(rng, special.ndtr(np.sqrt(0.8) * shared + np.sqrt(1 - 0.8) * own))


def friedman(X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " N"]:
    """Friedman's function without noise: 10 sin(π x₀ x₁) + 20 (x₂ - ½)² + 10 x₃ + 5 x₄."""
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def friedman_effect(inputs: tuple[int, ...], x: Float[np.ndarray, "N S"]) -> Float[np.ndarray, " N"]:
    """An effect of `friedman` in its analysis of variance under independent uniform inputs, in closed form; 0 where the
    function has none.  Raises ValueError: inputs that are not in ascending order.
    """
    if list(inputs) != sorted(inputs):
        raise ValueError(f"inputs in ascending order, not {inputs}")
    match inputs:
        case (0,) | (1,):
            return _mean_over_other(x[:, 0]) - _mean()
        case (2,):
            return 20 * (x[:, 0] - 0.5) ** 2 - 20 / 12
        case (3,) | (4,):
            return {3: 10, 4: 5}[inputs[0]] * (x[:, 0] - 0.5)
        case (0, 1):
            main = _mean_over_other(x[:, 0]) + _mean_over_other(x[:, 1])
            return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) - main + _mean()
        case _:
            return np.zeros(len(x))


def _mean_over_other(x: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    """∫₀¹ 10 sin(π x t) dt = 10 (1 - cos π x)/(π x)."""
    safe = np.where(x == 0, 1.0, np.pi * x)
    return np.where(x == 0, 0.0, 10 * (1 - np.cos(safe)) / safe)


@functools.cache
def _mean() -> float:
    """The mean of 10 sin(π x₀ x₁) over [0, 1]², by Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(30)
    return float(weights @ _mean_over_other((nodes + 1) / 2) / 2)


_GENERATORS: dict[str, Callable[[np.random.Generator, int], Raw]] = {
    "sinc": _sinc,
    "friedman": lambda rng, rows: _friedman(rng, rng.uniform(size=(rows, 10))),
    "moons": _moons,
    "kuka_sim": kuka_sim,
    "mountain_car": _mountain_car,
    "friedman_effects": lambda rng, rows: _friedman(rng, rng.uniform(size=(rows, 6))),  # paper `gam`, section 7
    "friedman_copula": _friedman_copula,
    "sines": _sines,
}
_LARGE, _LARGEST = {"kuka_sim", "mountain_car", "sines"}, 2**19
"""Generators that take more memory for each row than the others, and the most rows of these: less than 500 MB."""
