"""Psi statistics: expectations of the squared exponential kernel under Gaussian inputs h ~ N(mean, cov) of every row.
ψ0 = E k(h, h), ψ1 = E k(z, h) and ψ2 = E k(z, h) k(h, z'): Titsias and Lawrence, AISTATS 2010; paper `aep_dgp`, section
5.  ψ2 is only needed in sums Σ W ψ2 over pairs of inducing points, in O(N M²) memory for the N rows of a call."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpbench.core.kernels import SquaredExponential


class Moments(eqx.Module):
    """A normal distribution for each of N rows: `cov` has variances (N, D), or covariance matrices (N, D, D)."""

    mean: Float[Array, "N D"]
    cov: Float[Array, "N D"] | Float[Array, "N D D"]


def psi1(kernel: SquaredExponential, Z: Float[Array, "M D"], h: Moments) -> Float[Array, "N M"]:
    """ψ1: E k(z, h) for every row and inducing point."""
    rows, columns = _exponent(kernel, Z, h, 1)
    return jnp.exp(kernel.log_amplitude + rows @ columns.T)


def psi2_sum(
    kernel: SquaredExponential, Z: Float[Array, "M D"], h: Moments, W: Float[Array, "M M"]
) -> Float[Array, " N"]:
    """Sum of ψ2 over pairs, Σ_ij W_ij E k(z_i, h) k(h, z_j) for every row, W symmetric: M(M+1)/2 exponentials a row."""
    i, j = np.triu_indices(len(Z))
    weight = W[i, j] * np.where(i == j, 1.0, 2.0).astype(W.dtype)
    return _product_sum(kernel, Z[i], Z[j], h, weight)


def psi2_cross_sum(
    kernel: SquaredExponential, Z: Float[Array, "M D"], Y: Float[Array, "P D"], h: Moments, W: Float[Array, "M P"]
) -> Float[Array, " N"]:
    """Σ_ij W_ij E k(z_i, h) k(h, y_j) for every row, as the covariance of two units of a layer needs it."""
    i, j = (index.ravel() for index in np.indices(W.shape))
    return _product_sum(kernel, Z[i], Y[j], h, W.ravel())


def _product_sum(
    kernel: SquaredExponential, Z: Float[Array, "Q D"], Y: Float[Array, "Q D"], h: Moments, weight: Float[Array, " Q"]
) -> Float[Array, " N"]:
    """Σ_q weight_q E k(z_q, h) k(h, y_q).  k(z, h) k(h, y) = amp² exp(-Σ (z - y)²/(4l)) exp(-Σ (h - c)²/l) with the
    centre c = (z + y)/2 and squared lengthscales l: a second squared exponential of h, of half the squared
    lengthscales."""
    apart = jnp.exp(-0.25 * jnp.sum(kernel.scale(Z - Y) ** 2, axis=1) + 2.0 * kernel.log_amplitude)
    return _exp_product(*_exponent(kernel, 0.5 * (Z + Y), h, 2), apart * weight)


@jax.custom_vjp
def _exp_product(rows: Float[Array, "N K"], columns: Float[Array, "Q K"], weight: Float[Array, " Q"]) -> Array:
    """exp(rows columnsᵀ) weight (N,); its reverse rule forms no gradient of N Q numbers."""
    return jnp.exp(rows @ columns.T) @ weight


def _forward(rows: Array, columns: Array, weight: Array) -> tuple[Array, tuple[Array, ...]]:
    E = jnp.exp(rows @ columns.T)
    return E @ weight, (rows, columns, weight, E)


def _backward(saved: tuple[Array, ...], cotangent: Array) -> tuple[Array, Array, Array]:
    rows, columns, weight, E = saved
    # (Rᵀ E)ᵀ for Eᵀ R: XLA is slow with a skinny product whose left operand is transposed
    back = (cotangent[:, None] * jnp.pad(rows, ((0, 0), (0, 1)), constant_values=1.0)).T @ E
    return cotangent[:, None] * (E @ (weight[:, None] * columns)), (weight * back[:-1]).T, back[-1]


_exp_product.defvjp(_forward, _backward)


def _exponent(
    kernel: SquaredExponential, centres: Float[Array, "Q D"], h: Moments, sharpness: int
) -> tuple[Float[Array, "N K"], Float[Array, "Q K"]]:
    """log E exp(-s/2 Σ (h - c)²/l) = -½ log|I + s cov/l| - ½ (m - c)ᵀ (l/s + cov)⁻¹ (m - c), s the sharpness.  As
    features of rows and of centres, whose product it is, both about the mean of the centres to keep digits."""
    origin = jnp.mean(centres, axis=0)
    c, m = centres - origin, h.mean - origin
    width = jnp.broadcast_to(jnp.exp(kernel.log_lengthscale2), m.shape[1:]) / sharpness
    if h.cov.ndim == 2:
        precision = 1.0 / (width + h.cov)
        log_det = jnp.sum(jnp.log1p(h.cov / width), axis=1)
        shift, square, centre_square = precision * m, precision, c**2
    else:
        # D is a handful here: the inverse of a sum of a positive diagonal and a covariance is well conditioned
        precision = jnp.linalg.inv(h.cov + jnp.diag(width))
        log_det = -jnp.linalg.slogdet(precision * width)[1]
        shift = jnp.einsum("nde,ne->nd", precision, m)
        square, centre_square = precision.reshape(len(m), -1), (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)
    constant = jnp.sum(shift * m, axis=1) + log_det
    rows = jnp.concatenate([-0.5 * square, shift, -0.5 * constant[:, None]], axis=1)
    return rows, jnp.concatenate([centre_square, c, jnp.ones_like(c[:, :1])], axis=1)
