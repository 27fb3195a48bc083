"""What the sparse methods share: hyper-parameters, covariances, where they start, and how they may move."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench.core import features
from gpbench.core.inducing import LengthscaleStart, first_log_lengthscales2, inducing_points
from gpbench.core.kernels import SquaredExponential
from gpbench.core.linalg import describe_failure
from gpbench.methods.base import Batch, Method, inducing_count, inducing_setting


class Hyper(eqx.Module):
    """What is learned by gradients: kernel, additive noise on k(x, x), inducing points.

    `log_scale` is that of generalised features, None for values of f at the inducing points.
    """

    kernel: SquaredExponential
    log_noise: Float[Array, ""]
    Z: Float[Array, "M D"]
    log_scale: Float[Array, "M D"] | None = None

    def between(self) -> Float[Array, "M M"]:
        """Kzz, the prior covariances of the inducing features."""
        if self.log_scale is None:
            return self.kernel.gram(self.Z, self.Z)
        return features.gram(self.kernel, self.Z, self.log_scale, self.Z, self.log_scale)

    def across(self, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Kzx, those of the inducing features with f at X."""
        if self.log_scale is None:
            return self.kernel.gram(self.Z, X)
        return features.cross(self.kernel, self.Z, self.log_scale, X)


class Covariances(eqx.Module):
    """The prior covariances that the energy is a function of."""

    zz: Float[Array, "M M"]
    zx: Float[Array, "M N"]
    xx: Float[Array, " N"]


def covariances(hyper: Hyper, X: Float[Array, "N D"], noise_on_inducing: bool) -> Covariances:
    """Kzz, Kzx and k(x, x) + noise; the authors' own program has the noise on the diagonal of Kzz too."""
    noise = jnp.exp(hyper.log_noise)
    zz = hyper.between()
    if noise_on_inducing:
        zz = zz + noise * jnp.eye(zz.shape[0], dtype=zz.dtype)
    return Covariances(zz, hyper.across(X), hyper.kernel.diagonal(X) + noise)


def noiseless(hyper: Hyper, X: Float[Array, "N D"]) -> Covariances:
    """Kzz, Kzx and k(x, x): for regression, where the noise is that of y about f."""
    return Covariances(hyper.between(), hyper.across(X), hyper.kernel.diagonal(X))


def residual(cov: Covariances, V: Float[Array, "M N"]) -> Float[Array, " N"]:
    """k(x, x) + noise - |V_n|², at least 0 but for rounding."""
    return jnp.maximum(cov.xx - jnp.sum(V**2, axis=0), 0.0)


class SparseMethod(Method):
    """A method with a squared exponential kernel and inducing points that are learned.

    With the same key and the same fields all of them start from the same inducing points and hyper-parameters.
    """

    inducing: float | int = eqx.field(static=True, kw_only=True, default=0.15)
    """Number of inducing points, or the fraction of the training rows."""
    features: Literal["values", "generalised"] = eqx.field(static=True, kw_only=True, default="values")
    """Values of f at the inducing points, or features with scales of their own, which are learned too."""
    start: Literal["rows", "kmeans"] = eqx.field(static=True, kw_only=True, default="rows")
    """Where inducing points start."""
    lengthscale_start: LengthscaleStart = eqx.field(static=True, kw_only=True, default="median")
    """What lengthscales start at, from the first inducing points."""
    lengthscales: Literal["together", "free"] = eqx.field(static=True, kw_only=True, default="together")
    """Whether all lengthscales take the same step, along their mean gradient, or each its own."""
    noise: float = eqx.field(static=True, kw_only=True, default=1e-3)
    """First additive noise."""
    noise_on_inducing: bool = eqx.field(static=True, kw_only=True, default=False)
    """Whether the additive noise is on the diagonal of Kzz too."""

    @property
    def setting(self) -> str:
        return inducing_setting(self.inducing) + (f", batch={self.batch_size}" if self.batch_size else "")

    def first_hyper(self, data: Batch, *, noise: float, key: PRNGKeyArray) -> Hyper:
        """Hyper-parameters and inducing points to start from.  Raises ConfigError for more of these than rows."""
        X, dtype = data.X[: data.total], data.X.dtype
        Z = inducing_points(X, inducing_count(self.inducing, len(X)), self.start, key=key)
        kernel = SquaredExponential(jnp.zeros((), dtype), first_log_lengthscales2(Z, self.lengthscale_start))
        log_scale = jnp.zeros_like(Z) if self.features == "generalised" else None
        return Hyper(kernel, jnp.asarray(jnp.log(noise), dtype), Z, log_scale)

    def tied(self, gradient: Hyper) -> Hyper:
        """The gradient within the hyper-parameters that are allowed: those of equal lengthscales, or all.

        Every step that is a combination of such gradients, L-BFGS's too, then keeps equal lengthscales equal.
        """
        if self.lengthscales == "free":
            return gradient
        each = gradient.kernel.log_lengthscale2
        return eqx.tree_at(lambda h: h.kernel.log_lengthscale2, gradient, jnp.full_like(each, each.mean()))

    def kept(self, state) -> dict[str, Array]:
        return {"inducing": state.hyper.Z}

    def describe(self, hyper: Hyper) -> str:
        """Why a factorisation with these hyper-parameters fails, or nothing."""
        zz = covariances(hyper, hyper.Z[:1], self.noise_on_inducing).zz
        return describe_failure(f"Kzz of the {hyper.kernel.describe()}", zz, str(zz.dtype)) or ""
