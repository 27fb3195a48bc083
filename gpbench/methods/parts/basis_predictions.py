"""Posterior moments of f = Σ w_i φ_i(x), of all basis functions, in blocks of rows and of functions."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from gpbench.core.bases import Basis
from gpbench.core.bases.base import take
from gpbench.core.kernels import Kernel
from gpbench.methods.parts.basis_weights import Weights, columns, diagonal_squares

_ROWS, _FUNCTIONS = 10_000, 2_000
"""The largest part of Φ that is in memory at a time."""


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

    def of_rows(X):
        def add(first, totals):
            index = first * count + jnp.arange(count)
            blocks = jnp.minimum(index, basis.blocks - 1)
            fresh = jnp.repeat(index < basis.blocks, basis.block)  # the last chunk has some blocks again
            locations = basis.locations(blocks, X.shape[1], X.dtype)
            functions = jnp.where(fresh, basis.functions(kernel, X, locations), 0.0)
            drawn, drawn_squares = take((weights, squares), blocks)
            scales2 = diagonal_squares(drawn, drawn_squares, basis, blocks, locations, kernel, noise, rows)
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
    mean, variance, norms = (part.ravel()[: len(X)] for part in moments)
    return mean, variance, norms
