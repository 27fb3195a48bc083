"""Probabilistic backpropagation: moments of a layer's outputs under uncertain inputs (paper `aep_dgp`, section 5)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from gpbench.core.gaussians import Natural, Normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.psi import Moments, psi1, psi2_cross_sum, psi2_sum
from gpbench.methods.base import Batch
from gpbench.methods.parts.deep_layers import DeepLayer, LayerPosterior

_LEAST_VARIANCE = 1e-8
"""Smallest variance of an output, relative to the kernel's amplitude: rounding can make a variance negative."""


class Projection(eqx.Module):
    """A layer for uncertain inputs: with E u and cov u of each unit, α = Kzz⁻¹ E u and B = Kzz⁻¹ (cov u - Kzz) Kzz⁻¹.
    `weights` is B + α αᵀ."""

    layer: DeepLayer
    alpha: Float[Array, "P M"]
    weights: Float[Array, "P M M"]

    @classmethod
    def create(cls, posterior: LayerPosterior) -> "Projection":
        """The projection of a layer with its q."""

        def unit(A: Any, q: Any) -> Any:
            RA, alpha = jnp.tril(q.root) @ A, A.T @ q.mean
            return alpha, RA.T @ RA - A.T @ A + jnp.outer(alpha, alpha)

        return cls(posterior.layer, *jax.vmap(unit)(posterior.A, posterior.q))


def propagate(projection: Projection, h: Moments, *, full: bool = False) -> Moments:
    """Moments of every unit, noise included, at inputs with the moments `h` (section 5; with `full`, appendix G).  A
    unit's mean is ψ1 α and its variance ψ0 + Σ (B + α αᵀ) ψ2 - mean² + noise."""
    layer, alphas, units = projection.layer, projection.alpha, len(projection.alpha)
    kernel = layer.kernel
    assert isinstance(kernel, SquaredExponential)
    mean = jax.vmap(lambda Z, alpha: psi1(kernel, Z, h) @ alpha, out_axes=1)(layer.Z, alphas)
    second = jax.vmap(lambda Z, W: psi2_sum(kernel, Z, h, W), out_axes=1)(layer.Z, projection.weights)
    variance = jnp.maximum(kernel.amplitude + second - mean**2, _LEAST_VARIANCE * kernel.amplitude) + layer.noise
    if not full or units == 1:
        return Moments(mean, variance)

    def between(a: int, b: int) -> Float[Array, " N"]:
        if a == b:
            return variance[:, a]
        cross = psi2_cross_sum(kernel, layer.Z[a], layer.Z[b], h, jnp.outer(alphas[a], alphas[b]))
        return cross - mean[:, a] * mean[:, b]

    columns = [jnp.stack([between(a, b) for b in range(units)], axis=1) for a in range(units)]
    return Moments(mean, jnp.stack(columns, axis=2))


_LEAST = 1e-3
"""Smallest variance of a row's tilted distribution, in units of the cavity's, at which the row implies a factor."""

_LogZ = Callable[[list[Normal], Float[Array, "1 D"], Float[Array, " 1"]], Float[Array, ""]]
"""log Z of one row as a function of the cavities of all layers, each with a leading axis P."""


def average_factors(log_z: _LogZ, cavities: list[Normal], batch: Batch) -> list[Natural]:
    """The average over the rows of a batch of the factors that they imply, N times: factors on w, for every unit.
    Moment matching allows rows whose tilted covariance is not positive definite: they imply no factor, and are left out
    of that unit's average."""

    def of_row(x: Any, y: Any) -> Any:
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
    """Precision and shift of a row's factor of v ~ N(0, I), from the gradient with respect to the cavity (m, R).  Both
    are 0, and the third is false, where there is none."""
    a = R @ gradient.mean
    # ∂/∂R = 2 R G, of which the lower triangle is known, so that of 2 R G Rᵀ is too
    lower = jnp.tril(jnp.tril(gradient.root) @ R.T)
    curvature = lower + lower.T - jnp.diag(jnp.diag(lower))
    C = jnp.outer(a, a) - curvature
    # The tilted distribution is N(a, I - C)
    eye = jnp.eye(len(a), dtype=a.dtype)
    # A test of I - C for positive definiteness, without jitter: nothing is solved with this factor
    proper = jnp.isfinite(jnp.linalg.cholesky((1.0 - _LEAST) * eye - C)).all()
    P = jnp.linalg.solve(jnp.where(proper, eye - C, eye), C)
    P = 0.5 * (P + P.T)
    return jnp.where(proper, P, 0.0), jnp.where(proper, P @ a + a, 0.0), proper
