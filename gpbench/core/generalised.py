"""Covariances of generalised features of a squared exponential kernel (paper `svdgp`, appendix C.1).  Feature i has a
location zᵢ and the lengthscales ls_d s_id.  Two features have the covariance amp Π_d √(2 s_id r_jd/(s_id² + r_jd²))
exp(-(z_id - y_jd)²/(s_id² + r_jd²)), locations in units of the lengthscales."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels import SquaredExponential

_CPU_ROWS = 16  # number of rows of a Gram matrix at a time on a CPU, whose cache then holds them
_GPU_ROWS = 2048  # the same on other devices, where arrays of all inputs may be held
_INPUTS = 24  # largest number of inputs in one expression; in float64 they share a logarithm


def cross(
    kernel: SquaredExponential, Z: Float[Array, "M D"], log_scale: Float[Array, "M D"], X: Float[Array, "N D"]
) -> Float[Array, "M N"]:
    """Covariances of features with f(x): those with features at x of scale 1.  The denominators depend on the feature
    alone, so that products do the work: O(M N D) without an array of that size."""
    Z, X = Z / kernel.lengthscales, X / kernel.lengthscales
    w = 1.0 / (1.0 + jnp.exp(2.0 * log_scale))
    exponent = 2.0 * (w * Z) @ X.T - w @ (X**2).T - jnp.sum(w * Z**2, axis=1)[:, None]
    log_peak = -0.5 * jnp.sum(jnp.log(jnp.cosh(log_scale)), axis=1)
    return jnp.exp(jnp.minimum(exponent, 0.0) + kernel.log_amplitude + log_peak[:, None])


def gram(
    kernel: SquaredExponential,
    Z: Float[Array, "M D"],
    log_scale: Float[Array, "M D"],
    Y: Float[Array, "P D"],
    log_scale_y: Float[Array, "P D"],
) -> Float[Array, "M P"]:
    """Covariances of features with features.  O(M P) memory whatever D, forward and backward.  The gradient is written
    out (`_backward`): for each pair and input it takes one division and some ten other operations."""
    missing = -Z.shape[1] % _block_size(Z.shape[1])
    features = (Z / kernel.lengthscales, log_scale, Y / kernel.lengthscales, log_scale_y)
    # features that are equal in an input do not differ by it
    correlations: Array = _correlations(*(jnp.pad(a, ((0, 0), (0, missing))) for a in features))
    return kernel.amplitude * correlations


@jax.custom_vjp
def _correlations(
    Z: Float[Array, "M D"], log_scale: Float[Array, "M D"], Y: Float[Array, "P D"], log_scale_y: Float[Array, "P D"]
) -> Float[Array, "M P"]:
    """The correlations of features with features, for a kernel of lengthscales 1."""
    rows, columns = _terms(_in_rows(Z), _in_rows(log_scale)), _terms(_in_inputs(Y.T), _in_inputs(log_scale_y.T))
    K = jax.lax.map(lambda block: jnp.exp(_log_correlations(block, columns)), rows)
    return K.reshape(-1, len(Y))[: len(Z)]


def _terms(locations: Array, log_scale: Array) -> tuple[Array, ...]:
    """Terms of a feature that every pair and input shares: the location, s²/2 and 1/s."""
    return locations, 0.5 * jnp.exp(2.0 * log_scale), jnp.exp(-log_scale)


def _log_correlations(rows: tuple[Array, ...], columns: tuple[Array, ...]) -> Array:
    """Logarithms of the correlations of rows (R, D) with columns (K, S, P), from the `_terms` of both."""
    shared = _INPUTS if rows[0].dtype == jnp.float64 else 4  # inputs of one logarithm: a product of more could overflow

    def add(total: Array, block: tuple[Array, ...]) -> tuple[Array, None]:
        mismatch = 1.0
        for d, (z, s, s_inverse, y, r, r_inverse) in enumerate(zip(*block)):
            half = s[:, None] + r
            total = total + (z[:, None] - y) ** 2 / half
            mismatch = mismatch * (half * s_inverse[:, None] * r_inverse)  # cosh(log s - log r) >= 1
            if (d + 1) % shared == 0 or d + 1 == len(block[0]):
                total, mismatch = total + jnp.log(mismatch), 1.0
        return total, None

    start = jnp.zeros((len(rows[0]), columns[0].shape[-1]), rows[0].dtype)
    return -0.5 * jax.lax.scan(add, start, (*(_in_inputs(a.T) for a in rows), *columns))[0]


def _forward(Z: Array, log_scale: Array, Y: Array, log_scale_y: Array) -> tuple[Array, Any]:
    K = _correlations(Z, log_scale, Y, log_scale_y)
    return K, (Z, log_scale, Y, log_scale_y, K)


def _backward(saved: Any, K_bar: Array) -> tuple[Array, Array, Array, Array]:
    """With W = K̄ K, q = 1/(s² + r²) and u = (z - y) q: z̄ = -2 Σ W u and s̄² = Σ W (u² - ½ q) + ¼ s⁻² Σ W."""
    Z, log_scale, Y, log_scale_y, K = saved
    s2, r2 = jnp.exp(2.0 * log_scale), jnp.exp(2.0 * log_scale_y)

    def rows(columns: tuple[Array, Array], block: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        z, s2, K, K_bar = block
        w = K * K_bar

        def single(d: tuple[Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array]:
            z_d, s2_d, y_d, r2_d = d
            q = 1.0 / (s2_d[:, None] + r2_d)
            u = (z_d[:, None] - y_d) * q
            slope, spread = w * u, w * (u**2 - 0.5 * q)
            return slope.sum(1), spread.sum(1), slope.sum(0), spread.sum(0)

        z_bar, s_bar, y_bar, r_bar = jax.lax.map(single, (z.T, s2.T, Y.T, r2.T))
        return (columns[0] + y_bar, columns[1] + r_bar), (z_bar.T, s_bar.T)

    blocks = tuple(map(_in_rows, (Z, s2, K, K_bar)))
    (y_bar, r_bar), (z_bar, s_bar) = jax.lax.scan(rows, (jnp.zeros_like(Y.T), jnp.zeros_like(Y.T)), blocks)
    z_bar, s_bar = (a.reshape(-1, Z.shape[1])[: len(Z)] for a in (z_bar, s_bar))
    W = K * K_bar
    own, others = 0.5 * jnp.sum(W, axis=1)[:, None], 0.5 * jnp.sum(W, axis=0)[:, None]
    return -2.0 * z_bar, 2.0 * s2 * s_bar + own, 2.0 * y_bar.T, 2.0 * r2 * r_bar.T + others


_correlations.defvjp(_forward, _backward)


def _in_rows(a: Float[Array, "M K"]) -> Float[Array, "B R K"]:
    """Blocks of rows; the last is filled up with zeros."""
    most = _CPU_ROWS if jax.default_backend() == "cpu" else -(-len(a) // -(-len(a) // _GPU_ROWS))  # of like size
    size = min(most, len(a))
    return jnp.pad(a, ((0, -len(a) % size), (0, 0))).reshape(-1, size, a.shape[1])


def _in_inputs(a: Float[Array, "D M"]) -> Float[Array, "K S M"]:
    """Blocks of inputs, whose number is a multiple of their size."""
    return a.reshape(-1, _block_size(len(a)), a.shape[1])


def _block_size(inputs: int) -> int:
    """Number of inputs in a block, for as few blocks as possible."""
    blocks = -(-inputs // _INPUTS)
    return -(-inputs // blocks)
