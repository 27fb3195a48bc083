"""The mountain car of Sutton and Barto (1998), example 8.2, and its optimal value function: -(steps to the goal).

A car between two hills is too weak to drive up the right one, and must first swing back.  Its state is a position in
[-1.2, 0.5] and a velocity in [-0.07, 0.07]; each step it pushes left, not at all or right, which costs 1 until it
reaches position 0.5.  Nothing is discounted.  Where one swing more is needed the value falls by a cliff.

Value iteration works on a grid, bilinear between its nodes, so that the cliff is blurred over a cell or a few of them.
"""

import numpy as np
from jaxtyping import Float
from scipy import sparse

from gpbench.data.dataset import Raw
from gpbench.errors import ConfigError, require

LOWER, UPPER = np.array([-1.2, -0.07]), np.array([0.5, 0.07])  # of position and velocity
NODES = 401  # of the grid of value iteration, along each of the two
TOLERANCE = 1e-9  # steps: value iteration ends where no node changes by more
SIDE = 50  # of the grid of test states
NOISE = 2.0  # steps, the standard deviation: 2 % of the range of values


def move(state: Float[np.ndarray, "N 2"], push: float) -> Float[np.ndarray, "N 2"]:
    """The state after one step; `push` is -1, 0 or 1.  A car that reaches the left bound stops there."""
    position, velocity = state.T
    velocity = np.clip(velocity + 0.001 * push - 0.0025 * np.cos(3 * position), LOWER[1], UPPER[1])
    after = np.clip(position + velocity, LOWER[0], UPPER[0])
    return np.stack([after, np.where(after == LOWER[0], 0.0, velocity)], axis=1)


def grid(side: int) -> Float[np.ndarray, "nodes 2"]:
    """The states of a regular grid, bounds included: row by row of equal position."""
    axes = np.linspace(LOWER, UPPER, side, axis=1)
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def interpolation(state: Float[np.ndarray, "N 2"], side: int) -> sparse.csr_array:
    """(N, side²): each state's bilinear weights of the nodes of `grid(side)`, four a row."""
    position = (state - LOWER) / (UPPER - LOWER) * (side - 1)
    corner = np.minimum(position.astype(int), side - 2)
    upper = position - corner
    weights = [np.prod(np.where(use, upper, 1 - upper), axis=1) for use in _CORNERS]
    nodes = [(corner + use) @ [side, 1] for use in _CORNERS]
    rows = np.arange(0, 4 * len(state) + 1, 4)
    return sparse.csr_array((np.stack(weights, 1).ravel(), np.stack(nodes, 1).ravel(), rows), (len(state), side**2))


_CORNERS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def values(side: int) -> Float[np.ndarray, " nodes"]:
    """The optimal values of the states of `grid(side)`: the fixed point of V(s) = max over pushes of V(s') - 1."""
    states = grid(side)
    moving = states[:, 0] < UPPER[0]
    after = sparse.vstack([interpolation(move(states, push), side) for push in (-1, 0, 1)], format="csr")
    value, change = np.zeros(len(states)), np.inf
    while change > TOLERANCE:
        new = np.where(moving, (after @ value).reshape(3, -1).max(axis=0) - 1, 0.0)
        change, value = np.abs(new - value).max(), new
    return value


def mountain_car(rng: np.random.Generator, rows: int) -> Raw:
    """First the test states, `grid(SIDE)` without noise; all other rows are random states with `NOISE`.  Values are
    rounded to four decimals: the last bits of a cosine may differ from one machine to another.
    """
    fault = f"generator mountain_car: rows={rows}: must be at least {SIDE**2}, the grid of test states"
    require(rows >= SIDE**2, fault, ConfigError)
    random = rng.uniform(LOWER, UPPER, (rows - SIDE**2, 2))
    states = np.concatenate([grid(SIDE), random]).round(6)
    noise = NOISE * rng.standard_normal(len(random))
    value = interpolation(states, NODES) @ values(NODES)
    value[SIDE**2 :] += noise
    return Raw(states, value.round(4), ("position", "velocity"))
