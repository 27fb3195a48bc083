"""Sums over drawn basis functions, a tile of functions at a time, so that Φ is never whole in memory.

Products with Φ are bound by memory: tiles that stay in a processor's cache, made again for the gradient, are several
times faster than a matrix Φ that is written and read.  What XLA does not need it does not make.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.bases import Basis, KernelFunctions, Locations
from gpbench.core.kernels import Kernel

_TILES = {"cpu": 500, "gpu": 2_000}
"""How many functions a tile has on CPUs and elsewhere, or one block where that has more: see docs/large.md."""


def project(
    basis: Basis,
    kernel: Kernel,
    X: Float[Array, "N D"],
    locations: Locations,
    columns: Float[Array, "c W"],
    scales2: Float[Array, " c"],
) -> tuple[Float[Array, "N W"], Float[Array, " N"]]:
    """Φ `columns` and Φ² `scales2` of the functions Φ (N, c) at these locations, Φ² elementwise."""

    @jax.checkpoint
    def add(totals, tile):
        locations, columns, scales2 = tile
        values = basis.values(kernel, X, locations)
        outputs, narrow = totals
        return (outputs + values @ columns, narrow + values**2 @ scales2), None

    start, unit = (jnp.zeros((len(X), columns.shape[1]), X.dtype), jnp.zeros(len(X), X.dtype)), basis.unit(kernel)
    outputs, narrow = jax.lax.scan(add, start, tiles(basis.block, locations, columns, scales2))[0]
    return unit * outputs, unit**2 * narrow


def outputs_of(
    basis: Basis, kernel: Kernel, X: Float[Array, "N D"], locations: Locations, columns: Float[Array, "c W"]
) -> Float[Array, "N W"]:
    """Φ `columns` alone.  Differentiable in the columns, and not in the kernel."""
    return project(basis, jax.lax.stop_gradient(kernel), X, locations, columns, jnp.zeros(len(columns), X.dtype))[0]


def gram_product(
    basis: KernelFunctions,
    kernel: Kernel,
    locations: tuple[Locations, Locations],
    columns: tuple[Float[Array, "c W"], Float[Array, "c W"]],
) -> Float[Array, ""]:
    """Σ_w left_wᵀ K right_w with the kernel matrix between the functions of two draws."""

    @jax.checkpoint
    def add(total, tile):
        rows, left = tile
        return total + jnp.sum(left * (basis.gram(kernel, rows, locations[1]) @ columns[1])), None

    return jax.lax.scan(add, jnp.zeros((), columns[0].dtype), tiles(basis.block, locations[0], columns[0]))[0]


def tiles(block: int, locations: Locations, *arrays: Array) -> tuple[Any, ...]:
    """Locations of blocks, and arrays with a row for each of their functions, in tiles.

    The last tile is filled up with blocks of zeros, whose functions count nothing as their columns are 0.
    """
    blocks = len(jax.tree.leaves(locations)[0])
    size = max(1, min(_TILES.get(jax.default_backend(), _TILES["gpu"]) // block, blocks))
    count = -(-blocks // size)
    missing = count * size - blocks

    def cut(leaf, rows):
        filled = jnp.pad(leaf, ((0, missing * rows), *[(0, 0)] * (leaf.ndim - 1)))
        return filled.reshape(count, size * rows, *leaf.shape[1:])

    return jax.tree.map(lambda leaf: cut(leaf, 1), locations), *(cut(array, block) for array in arrays)
