"""Sparse actions: linear combinations Sᵀy of targets in which every row has one place.  Wenger, Wu, Hennig, Gardner,
Pleiss and Cunningham (2024), arXiv 2411.01036, condition a Gaussian process on such combinations alone.  The columns of
S have disjoint supports and the norm 1, so that SᵀS = I; only the space that they span matters."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gpbench.core.kernels import Kernel


class SparseActions(eqx.Module):
    """S with i columns for N rows, stored as the k rows that each column has an entry for."""

    X: Float[Array, "i k D"]
    """Inputs of these rows."""
    index: Int[Array, "i k"]
    entries: Float[Array, "i k"]
    """Entries of S; 0 in places that no row has."""

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "i N"]:
        """SᵀK_X, the covariance of Sᵀf and f(X), in O(N²) time and with no more than N k entries of K in memory."""

        @jax.checkpoint
        def of_action(action: tuple[Array, Array]) -> Array:
            rows, entries = action
            return entries @ kernel.cross(rows, X)

        return jax.lax.map(of_action, (self.X, self.entries))

    def combine(self, values: Float[Array, "*A N"]) -> Float[Array, "*A i"]:
        """Sᵀv for every vector v along the last axis."""
        return jnp.sum(self.entries * values[..., self.index], axis=-1)


def sparse_actions(X: Float[Array, "N D"], weights: Float[Array, " N"], actions: int) -> SparseActions:
    """Actions whose supports are the i runs of consecutive rows, of equal lengths up to one row.  `weights` are the
    entries of S before each column is scaled to the norm 1."""
    index, mask = _runs(len(X), actions)
    entries = jnp.where(mask, weights[index], 0.0)
    return SparseActions(X[index], jnp.asarray(index), entries / jnp.linalg.norm(entries, axis=1, keepdims=True))


def _runs(n: int, actions: int) -> tuple[Int[np.ndarray, "i k"], Bool[np.ndarray, "i k"]]:
    """Indices of the rows of each run, and which places are filled."""
    ends = np.arange(actions + 1) * n // actions
    index = ends[:-1, None] + np.arange(-(-n // actions))
    mask = index < ends[1:, None]
    return np.where(mask, index, 0), mask
