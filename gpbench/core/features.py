"""Inducing features: the linear functionals of f that a sparse approximation conditions on.  `InducingPoints` are
values of f.  `ScaledFeatures` are the generalised features of a squared exponential kernel (paper `svdgp`, appendix
C.1; Walder et al. 2008): feature j has a location z_j and for every input a scale of its own c_jd beside the kernel's
lengthscale, l_jd = ls_d c_jd.  With c = 1 it is the value of f at z_j, and a wider one is an average of f around there.
"""

import abc
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.core import generalised
from gpbench.core.clusters import kmeans
from gpbench.core.kernels import Kernel, SquaredExponential
from gpbench.errors import ConfigError, nearest

_SUBSET = 20_000  # number of rows above which k-means sees a random subset


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


class SelectedPoints(Features):
    """Values of f at some of M points: the others are standard normal numbers that tell nothing about f.  The number in
    use can so change during training."""

    Z: Float[Array, "M D"]
    mask: Float[Array, " M"]
    """1 for points in use, 0 for others."""

    def gram(self, kernel: Kernel) -> Float[Array, "M M"]:
        """k(Z, Z) between points in use."""
        K = self.mask[:, None] * kernel.cross(self.Z, self.Z) * self.mask
        return K + jnp.diag(1.0 - self.mask)

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """k(Z, X) of points in use."""
        return self.mask[:, None] * kernel.cross(self.Z, X)


_FAR = 1e6  # coordinate of unused features, in units of the inputs: uncorrelated with all rows and with each other


class ScaledFeatures(Features):
    """Generalised features of a squared exponential kernel: their locations, and the logarithms of their scales c."""

    Z: Float[Array, "M D"]
    log_scale: Float[Array, "M D"]

    def gram(self, kernel: Kernel, other: "ScaledFeatures | None" = None) -> Float[Array, "M P"]:
        """Prior covariances of these features with each other, or with the P features of `other`."""
        assert isinstance(kernel, SquaredExponential)  # methods require it of their configuration
        other = self if other is None else other
        return generalised.gram(kernel, self.Z, self.log_scale, other.Z, other.log_scale)

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Prior covariances with f at X."""
        assert isinstance(kernel, SquaredExponential)
        return generalised.cross(kernel, self.Z, self.log_scale, X)

    def __getitem__(self, index: Int[Array, " P"] | slice) -> "ScaledFeatures":
        return ScaledFeatures(self.Z[index], self.log_scale[index])

    def count(self) -> Int[Array, ""]:
        """Number of features in use."""
        return jnp.sum(jnp.any(jnp.abs(self.Z) < 0.5 * _FAR, axis=1))

    def fill(self, X: Float[Array, "P D"], start: Int[Array, ""]) -> "ScaledFeatures":
        """Puts features of scale 1 at X into the buffer, from the index `start` on; those beyond the end are lost."""
        index = start + jnp.arange(len(X))
        Z = self.Z.at[index].set(X, mode="drop")
        return ScaledFeatures(Z, self.log_scale.at[index].set(jnp.zeros_like(X), mode="drop"))


def unused_features(m: int, d: int, dtype: DTypeLike) -> ScaledFeatures:
    """A buffer of m features of d inputs, none of them in use, for `ScaledFeatures.fill`."""
    locations = _FAR * (1.0 + jnp.arange(m, dtype=dtype))
    return ScaledFeatures(jnp.broadcast_to(locations[:, None], (m, d)), jnp.zeros((m, d), dtype))


def inducing_points(X: Float[Array, "N D"], m: int, start: str, *, key: PRNGKeyArray) -> Float[Array, "M D"]:
    """Initial inducing points: random training rows ("rows"), or the cluster centres found from them ("kmeans")."""
    rows = _random_rows(X, m, key)
    if start == "rows":
        return rows
    if start == "kmeans":
        return jax.device_put(kmeans(np.asarray(X)[:_SUBSET], np.asarray(rows)))
    raise ConfigError(f"unknown start of inducing points '{start}': {nearest(start, ('rows', 'kmeans'))}")


@partial(jax.jit, static_argnums=1)
def _random_rows(X: Float[Array, "N D"], m: int, key: PRNGKeyArray) -> Float[Array, "M D"]:
    return X[jax.random.choice(key, X.shape[0], (m,), replace=False)]
