"""Inducing features: the linear functionals of f that a sparse approximation conditions on.

`InducingPoints` are values of f.  `ScaledFeatures` are the generalised features of a squared exponential kernel (paper
`svdgp`, appendix C.1; Walder et al. 2008): feature j has a location z_j and for every input a scale of its own c_jd
beside the kernel's lengthscale, l_jd = ls_d c_jd.  With c = 1 it is the value of f at z_j, and a wider one is an
average of f around there.
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core.clusters import kmeans
from gpbench.core.kernels import Kernel, SquaredExponential
from gpbench.errors import ConfigError, nearest

_SUBSET = 20_000
"""Number of rows above which k-means sees a random subset."""


class Features(eqx.Module):
    """M linear functionals of f, each with a location.  Array leaves are parameters that may be learned."""

    Z: eqx.AbstractVar[Float[Array, "M D"]]

    @abc.abstractmethod
    def gram(self, kernel: Kernel) -> Float[Array, "M M"]:
        """Kzz, the prior covariances of the features."""

    @abc.abstractmethod
    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Kzx, the prior covariances of the features with f at X."""


class InducingPoints(Features):
    """uₘ = f(zₘ), for any kernel."""

    Z: Float[Array, "M D"]

    def gram(self, kernel: Kernel) -> Float[Array, "M M"]:
        """k(Z, Z)."""
        return kernel.cross(self.Z, self.Z)

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """k(Z, X)."""
        return kernel.cross(self.Z, X)


_ROWS = 64
"""Number of rows of a Gram matrix at a time on a CPU."""
_FAR = 1e6
"""Coordinate of unused features, in units of the inputs: uncorrelated with all rows and with each other."""


class ScaledFeatures(Features):
    """Generalised features of a squared exponential kernel: their locations, and the logarithms of their scales c."""

    Z: Float[Array, "M D"]
    log_scale: Float[Array, "M D"]

    def gram(self, kernel: Kernel, other: "ScaledFeatures | None" = None) -> Float[Array, "M P"]:
        """Prior covariances of these features with each other, or with the P features of `other`."""
        assert isinstance(kernel, SquaredExponential)  # methods require it of their configuration
        other = self if other is None else other
        return _gram(kernel, self.Z, self.log_scale, other.Z, other.log_scale)

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Prior covariances with f at X."""
        assert isinstance(kernel, SquaredExponential)
        return _cross(kernel, self.Z, self.log_scale, X)

    def __getitem__(self, index: Int[Array, " P"] | slice) -> "ScaledFeatures":
        return ScaledFeatures(self.Z[index], self.log_scale[index])

    def count(self) -> Int[Array, ""]:
        """Number of features in use."""
        return jnp.sum(jnp.any(jnp.abs(self.Z) < 0.5 * _FAR, axis=1))

    def fill(self, X: Float[Array, "P D"], start: Int[Array, ""]) -> "ScaledFeatures":
        """Puts features of scale 1 into the buffer.

        Args:
            X: Their locations.
            start: Index of the first; those beyond the end are dropped.
        """
        index = start + jnp.arange(len(X))
        Z = self.Z.at[index].set(X, mode="drop")
        return ScaledFeatures(Z, self.log_scale.at[index].set(jnp.zeros_like(X), mode="drop"))


def unused_features(m: int, d: int, dtype: DTypeLike) -> ScaledFeatures:
    """A buffer of features, none of them in use, for `ScaledFeatures.fill`.

    Args:
        m: Number of features.
        d: Number of inputs.
        dtype: Precision of locations and scales.
    """
    locations = _FAR * (1.0 + jnp.arange(m, dtype=dtype))
    return ScaledFeatures(jnp.broadcast_to(locations[:, None], (m, d)), jnp.zeros((m, d), dtype))


def _cross(
    kernel: SquaredExponential, Z: Float[Array, "M D"], log_scale: Float[Array, "M D"], X: Float[Array, "N D"]
) -> Float[Array, "M N"]:
    """Covariances of the features with f(x): amp Π_d √(2 l_j ls/(l_j² + ls²)) exp(-(z_j - x)²/(l_j² + ls²)).

    The denominators depend on j alone, so that products do the work: O(M N D) without an array of that size.
    """
    Z, X = Z / kernel.lengthscales, X / kernel.lengthscales
    w = 1.0 / (1.0 + jnp.exp(2.0 * log_scale))
    exponent = 2.0 * (w * Z) @ X.T - w @ (X**2).T - jnp.sum(w * Z**2, axis=1)[:, None]
    return jnp.exp(jnp.minimum(exponent, 0.0) + kernel.log_amplitude + _log_peak(log_scale)[:, None])


def _gram(
    kernel: SquaredExponential,
    Z: Float[Array, "M D"],
    log_scale: Float[Array, "M D"],
    Y: Float[Array, "P D"],
    log_scale_y: Float[Array, "P D"],
) -> Float[Array, "M P"]:
    """Covariances of features with features: amp Π_d √(2 l_i l_j/(l_i² + l_j²)) exp(-(z_i - y_j)²/(l_i² + l_j²)).

    O(M P) memory whatever D, forward and backward.  On a CPU a few rows at a time, which its cache holds: there the
    gradient takes half the time (measured, 16,384 x 1,024 features of 21 inputs).
    """
    Z, Y = Z / kernel.lengthscales, Y / kernel.lengthscales

    def rows(Z: Array, log_scale: Array) -> Array:
        return jnp.exp(_log_correlation(Z, log_scale, Y, log_scale_y) + kernel.log_amplitude)

    if jax.default_backend() != "cpu" or len(Z) <= _ROWS:
        return rows(Z, log_scale)
    single = jax.checkpoint(lambda row: rows(row[0][None], row[1][None])[0])
    return jax.lax.map(single, (Z, log_scale), batch_size=_ROWS)


def _log_correlation(
    Z: Float[Array, "M D"], log_scale: Float[Array, "M D"], Y: Float[Array, "P D"], log_scale_y: Float[Array, "P D"]
) -> Float[Array, "M P"]:
    """Log of the correlations, a few inputs at a time with a single logarithm for these few."""
    blocks = [_blocks(a) for a in (Z, jnp.exp(log_scale), Y, jnp.exp(log_scale_y))]

    @jax.checkpoint
    def add(carry: tuple[Array, Array], block: Any) -> tuple[tuple[Array, Array], None]:
        exponent, log_mismatch = carry
        mismatch = 1.0
        for z, s, y, r in zip(*block):
            half = 0.5 * (s[:, None] ** 2 + r[None, :] ** 2)
            exponent = exponent - 0.5 * (z[:, None] - y[None, :]) ** 2 / half
            mismatch = mismatch * (half * (1.0 / s)[:, None] * (1.0 / r)[None, :])  # cosh(log s - log r) >= 1
        return (exponent, log_mismatch + jnp.log(mismatch)), None

    zero = jnp.zeros((Z.shape[0], Y.shape[0]), Z.dtype)
    (exponent, log_mismatch), _ = jax.lax.scan(add, (zero, zero), tuple(blocks))
    return exponent - 0.5 * log_mismatch


def _blocks(columns: Float[Array, "M D"], size: int = 4) -> Float[Array, "K S M"]:
    """The columns, `size` at a time; the last block is filled up with ones, which change no pair."""
    missing = -columns.shape[1] % size
    filled = jnp.pad(columns, ((0, 0), (0, missing)), constant_values=1.0)
    return filled.T.reshape(-1, size, columns.shape[0])


def _log_peak(log_scale: Float[Array, "M D"]) -> Float[Array, " M"]:
    return -0.5 * jnp.sum(jnp.log(jnp.cosh(log_scale)), axis=1)


def inducing_points(X: Float[Array, "N D"], m: int, start: str, *, key: PRNGKeyArray) -> Float[Array, "M D"]:
    """Initial inducing points.

    Args:
        X: Training rows.
        m: Number of inducing points, at most N.
        start: "rows" for random training rows, "kmeans" for the cluster centres found from them.
        key: Random key.

    Raises:
        ConfigError: Another `start`.
    """
    rows = X[jax.random.choice(key, X.shape[0], (m,), replace=False)]
    if start == "rows":
        return rows
    if start == "kmeans":
        return jnp.asarray(kmeans(np.asarray(X[:_SUBSET]), np.asarray(rows)), X.dtype)
    raise ConfigError(f"unknown start of inducing points '{start}': {nearest(start, ('rows', 'kmeans'))}")
