"""Greedy choice of inducing points by conditional variance: a pivoted Cholesky factorisation of K that ends early.

Burt, Rasmussen and van der Wilk, JMLR 2020, "Convergence of Sparse Variational Inference in Gaussian Processes
Regression".  Every point is the row whose variance given the points before it is largest.  The sum of the variances
that are left, t = tr(K - Q), bounds what the sparse model loses: the evidence is at most t/(2σ²) (1 + |y|²/(t + σ²))
above the bound of Titsias (2009), and for targets from the model t/(2σ²) to t/σ² on average.  The tests compare these
formulas, written down from their derivation, with dense algebra.
"""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from gpbench.core.kernels import Kernel
from gpbench.core.memory import require_memory

_FLOOR = 10.0
"""Smallest conditional variance of a pivot, in units of the largest prior variance times the rounding error."""


class Selection(eqx.Module):
    """Rows in the order of their choice, all different."""

    index: Int[Array, " M"]
    """The chosen rows, filled up to M with others, the largest conditional variance first."""
    count: Int[Array, ""]
    """Number of chosen rows: below M where a rule ended the choice."""
    rest: Float[Array, " N"]
    """Variance of f at every row given f at the chosen rows."""


def select_rows(
    kernel: Kernel,
    X: Float[Array, "N D"],
    m: int,
    *,
    weight: Float[Array, " N"] | None = None,
    enough: Float[Array, ""] | float = 0.0,
) -> Selection:
    """Chooses up to m rows by conditional variance, in O(N m²) time and with m N numbers in memory.  The choice ends
    early where the variances that are left are rounding errors, as they are once all different rows are chosen, and
    where their sum, weighted by `weight`, is at most `enough`.  Of equal variances the first row's counts as the
    largest."""
    needed = m * len(X) * X.dtype.itemsize
    require_memory(needed, f"{m:,} rows of the kernel matrix of {len(X):,} training rows, for a greedy choice,")
    weight = jnp.ones(len(X), X.dtype) if weight is None else weight
    return _select_rows(kernel, X, m, weight, jnp.asarray(enough, X.dtype))


@partial(jax.jit, static_argnums=2)
def _select_rows(kernel: Kernel, X: Array, m: int, weight: Array, enough: Array) -> Selection:
    n, prior = len(X), kernel.diag(X)
    floor = _FLOOR * np.finfo(X.dtype).eps * jnp.max(prior)

    def unfinished(carry: Any) -> Array:
        count, _, _, rest = carry
        return (count < m) & (jnp.max(rest) > floor) & (weight @ rest > enough)

    def add(carry: Any) -> Any:
        count, index, V, rest = carry
        i = jnp.argmax(rest)
        # row i of K - Q over the root of its pivot: the next row of V, with Q = VᵀV
        row = (kernel.cross(X[i][None], X)[0] - V[:, i] @ V) / jnp.sqrt(rest[i])
        rest = jnp.maximum(rest - row**2, 0.0).at[i].set(0.0)
        return count + 1, index.at[count].set(i), V.at[count].set(row), rest

    nowhere = jnp.full(m, n)
    start = (jnp.zeros((), int), nowhere, jnp.zeros((m, n), X.dtype), prior)
    count, index, _, rest = jax.lax.while_loop(unfinished, add, start)
    _, others = jax.lax.top_k(rest.at[index].set(-1.0, mode="drop"), m)
    position = jnp.arange(m)
    return Selection(jnp.where(position < count, index, others[position - count]), count, rest)
