"""Data sets that need no file: scikit-learn's own, rows of a card, and seeded generated ones, which are rounded to six
decimals: sin and exp may differ in their last bit from one machine to another, and the checksum must not."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from gpbench.data.dataset import Raw
from gpbench.data.robots import kuka_sim
from gpbench.errors import ConfigError, require, require_known

if TYPE_CHECKING:
    from scipy import sparse


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
        fault = "the rows source: its inputs and target must be lists of numbers, all of one length"
        raise ConfigError(fault) from None
    return Raw(table[:-1].T, table[-1], tuple(map(str, options["inputs"])))


def generated(options: Mapping) -> Raw:
    """Generates the rows of a data set.  Raises ConfigError: an unknown generator, or more rows than it may make."""
    name, count = options["generator"], options["rows"]
    require_known(name, _GENERATORS, f"unknown generator {name!r}:")
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
    """An effect of `friedman` in its analysis of variance under independent uniform inputs, in closed form, or 0."""
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


# The mountain car of Sutton and Barto (1998), example 8.2, and its optimal value function: -(steps to the goal).  A car
# between two hills is too weak to drive up the right one, and must first swing back.  Its state is a position in
# [-1.2, 0.5] and a velocity in [-0.07, 0.07]; each step it pushes left, not at all or right, which costs 1 until it
# reaches position 0.5.  Nothing is discounted.  Where one swing more is needed the value falls by a cliff, which value
# iteration on a grid, bilinear between its nodes, blurs over a cell or a few of them.
LOWER, UPPER = np.array([-1.2, -0.07]), np.array([0.5, 0.07])  # of position and velocity
NODES = 401  # of the grid of value iteration, along each of the two
TOLERANCE = 1e-9  # steps: value iteration ends where no node changes by more
SIDE = 50  # of the grid of test states
NOISE = 2.0  # steps, the standard deviation: 2 % of the range of values
_CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])  # of a cell of the grid


def move(state: Float[np.ndarray, "N 2"], push: float) -> Float[np.ndarray, "N 2"]:
    """The state after one step; `push` is -1, 0 or 1.  A car that reaches the left bound stops there."""
    position, velocity = state.T
    velocity = np.clip(velocity + 0.001 * push - 0.0025 * np.cos(3 * position), LOWER[1], UPPER[1])
    after = np.clip(position + velocity, LOWER[0], UPPER[0])
    return np.stack([after, np.where(after == LOWER[0], 0.0, velocity)], axis=1)


def grid(side: int) -> Float[np.ndarray, "nodes 2"]:
    """The states of a regular grid, bounds included: row by row of equal position."""
    return np.stack(np.meshgrid(*np.linspace(LOWER, UPPER, side, axis=1), indexing="ij"), axis=-1).reshape(-1, 2)


def interpolation(state: Float[np.ndarray, "N 2"], side: int) -> "sparse.csr_array":
    """(N, side²): each state's bilinear weights of the nodes of `grid(side)`, four a row."""
    from scipy import sparse

    position = (state - LOWER) / (UPPER - LOWER) * (side - 1)
    corner = np.minimum(position.astype(int), side - 2)
    upper = position - corner
    weights = [np.prod(np.where(use, upper, 1 - upper), axis=1) for use in _CORNERS]
    nodes = [(corner + use) @ [side, 1] for use in _CORNERS]
    rows = np.arange(0, 4 * len(state) + 1, 4)
    return sparse.csr_array((np.stack(weights, 1).ravel(), np.stack(nodes, 1).ravel(), rows), (len(state), side**2))


def values(side: int) -> Float[np.ndarray, " nodes"]:
    """The optimal values of the states of `grid(side)`: the fixed point of V(s) = max over pushes of V(s') - 1."""
    from scipy import sparse

    states = grid(side)
    moving = states[:, 0] < UPPER[0]
    after = sparse.vstack([interpolation(move(states, push), side) for push in (-1, 0, 1)], format="csr")
    value, change = np.zeros(len(states)), np.inf
    while change > TOLERANCE:
        new = np.where(moving, (after @ value).reshape(3, -1).max(axis=0) - 1, 0.0)
        change, value = np.abs(new - value).max(), new
    return value


def _mountain_car(rng: np.random.Generator, rows: int) -> Raw:
    """First the test states, `grid(SIDE)` without noise, then random states with `NOISE`; rounded for all machines."""
    fault = f"generator mountain_car: rows={rows}: must be at least {SIDE**2}, the grid of test states"
    require(rows >= SIDE**2, fault, ConfigError)
    random = rng.uniform(LOWER, UPPER, (rows - SIDE**2, 2))
    states = np.concatenate([grid(SIDE), random]).round(6)
    noise = NOISE * rng.standard_normal(len(random))
    value = interpolation(states, NODES) @ values(NODES)
    value[SIDE**2 :] += noise
    return Raw(states, value.round(4), ("position", "velocity"))


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
