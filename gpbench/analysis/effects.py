"""Effects that an additive model kept, in original units, and their errors where the true effects are known."""

from collections.abc import Callable, Mapping
from statistics import fmean

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Truth = Callable[[tuple[int, ...], ndarray], ndarray]
"""Maps inputs (S,) and their values (G, S), in original units, to their effect (G,)."""


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


def errors(run: Mapping[str, ndarray], truth: Truth) -> tuple[float, float]:
    """The RMSE of all effects of a run, and the share of grid points at which the 95 % band covers the truth."""
    squares, inside = [], []
    for size in (1, 2):
        for i, inputs in enumerate(run.get(f"kept_effect{size}_inputs", ())):
            x, mean, std = original(run, size, i)
            gap = np.abs(mean - truth(tuple(map(int, inputs)), x))
            squares.append(float(np.mean(gap**2)))
            inside.append(float(np.mean(gap <= 1.96 * std)))
    return fmean(squares) ** 0.5, fmean(inside)
