"""Effects that an additive model kept, in original units, and their errors where Friedman's function is the truth."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from gpbench.data.builtin import friedman_effect


def places(run: Mapping[str, ndarray]) -> list[tuple[int, int]]:
    """The number of inputs of each effect that a run kept, and its place among those of as many inputs."""
    return [(size, i) for size in (1, 2) for i in range(len(run.get(f"kept_effect{size}_inputs", ())))]


def original(
    run: Mapping[str, ndarray], size: int, i: int
) -> tuple[Float[ndarray, "G S"], Float[ndarray, " G"], Float[ndarray, " G"]]:
    """The grid (G, S), mean and standard deviation (G,) of the i-th effect of `size` inputs, in original units."""
    inputs = run[f"kept_effect{size}_inputs"][i].astype(int)
    rows = run["kept_X"][:, inputs] * run["kept_X_scale"][inputs] + run["kept_X_shift"][inputs]
    low, high = rows.min(axis=0), rows.max(axis=0)
    grid = low + run[f"kept_effect{size}_grid"] * (high - low)
    mean, std = (run[f"kept_effect{size}_{name}"][i] * run["kept_y_std"] for name in ("mean", "std"))
    return grid, mean, std


def truth(run: Mapping[str, ndarray], size: int, i: int) -> Float[ndarray, " G"]:
    """The effect of these inputs in Friedman's function, on the grid of the i-th effect of `size` inputs."""
    x, _, _ = original(run, size, i)
    return friedman_effect(tuple(map(int, run[f"kept_effect{size}_inputs"][i])), x)


def errors(run: Mapping[str, ndarray]) -> tuple[float, float]:
    """The RMSE of all effects of a run, and the share of grid points at which the 95 % band covers the truth."""
    squares, inside = [], []
    for size, i in places(run):
        _, mean, std = original(run, size, i)
        gap = np.abs(mean - truth(run, size, i))
        squares.append(float(np.mean(gap**2)))
        inside.append(float(np.mean(gap <= 1.96 * std)))
    return fmean(squares) ** 0.5, fmean(inside)
