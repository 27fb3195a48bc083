"""Targets that a method sees after a transform, log or Yeo-Johnson, and its predictions of them as they were."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpbench.core.gaussians import normal_cdf
from gpbench.core.predictive.base import Predictive
from gpbench.core.predictive.continuous import GaussianPredictive
from gpbench.core.predictive.mixture import MixturePredictive
from gpbench.core.quadrature import gauss_hermite
from gpbench.errors import ConfigError, require

SHIFTS = {"log": 0.0, "log1p": 1.0}
"""Transforms log(y + shift); `yeo_johnson` is the other one."""
_HERMITE = 32
"""Nodes of the moments, which are exact to 1e-12 for a logarithm up to a width of 2."""
_NODES, _WEIGHTS = (0.5 * (shift + values) for shift, values in zip((1.0, 0.0), np.polynomial.legendre.leggauss(64)))
"""Nodes and weights of a Gauss-Legendre rule on [0, 1], of the score."""
_REACH = 9.0
"""Standard deviations of z after which integrals end."""


class Warp(eqx.Module):
    """The increasing map of a standardised target u = (y - mean) / scale to z = (g(y) - centre) / width, on which a
    method trains, with the transform g.  `power` is Yeo and Johnson's λ (2000), inside (0, 2), where g is onto."""

    mean: Float[Array | np.ndarray, ""]
    scale: Float[Array | np.ndarray, ""]
    centre: Float[Array | np.ndarray, ""]
    width: Float[Array | np.ndarray, ""]
    power: Float[Array | np.ndarray, ""]
    name: str = eqx.field(static=True)

    def forward(self, u: Float[Array | np.ndarray, " N"]) -> Float[Array, " N"]:
        """z at u; -∞ below the targets that a logarithm has."""
        y = self.mean + self.scale * u
        if self.name in SHIFTS:
            g = jnp.log(jnp.maximum(y + SHIFTS[self.name], 0.0))
        else:
            p = self._power_at(y)
            g = jnp.sign(y) * jnp.expm1(p * jnp.log1p(jnp.abs(y))) / p
        return (g - self.centre) / self.width

    def inverse(self, z: Float[Array | np.ndarray, "..."]) -> Float[Array, "..."]:
        """u at z."""
        g = self.centre + self.width * z
        if self.name in SHIFTS:
            y = jnp.exp(g) - SHIFTS[self.name]
        else:
            p = self._power_at(g)
            y = jnp.sign(g) * jnp.expm1(jnp.log1p(p * jnp.abs(g)) / p)
        return (y - self.mean) / self.scale

    def log_slope(self, u: Float[Array | np.ndarray, "..."]) -> Float[Array, "..."]:
        """log dz/du, by which a log density of z is too small for one of u."""
        y = self.mean + self.scale * u
        if self.name in SHIFTS:
            log_g = -jnp.log(y + SHIFTS[self.name])
        else:
            log_g = (self._power_at(y) - 1.0) * jnp.log1p(jnp.abs(y))
        return log_g + jnp.log(self.scale / self.width)

    def check(self, y: Float[np.ndarray, " N"], subject: str) -> None:
        """Raises DataError, which begins with `subject`, for targets in original units that the map does not take."""
        least = 0.0 - SHIFTS.get(self.name, np.inf)
        fault = f"{subject} has {y.min():.3g}, and {self.name} is of numbers above {least:g}"
        require(y.min() > least, f"{fault}: take protocol.targets=yeo_johnson")

    def _power_at(self, y: Array | np.ndarray) -> Array:
        return jnp.where(y < 0.0, 2.0 - self.power, self.power)

    def predictive(self, value: Predictive) -> "WarpedPredictive":
        """The distribution of u of one of z.  Raises ConfigError for other than Gaussians and mixtures of them: e^z of
        heavier tails has no mean."""
        parts = value.components if isinstance(value, MixturePredictive) else value
        fault = f"predictions are a {type(parts).__name__}, and transformed targets take Gaussians"
        mend = "set protocol.targets=standardise, or method.likelihood=gaussian"
        require(isinstance(parts, GaussianPredictive), f"protocol.targets={self.name}: {fault}: {mend}", ConfigError)
        return WarpedPredictive(value, self)


class WarpedPredictive(Predictive):
    """The distribution of u = h⁻¹(z) for a map h and Gaussian z, or a mixture of Gaussians."""

    latent: Predictive
    warp: Warp

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p_z(h(u)) + log h'(u)."""
        return self.latent.log_prob(self.warp.forward(y)) + self.warp.log_slope(y)

    def summary(self) -> dict[str, Array]:
        """`mean` and `var`, each (N,): moments of h⁻¹(z) by Gauss-Hermite quadrature."""
        weights, mean, var = self._parts()
        x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(_HERMITE))
        u = self.warp.inverse(mean[..., None] + jnp.sqrt(var)[..., None] * x)
        total = weights @ (u @ w)
        return {"mean": total, "var": weights @ ((u - total[:, None]) ** 2 @ w)}

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """`log_prob`, `cdf`, `mean` and `var`, each (N,)."""
        arrays = self.latent.pointwise(self.warp.forward(y))
        return {"log_prob": arrays["log_prob"] + self.warp.log_slope(y), "cdf": arrays["cdf"]} | self.summary()

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """`pointwise`, the interval h⁻¹ of that of z, and the score ∫ (F(z) - 1{z ≥ h(y)})² dh⁻¹(z), each (N,)."""
        arrays = self.latent.arrays(self.warp.forward(y))
        ends = {name: self.warp.inverse(arrays[name]) for name in ("low95", "high95")}
        return self.pointwise(y) | {"crps": self._score(self.warp.forward(y))} | ends

    def _score(self, z: Float[Array, " N"]) -> Float[Array, " N"]:
        weights, mean, var = self._parts()
        reach = _REACH * jnp.sqrt(var)
        ends = jnp.minimum(z, jnp.min(mean - reach, axis=0)), jnp.maximum(z, jnp.max(mean + reach, axis=0))

        def add(total: Array, node: tuple[Array, ...]) -> tuple[Array, None]:
            x, w = node
            for end, sign in zip(ends, (1.0, -1.0)):
                point = z + x * (end - z)
                beyond = weights @ normal_cdf(sign * (point - mean) / jnp.sqrt(var))
                total += w * jnp.abs(end - z) * beyond**2 * jnp.exp(-self.warp.log_slope(self.warp.inverse(point)))
            return total, None

        return jax.lax.scan(add, jnp.zeros_like(z), tuple(jnp.asarray(a, z.dtype) for a in (_NODES, _WEIGHTS)))[0]

    def _parts(self) -> tuple[Float[Array, " S"], Float[Array, "S N"], Float[Array, "S N"]]:
        """Weights, means and variances of the Gaussians that are mixed."""
        value: Any = self.latent
        if isinstance(value, MixturePredictive):
            parts: Any = value.components
            return jax.nn.softmax(value.log_weights), parts.mean, parts.var
        return jnp.ones(1, value.mean.dtype), value.mean[None], value.var[None]


def fit_warp(
    name: str, y: Float[np.ndarray, " N"], weight: Float[np.ndarray, " N"] | None = None, subject: str = "the target"
) -> Warp:
    """The map of these targets in original units, λ by maximum likelihood.  Raises DataError, as `Warp.check` does."""
    from scipy.optimize import minimize_scalar

    mean, scale = _moments(y, weight)
    u = (y - mean) / scale

    def fit(power: float) -> tuple[Warp, float]:
        warp = Warp(mean, scale, np.asarray(0.0), np.asarray(1.0), np.asarray(power), name)
        warp.check(y, subject)
        centre, width = _moments(np.asarray(warp.forward(u)), weight)
        warp = Warp(mean, scale, centre, width, warp.power, name)
        return warp, -float(np.average(np.asarray(warp.log_slope(u)), weights=weight))

    if name in SHIFTS:
        return fit(1.0)[0]
    return fit(minimize_scalar(lambda power: fit(power)[1], bounds=(1e-6, 2.0 - 1e-6), method="bounded").x)[0]


def stack_warps(warps: Sequence[Warp | None], precision: str) -> Warp | None:
    """The transforms of members, with these as first axis.  Raises ConfigError: not in float64."""
    if warps[0] is None:
        return None
    fault = f"protocol.targets={warps[0].name} needs protocol.precision=float64: small targets lose their digits"
    require(precision == "float64", fault, ConfigError)
    return jax.tree.map(lambda *leaves: np.stack(leaves), *warps)


def _moments(values: Float[np.ndarray, " N"], weight: Float[np.ndarray, " N"] | None) -> tuple[np.ndarray, np.ndarray]:
    mean = np.average(values, weights=weight)
    return np.asarray(mean), np.asarray(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
