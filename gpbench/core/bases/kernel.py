"""Kernel functions around given rows as a basis, and products of kernel matrices that are too large for memory."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from gpbench.core.bases.base import Basis, Locations
from gpbench.core.kernels import Kernel

_ROWS, _COLUMNS = 2048, 4096  # size of the largest block of a kernel matrix in memory


class KernelFunctions(Basis):
    """φ_i(x) = k(x, z_i), with S = k(Z, Z) or a diagonal S of its own (relevance vectors)."""

    Z: Float[Array, "P D"]
    """The centres, filled up to whole blocks."""
    size: int = eqx.field(static=True)
    block: int = eqx.field(static=True)

    @classmethod
    def around(cls, Z: Float[Array, "M D"], block: int) -> "KernelFunctions":
        """Kernel functions around the rows of Z, in blocks of `block`."""
        missing = -len(Z) % block
        return cls(Z=jnp.concatenate([Z, Z[:missing]]) if missing else Z, size=len(Z), block=block)

    def locations(self, blocks: Int[Array, " b"], inputs: int, dtype: DTypeLike) -> Locations:
        """Centres, and a mask of those that are functions."""
        centres = self.Z.reshape(self.blocks, self.block, inputs)[blocks]
        return centres, self.exists(blocks).reshape(len(blocks), self.block)

    def unit(self, kernel: Kernel) -> Float[Array, ""]:
        """One: the values carry the kernel's amplitude."""
        return jnp.ones((), self.Z.dtype)

    def values(self, kernel: Kernel, X: Float[Array, "N D"], locations: Locations) -> Float[Array, "N c"]:
        """k(x, z_i)."""
        centres, exists = locations
        return jnp.where(exists.ravel(), kernel.cross(X, centres.reshape(-1, X.shape[1])), 0.0)

    def gram(self, kernel: Kernel, rows: Locations, columns: Locations) -> Float[Array, "R C"]:
        """Block of k(Z, Z) with the functions at `rows` and `columns`."""
        centres, exists = rows
        values = self.values(kernel, centres.reshape(-1, centres.shape[-1]), columns)
        return jnp.where(exists.ravel()[:, None], values, 0.0)

    def precisions(self, kernel: Kernel, locations: Locations) -> Float[Array, " c"]:
        """k(z_i, z_i)."""
        centres, _ = locations
        return kernel.diag(centres.reshape(-1, centres.shape[-1]))

    @eqx.filter_jit
    def initial_squares(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "B block"]:
        """Mean squares, exact in O(N M) time, with blocks of `_ROWS` by `_COLUMNS` in memory."""
        columns = max(1, _COLUMNS // self.block)
        starts = jnp.arange(0, len(X), _ROWS)

        def sum_squares(first: Array) -> Array:
            blocks = jnp.minimum(first + jnp.arange(columns), self.blocks - 1)
            locations = self.locations(blocks, X.shape[1], X.dtype)

            def add(start: Array, total: Array) -> Array:
                index = start + jnp.arange(_ROWS)
                values = self.values(kernel, X[jnp.minimum(index, len(X) - 1)], locations)
                return total + jnp.sum(jnp.where((index < len(X))[:, None], values, 0.0) ** 2, axis=0)

            zero = jnp.zeros(columns * self.block, X.dtype)
            return jax.lax.fori_loop(0, len(starts), lambda i, total: add(starts[i], total), zero)

        totals = jax.lax.map(sum_squares, jnp.arange(0, self.blocks, columns))
        return totals.reshape(-1, self.block)[: self.blocks] / len(X)


PRODUCT_ROWS, PRODUCT_COLUMNS = 512, 2048
"""Size of a block of a product.  On two cores of a CPU, blocks that fit in the caches take half the time of rows."""


def product(
    kernel: Kernel, X: Float[Array, "N D"], rows: Float[Array, "P D"], A: Float[Array, "P C"]
) -> Float[Array, "N C"]:
    """The product k(X, rows) A in O(N P (D + C)) time, with `PRODUCT_COLUMNS` columns of the matrix in memory."""
    size = min(PRODUCT_COLUMNS, len(rows))
    blocks = len(rows) // size

    def add(block: Array, total: Array) -> Array:
        columns, factor = (jax.lax.dynamic_slice_in_dim(array, block * size, size) for array in (rows, A))
        return total + kernel.cross(X, columns) @ factor

    total = jax.lax.fori_loop(0, blocks, add, jnp.zeros((len(X), A.shape[1]), A.dtype))
    rest = blocks * size
    return total if rest == len(rows) else total + kernel.cross(X, rows[rest:]) @ A[rest:]


def gram_product(kernel: Kernel, X: Float[Array, "N D"], A: Float[Array, "N C"]) -> Float[Array, "N C"]:
    """The product k(X, X) A, each block above the diagonal computed once for both of its places.  Products of the lower
    ones are summed as rows: XLA multiplies by a transposed block at a third of the rate in float32."""
    size = min(PRODUCT_ROWS, len(X))
    blocks = -(-len(X) // size)
    # Rows that fill up the last block have weights of 0, and their products are cut off.
    fill = [(0, blocks * size - len(X)), (0, 0)]
    padded, factor = jnp.pad(X, fill, mode="edge"), jnp.pad(A, fill)

    def section(array: Array, block: Any, axis: int = 0) -> Array:
        return jax.lax.dynamic_slice_in_dim(array, block * size, size, axis)

    def add(array: Array, block: Any, value: Array, axis: int) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(array, section(array, block, axis) + value, block * size, axis)

    def row(i: Any, totals: tuple[Array, Array]) -> tuple[Array, Array]:
        upper, lower = totals
        x, a = section(padded, i), section(factor, i)

        def column(j: Any, sums: tuple[Array, Array]) -> tuple[Array, Array]:
            lower, own = sums
            K = kernel.cross(x, section(padded, j))
            return add(lower, j, a.T @ K, 1), own + K @ section(factor, j)

        lower, own = jax.lax.fori_loop(i + 1, blocks, column, (lower, kernel.cross(x, x) @ a))
        return add(upper, i, own, 0), lower

    upper, lower = jax.lax.fori_loop(0, blocks, row, (jnp.zeros_like(factor), jnp.zeros_like(factor.T)))
    total: Array = (upper + lower.T)[: len(X)]
    return total


def in_blocks(function: Callable[[Float[Array, "B D"]], Any], X: Float[Array, "N D"]) -> Any:
    """function(X), `PRODUCT_ROWS` rows at a time, for a function whose every row depends on the same row of X alone."""
    each = lambda x: jax.tree.map(lambda value: value[0], function(x[None]))
    return jax.lax.map(each, X, batch_size=PRODUCT_ROWS)
