"""Probabilistic backpropagation: moments of a layer's outputs under uncertain inputs (paper `aep_dgp`, section 5)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import SquaredExponential
from gpbench.core.psi import Moments, psi1, psi2_cross_sum, psi2_sum
from gpbench.methods.parts.deep_layers import DeepLayer, LayerPosterior

_LEAST_VARIANCE = 1e-8
"""Of an output, relative to the kernel's amplitude: rounding can make a variance negative."""


class Projection(eqx.Module):
    """A layer for uncertain inputs: with E u and cov u of each unit, α = Kzz⁻¹ E u and B = Kzz⁻¹ (cov u - Kzz) Kzz⁻¹.

    `weights` is B + α αᵀ.
    """

    layer: DeepLayer
    alpha: Float[Array, "P M"]
    weights: Float[Array, "P M M"]

    @classmethod
    def of(cls, posterior: LayerPosterior) -> "Projection":
        """Of a layer with its q."""

        def unit(A, q):
            RA, alpha = jnp.tril(q.root) @ A, A.T @ q.mean
            return alpha, RA.T @ RA - A.T @ A + jnp.outer(alpha, alpha)

        return cls(posterior.layer, *jax.vmap(unit)(posterior.A, posterior.q))


def propagate(projection: Projection, h: Moments, *, full: bool = False) -> Moments:
    """Moments of every unit, noise included, at inputs with the moments `h` (section 5; with `full`, appendix G).

    A unit's mean is ψ1 α and its variance ψ0 + Σ (B + α αᵀ) ψ2 - mean² + noise.
    """
    layer, alphas = projection.layer, projection.alpha
    kernel = layer.kernel
    assert isinstance(kernel, SquaredExponential)
    mean = jax.vmap(lambda Z, alpha: psi1(kernel, Z, h) @ alpha, out_axes=1)(layer.Z, alphas)
    second = jax.vmap(lambda Z, W: psi2_sum(kernel, Z, h, W), out_axes=1)(layer.Z, projection.weights)
    variance = jnp.maximum(kernel.amplitude + second - mean**2, _LEAST_VARIANCE * kernel.amplitude) + layer.noise
    if not full or layer.units == 1:
        return Moments(mean, variance)
    columns = []
    for a in range(layer.units):
        between = [
            variance[:, a]
            if a == b
            else psi2_cross_sum(kernel, layer.Z[a], layer.Z[b], h, jnp.outer(alphas[a], alphas[b]))
            - mean[:, a] * mean[:, b]
            for b in range(layer.units)
        ]
        columns.append(jnp.stack(between, axis=1))
    return Moments(mean, jnp.stack(columns, axis=2))
