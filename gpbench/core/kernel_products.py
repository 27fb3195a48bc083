"""Products of kernel matrices that are too large for memory: one block of the matrix exists at a time."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import Kernel

ROWS, COLUMNS = 512, 2048
"""The size of a block.  On two cores of a CPU blocks that fit in the caches take half the time of whole rows."""


def product(
    kernel: Kernel, X: Float[Array, "N D"], rows: Float[Array, "P D"], A: Float[Array, "P C"]
) -> Float[Array, "N C"]:
    """k(X, rows) A in O(N P (D + C)) time, with `COLUMNS` columns of the matrix at a time."""
    size = min(COLUMNS, len(rows))
    blocks = len(rows) // size

    def add(block, total):
        part = lambda array: jax.lax.dynamic_slice_in_dim(array, block * size, size)
        return total + kernel.cross(X, part(rows)) @ part(A)

    total = jax.lax.fori_loop(0, blocks, add, jnp.zeros((len(X), A.shape[1]), A.dtype))
    rest = blocks * size
    return total if rest == len(rows) else total + kernel.cross(X, rows[rest:]) @ A[rest:]


def in_blocks(function: Callable[[Float[Array, "B D"]], Any], X: Float[Array, "N D"]) -> Any:
    """`function(X)`, a pytree of arrays with a row for each of X's, with `ROWS` rows at a time.

    A row of the result must depend on that row of X alone.
    """
    each = lambda x: jax.tree.map(lambda value: value[0], function(x[None]))
    return jax.lax.map(each, X, batch_size=ROWS)
