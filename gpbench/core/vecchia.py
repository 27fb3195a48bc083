"""Vecchia's approximation of a residual process: every row is conditioned on some rows before it.  Gyger, Furrer and
Sigrist (2025), arXiv 2507.05064, add it to inducing points, and take as neighbours the rows whose residual correlation
is largest.  With V = L⁻¹Kzx the residual process has the covariance R = K - VᵀV.  Given its neighbours n a row j has
the weights a = (R_nn + σ²I)⁻¹ R_nj and the variance D = R_jj - aᵀR_nj of f.  The tests compare these formulas, written
down from their derivation, with dense algebra."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from gpbench.core.kernels import Kernel
from gpbench.core.linalg import inverse_cholesky
from gpbench.core.mapping import map_rows

_CHUNK = 256  # number of rows that are compared with all others, or conditioned on their neighbours, at a time
_FLOOR, _ROUNDINGS = 1e-10, 10
"""Smallest residual variance in a correlation, in units of the prior's, and in roundings of such a unit."""


class Neighbours(eqx.Module):
    """Neighbours of B rows among N, the nearest first; at least one place for each."""

    index: Int[Array, "B k"]
    mask: Bool[Array, "B k"]
    """False for places without a neighbour."""


class ResidualProcess(eqx.Module):
    """The residual process at N training rows, and the noise of their targets."""

    kernel: Kernel
    noise: Float[Array, ""]
    X: Float[Array, "N D"]
    V: Float[Array, "M N"]
    rest: Float[Array, " N"]
    """R_jj, the residual variances."""

    def neighbours(
        self,
        k: int,
        X: Float[Array, "B D"],
        V: Float[Array, "M B"],
        rest: Float[Array, " B"],
        before: Int[Array, " B"] | None = None,
    ) -> Neighbours:
        """The k training rows with the largest absolute residual correlation, in O(B N (M + D)) time.  The B rows are
        given by X, V = L⁻¹Kzx and their residual variances; training rows from `before` on are no neighbours."""
        n, count = len(self.X), max(k, 1)
        ours, theirs = self.deviations(self.X, self.rest), self.deviations(X, rest)
        end = jnp.full(len(X), n) if before is None else before

        def of_row(x: Array, v: Array, scale: Array, end: Array) -> tuple[Array, Array]:
            R = self.kernel.cross(x[None], self.X)[0] - v @ self.V
            index = jnp.arange(n)
            correlation = jnp.where(index < end, jnp.abs(R) / (scale * ours), -1.0)
            values, index = jax.lax.top_k(correlation, count)
            return index, (values >= 0.0) & (jnp.arange(count) < k)

        return Neighbours(*map_rows(lambda row: of_row(*row), (X, V.T, theirs, end), _CHUNK))

    def deviations(self, X: Float[Array, "B D"], rest: Float[Array, " B"]) -> Float[Array, " B"]:
        """Residual standard deviations above 0, by which correlations divide: at an inducing point it would be 0."""
        floor = max(_FLOOR, _ROUNDINGS * float(np.finfo(rest.dtype).eps))
        return jnp.sqrt(jnp.maximum(rest, floor * self.kernel.diag(X)))

    def conditional(
        self,
        X: Float[Array, "B D"],
        V: Float[Array, "M B"],
        rest: Float[Array, " B"],
        neighbours: Neighbours,
        y: Float[Array, " N"],
    ) -> tuple[Float[Array, " B"], Float[Array, "B M"], Float[Array, " B"]]:
        """f at B rows given the targets y of their neighbours, as aᵀy_n + gᵀw + an independent rest.  aᵀy_n, the
        directions g = V_j - V_n a, and the variance D of the rest."""

        @jax.checkpoint
        def of_row(row: Any) -> tuple[Array, Array, Array]:
            x, v, variance, index, mask = row
            X, V, eye = self.X[index], self.V[:, index], jnp.eye(len(index), dtype=x.dtype)
            R = self.kernel.cross(X, X) - V.T @ V + self.noise * eye
            cross = jnp.where(mask, self.kernel.cross(X, x[None])[:, 0] - V.T @ v, 0.0)
            A = inverse_cholesky(jnp.where(mask[:, None] & mask, R, eye))
            # a = C⁻¹ R_nj with C = R_nn + σ²I and A C Aᵀ = I; D = R_jj - |A R_nj|²
            whitened = A @ cross
            a = whitened @ A
            return a @ y[index], v - V @ a, jnp.maximum(variance - whitened @ whitened, 0.0)

        return map_rows(of_row, (X, V.T, rest, neighbours.index, neighbours.mask), _CHUNK)

    def independent(
        self, y: Float[Array, " N"], neighbours: Neighbours
    ) -> tuple[Float[Array, " N"], Float[Array, "N M"], Float[Array, " N"]]:
        """Targets whose residuals are independent and of variance 1.  With B the unit lower triangle of -a: (D + σ²)^-½
        B y, (D + σ²)^-½ B Vᵀ, and D + σ²."""
        mean, directions, rest = self.conditional(self.X, self.V, self.rest, neighbours, y)
        variance = rest + self.noise
        scale = jax.lax.rsqrt(variance)
        return scale * (y - mean), scale[:, None] * directions, variance
