"""Stochastic EP for deep GPs: the tied factors follow the factors that single rows imply (paper `aep_dgp`, appendix B).

With the cavity of a unit N(m, V) and log Zₙ as a function of it, the tilted distribution of row n has mean
m + V g and covariance V - V (g gᵀ - 2 G) V, g and G the derivatives with respect to m and V.  The factor that takes the
cavity there is row n's, and stochastic EP moves the tied factor towards the average of their natural parameters.

At the stationary points of the tied energy (`DGP.tied_energy`) it is the moments of the tilted distributions that
average to those of q, so that the two agree where all rows imply the same factor, and not otherwise.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from gpbench.core.gaussians import Natural, Normal
from gpbench.methods.base import Batch

_LEAST = 1e-3
"""The least variance of a row's tilted distribution, in units of the cavity's, with which it implies a factor."""

LogZ = Callable[[list[Normal], Float[Array, "1 D"], Float[Array, " 1"]], Float[Array, ""]]
"""log Z of one row as a function of the cavities of all layers, each with a leading axis P."""


def average_factors(log_z: LogZ, cavities: list[Normal], batch: Batch) -> list[Natural]:
    """The average over the rows of a batch of the factors that they imply, N times: factors on w, for every unit.

    Moment matching allows rows whose tilted covariance is not positive definite: they imply no factor, and are left out
    of that unit's average.
    """

    def of_row(x, y):
        return jax.grad(lambda cavities: log_z(cavities, x[None], y[None]))(cavities)

    gradients = jax.vmap(of_row)(batch.X, batch.y)

    def unit(cavity: Normal, gradient: Normal) -> Natural:
        R = jnp.tril(cavity.root)
        P, s, proper = jax.vmap(lambda row: _row_factor(R, row))(gradient)
        weight = batch.weight * proper
        share = weight / jnp.maximum(jnp.sum(weight), 1.0)
        P, s = jnp.tensordot(share, P, 1), share @ s
        # The factor is one of v, w = m + Rᵀ v; of w it has the precision R⁻¹ P R⁻ᵀ
        S = jax.scipy.linalg.solve_triangular(R, jnp.eye(len(R), dtype=R.dtype), lower=True)
        return Natural(batch.total * S @ P @ S.T, batch.total * S @ (s + P @ S.T @ cavity.mean))

    per_unit = [jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 1, 0), gradient) for gradient in gradients]
    return [jax.vmap(unit)(cavity, gradient) for cavity, gradient in zip(cavities, per_unit)]


def _row_factor(
    R: Float[Array, "M M"], gradient: Normal
) -> tuple[Float[Array, "M M"], Float[Array, " M"], Bool[Array, ""]]:
    """Precision and shift of a row's factor of v ~ N(0, I), from the gradient with respect to the cavity (m, R).

    Both are 0, and the third is false, where there is none.
    """
    a = R @ gradient.mean
    # ∂/∂R = 2 R G, of which the lower triangle is known, so that of 2 R G Rᵀ is too
    lower = jnp.tril(jnp.tril(gradient.root) @ R.T)
    curvature = lower + lower.T - jnp.diag(jnp.diag(lower))
    C = jnp.outer(a, a) - curvature
    # The tilted distribution is N(a, I - C)
    eye = jnp.eye(len(a), dtype=a.dtype)
    # No factor to solve with, for which jitter would be due, but the question whether I - C is positive definite
    proper = jnp.isfinite(jnp.linalg.cholesky((1.0 - _LEAST) * eye - C)).all()
    P = jnp.linalg.solve(jnp.where(proper, eye - C, eye), C)
    P = 0.5 * (P + P.T)
    return jnp.where(proper, P, 0.0), jnp.where(proper, P @ a + a, 0.0), proper
