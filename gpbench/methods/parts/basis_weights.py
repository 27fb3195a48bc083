"""A Gaussian posterior of the weights of many basis functions, and a control variate for estimates from some of them.
Paper `qsgp` (Evans and Nair 2020), sections 2.2 and 2.4 and appendix F."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpbench.core.bases import Basis, KernelFunctions, Locations
from gpbench.core.bases.base import take
from gpbench.core.kernels import Kernel


class Weights(eqx.Module):
    """q(w) = N(mean, C Cᵀ) in B blocks, C lower triangular with k dense columns and else diagonal (a chevron).  `dense`
    has the entries of the dense columns below the diagonal, and on it their logarithms.  `log_scale` is the logarithm
    of the other diagonal entries where they are parameters, None where they have a closed form.  `log_precision` is
    that of the prior precision of each weight, None where the prior is fixed."""

    mean: Float[Array, "B block"]
    dense: Float[Array, "B block k"]
    log_scale: Float[Array, "B block"] | None = None
    log_precision: Float[Array, "B block"] | None = None

    @property
    def width(self) -> int:
        """k, the number of dense columns."""
        return self.dense.shape[-1]


def columns(drawn: Weights, index: Int[Array, " c"]) -> Float[Array, "c W"]:
    """The mean and the k = W - 1 dense columns of C at the drawn weights, whose numbers are `index`."""
    row, column, dense = index[:, None], jnp.arange(drawn.width), drawn.dense.reshape(drawn.mean.size, drawn.width)
    entries = jnp.where(
        row == column, jnp.exp(jnp.where(row == column, dense, 0.0)), jnp.where(row > column, dense, 0.0)
    )
    return jnp.concatenate([drawn.mean.reshape(-1, 1), entries], axis=1)


def log_diagonal(drawn: Weights, index: Int[Array, " c"]) -> Float[Array, " c"]:
    """The logarithms of C's diagonal at the drawn weights that have a dense column; 0 at the others."""
    dense = drawn.dense.reshape(drawn.mean.size, drawn.width)
    return jnp.sum(jnp.where(index[:, None] == jnp.arange(drawn.width), dense, 0.0), axis=1)


class Functions(eqx.Module):
    """The functions of some blocks of a basis, for the posterior of their weights.  `squares` is the mean of each
    function's square over all `rows` in its unit; None where the diagonal of C is a parameter."""

    basis: Basis
    blocks: Int[Array, " b"]
    locations: Locations
    squares: Float[Array, "b block"] | None
    rows: Int[Array, ""]

    @classmethod
    def of_blocks(
        cls,
        basis: Basis,
        blocks: Int[Array, " b"],
        X: Float[Array, "N D"],
        squares: Float[Array, "B block"] | None,
        rows: Int[Array, ""],
        **more: Any,
    ) -> Any:
        """The functions of these blocks, from the squares of all, for rows such as X."""
        drawn = None if squares is None else squares[blocks]
        return cls(basis, blocks, basis.locations(blocks, X.shape[1], X.dtype), drawn, rows, **more)

    def precisions(self, drawn: Weights, kernel: Kernel) -> Float[Array, " c"]:
        """s_rr of their weights."""
        if drawn.log_precision is not None:
            return jnp.exp(drawn.log_precision.ravel())
        return self.basis.precisions(kernel, self.locations)

    def diagonal_squares(self, drawn: Weights, kernel: Kernel, noise: Float[Array, ""]) -> Float[Array, " c"]:
        """c_rr² of their weights without a dense column; 0 for the others.  Under Gaussian noise σ² it is σ² / (φ_rᵀφ_r
        + σ² s_rr) (proposition 1); else a parameter."""
        if drawn.log_scale is not None:
            values = jnp.exp(2.0 * drawn.log_scale.ravel())
        else:
            assert self.squares is not None
            products = self.rows.astype(self.squares.dtype) * self.basis.unit(kernel) ** 2 * self.squares.ravel()
            values = noise / (products + noise * self.precisions(drawn, kernel))
        wide = self.basis.index(self.blocks) >= drawn.width
        return jnp.where(wide & self.basis.exists(self.blocks), values, 0.0)


class ControlVariate(eqx.Module):
    """R = Φ_p [mean, dense columns of C] at p support rows, kept up to date while weights change (proposition 3).  The
    functions stay those of the initial hyper-parameters (appendix F.3).  `root` is the inverse Cholesky factor of
    k(X_p, X_p) where the prior precision S is a kernel matrix, for the Nyström term of appendix F.2."""

    X: Float[Array, "p D"]
    kernel: Kernel
    running: Float[Array, "p W"]
    root: Float[Array, "p p"] | None

    def term(
        self, draw_a: Float[Array, "p W"], draw_b: Float[Array, "p W"], precision: Float[Array, ""]
    ) -> Float[Array, ""]:
        """⟨R, M R⟩ - ⟨left, M right⟩, where left and right are independent unbiased estimates of R: 0 in expectation.
        M = `precision` I (+ k(X_p, X_p)⁻¹), with `precision` = N / (p σ²).  Its gradient is that of -⟨left - R, M
        (right - R)⟩ with R constant: the gradient of ⟨R, M R⟩, which would touch all weights, is estimated from the
        drawn ones, each draw scaled as its estimate is (compare appendix F.1, which scales both together)."""

        def product(a: Array, b: Array) -> Array:
            value = precision * jnp.sum(a * b)
            return value if self.root is None else value + jnp.sum((self.root @ a) * (self.root @ b))

        R = jax.lax.stop_gradient(self.running)
        centred = product(draw_a - R, draw_b - R)
        constant = product(R, R) - product(draw_a, draw_b) + centred
        constant = jax.lax.stop_gradient(constant)
        return constant - centred

    def advance(self, basis: Basis, locations: Locations, changes: Float[Array, "c W"]) -> "ControlVariate":
        """After a step that changed [mean, dense columns of C] of the weights there by `changes`."""
        change = outputs_of(basis, self.kernel, self.X, locations, changes)
        return eqx.tree_at(lambda c: c.running, self, self.running + change)


_TILES = {"cpu": 500, "gpu": 2_000}
"""Number of functions in a tile on CPUs and elsewhere, or one block where that has more."""


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
    def add(totals: Any, tile: Any) -> Any:
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
    def add(total: Any, tile: Any) -> Any:
        rows, draw_a = tile
        return total + jnp.sum(draw_a * (basis.gram(kernel, rows, locations[1]) @ columns[1])), None

    return jax.lax.scan(add, jnp.zeros((), columns[0].dtype), tiles(basis.block, locations[0], columns[0]))[0]


def tiles(block: int, locations: Locations, *arrays: Array) -> tuple[Any, ...]:
    """Locations of blocks, and arrays with a row for each of their functions, in tiles.  The last tile is filled up
    with blocks of zeros, whose functions count nothing as their columns are 0."""
    blocks = len(jax.tree.leaves(locations)[0])
    size = max(1, min(_TILES.get(jax.default_backend(), _TILES["gpu"]) // block, blocks))
    count = -(-blocks // size)
    missing = count * size - blocks

    def cut(leaf: Any, rows: Any) -> Any:
        filled = jnp.pad(leaf, ((0, missing * rows), *[(0, 0)] * (leaf.ndim - 1)))
        return filled.reshape(count, size * rows, *leaf.shape[1:])

    return jax.tree.map(lambda leaf: cut(leaf, 1), locations), *(cut(array, block) for array in arrays)


_ROWS, _FUNCTIONS = 10_000, 2_000
"""Largest numbers of rows and of functions of the part of Φ that is in memory at a time."""


def latent_moments(
    basis: Basis,
    weights: Weights,
    squares: Float[Array, "B block"] | None,
    kernel: Kernel,
    noise: Float[Array, ""],
    rows: Int[Array, ""],
    X: Float[Array, "N D"],
) -> tuple[Float[Array, " N"], Float[Array, " N"], Float[Array, " N"]]:
    """Mean and variance of f at X, and Σ_i φ_i(x)² for the augmentation of proposition 4."""
    count = min(basis.blocks, max(1, _FUNCTIONS // basis.block))

    def of_rows(X: Any) -> Any:
        def add(first: Any, totals: Any) -> Any:
            index = first * count + jnp.arange(count)
            blocks = jnp.minimum(index, basis.blocks - 1)
            fresh = jnp.repeat(index < basis.blocks, basis.block)  # the last chunk has some blocks again
            some, drawn = Functions.of_blocks(basis, blocks, X, squares, rows), take(weights, blocks)
            functions = jnp.where(fresh, basis.functions(kernel, X, some.locations), 0.0)
            scales2 = some.diagonal_squares(drawn, kernel, noise)
            parts = (functions @ columns(drawn, basis.index(blocks)), functions**2 @ scales2, jnp.sum(functions**2, 1))
            return jax.tree.map(jnp.add, totals, parts)

        zero = jnp.zeros(len(X), X.dtype)
        start = (jnp.zeros((len(X), 1 + weights.width), X.dtype), zero, zero)
        outputs, narrow, norms = jax.lax.fori_loop(0, -(-basis.blocks // count), add, start)
        return outputs[:, 0], narrow + jnp.sum(outputs[:, 1:] ** 2, axis=1), norms

    if len(X) <= _ROWS:
        return of_rows(X)
    parts = -(-len(X) // _ROWS)
    size = -(-len(X) // parts)
    index = jnp.minimum(jnp.arange(parts * size), len(X) - 1).reshape(parts, size)
    moments = jax.lax.map(of_rows, X[index])
    return tuple(moment.ravel()[: len(X)] for moment in moments)
