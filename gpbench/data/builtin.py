"""Data sets that need no file: scikit-learn's own, and seeded generated ones.

Generated values are rounded to six decimals: sin and exp may differ in their last bit from one machine to another, and
the checksum must not.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from gpbench.data.dataset import Raw
from gpbench.data.robots import kuka_sim
from gpbench.errors import ConfigError, nearest


def sklearn(options: Mapping) -> Raw:
    """scikit-learn's `load_<loader>` with `arguments`; classes keep the names it gives them.

    Raises ConfigError for an unknown loader or argument.
    """
    from sklearn import datasets

    loader = getattr(datasets, f"load_{options['loader']}", None)
    if loader is None:
        raise ConfigError(f"scikit-learn has no loader load_{options['loader']}")
    try:
        bunch = loader(**options.get("arguments", {}))
    except (TypeError, ValueError) as error:  # scikit-learn's InvalidParameterError is both
        raise ConfigError(f"scikit-learn's load_{options['loader']}: {' '.join(str(error).split())}") from None
    target = bunch.target if "target_names" not in bunch else np.array(bunch.target_names).astype(str)[bunch.target]
    return Raw(bunch.data, target, tuple(name.replace(" ", "_") for name in bunch.feature_names))


def generated(options: Mapping) -> Raw:
    """The rows of one of our generators, from its `seed` and `rows`.  Raises ConfigError for an unknown one."""
    if (name := options["generator"]) not in _GENERATORS:
        raise ConfigError(f"unknown generator {name!r}: {nearest(name, _GENERATORS)}")
    raw = _GENERATORS[name](np.random.default_rng(options["seed"]), options["rows"])
    return replace(raw, X=raw.X.round(6), target=raw.target.round(6))


def _sinc(rng: np.random.Generator, rows: int) -> Raw:
    """sin(πx)/(πx) on [-4, 4] with noise 0.1: one input, for plots and quick checks."""
    x = rng.uniform(-4, 4, rows)
    return Raw(x[:, None], np.sinc(x) + 0.1 * rng.standard_normal(rows))


def _friedman(rng: np.random.Generator, rows: int) -> Raw:
    """Friedman (1991), MARS, example 1: ten uniform inputs of which five matter, noise 1."""
    X = rng.uniform(size=(rows, 10))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return Raw(X, f + rng.standard_normal(rows))


def _moons(rng: np.random.Generator, rows: int) -> Raw:
    """Two interleaved half circles with noise 0.25: a stand-in for banana that needs no download."""
    label = np.arange(rows) % 2
    angle = np.pi * rng.uniform(size=rows)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    return Raw(np.stack([x, y], axis=1) + 0.25 * rng.standard_normal((rows, 2)), label)


def _later(module: str, name: str) -> Callable[[np.random.Generator, int], Raw]:
    """The generator of this name in a module that is imported only when it is used: it imports SciPy."""

    def generator(rng: np.random.Generator, rows: int) -> Raw:
        return getattr(importlib.import_module(module), name)(rng, rows)

    return generator


def _sines(rng: np.random.Generator, rows: int) -> Raw:
    """A sine wave of each of 32 uniform inputs, each with its phase, and noise 0.5: to time additive models."""
    X = rng.uniform(size=(rows, 32))
    return Raw(X, np.sin(2 * np.pi * (X + np.arange(32) / 32)).sum(axis=1) / 4 + 0.5 * rng.standard_normal(rows))


_GENERATORS: dict[str, Callable[[np.random.Generator, int], Raw]] = {
    "sinc": _sinc,
    "friedman": _friedman,
    "moons": _moons,
    "kuka_sim": kuka_sim,
    "mountain_car": _later("gpbench.data.mountain_car", "mountain_car"),
    "friedman_effects": _later("gpbench.data.friedman", "friedman_effects"),
    "friedman_copula": _later("gpbench.data.friedman", "friedman_copula"),
    "sines": _sines,
}
