"""Targets that a method sees after a transform, log or Yeo-Johnson, and its predictions of them as they were."""

from collections.abc import Sequence
from dataclasses import replace
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
from gpbench.core.predictive.recalibrated import ConformalPredictive, RescaledPredictive
from gpbench.core.quadrature import gauss_hermite
from gpbench.errors import ConfigError, require
from gpbench.scored import ENDS

SHIFTS = {"log": 0.0, "log1p": 1.0}  # transforms log(y + shift); yeo_johnson is the other one
_HERMITE = 32  # nodes of moments; near the kink of Yeo and Johnson's map exact to 1e-4, or 1e-3 with targets of 1,000
_NODES, _WEIGHTS = (0.5 * (shift + values) for shift, values in zip((1.0, 0.0), np.polynomial.legendre.leggauss(32)))
_REACH, _WIDTH = 9.0, 4.0  # standard deviations: the ends of integrals, and of the panel about a Gaussian
_LOST = 1e-3  # standard deviations of z by which small targets may be off once they were standardised
_FEW = 8  # Gaussians up to which each has its panel; the distribution function of more is smoother


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
        """z at u."""
        return (self.transform(self.mean + self.scale * u) - self.centre) / self.width

    def transform(self, y: Float[Array | np.ndarray, "..."]) -> Float[Array, "..."]:
        """g(y)."""
        if self.name in SHIFTS:
            return jnp.log(jnp.maximum(y + SHIFTS[self.name], 0.0))
        p = self._power_at(y)
        return jnp.sign(y) * jnp.expm1(p * jnp.log1p(jnp.abs(y))) / p

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
            log_g = -jnp.log(jnp.maximum(y + SHIFTS[self.name], np.finfo(float).tiny))
        else:
            log_g = (self._power_at(y) - 1.0) * jnp.log1p(jnp.abs(y))
        return log_g + jnp.log(self.scale / self.width)

    def check(self, y: Float[np.ndarray, " N"], subject: str) -> None:
        """Raises DataError, which begins with `subject`, for targets in original units that the map does not take."""
        least = 0.0 - SHIFTS.get(self.name, np.inf)
        fault = f"{subject} has {y.min():.3g}, and {self.name} is of numbers above {least:g}"
        require(y.min() > least, f"{fault}: take protocol.targets=yeo_johnson, or log1p above -1")

    def _power_at(self, y: Array | np.ndarray) -> Array:
        return jnp.where(y < 0.0, 2.0 - self.power, self.power)

    def predictive(self, value: Predictive) -> "WarpedPredictive":
        """The distribution of u of one of z.  Raises ConfigError for other than Gaussians and mixtures of them: e^z of
        heavier tails has no mean."""
        return WarpedPredictive(value, self, *_gaussians(value, f"protocol.targets={self.name}"))


class WarpedPredictive(Predictive):
    """The distribution of u = h⁻¹(z) for a map h and Gaussian z, or a mixture of Gaussians."""

    latent: Predictive
    warp: Warp
    weights: Float[Array, " S"]  # of the Gaussians that z mixes, and their moments
    means: Float[Array, "S N"]
    variances: Float[Array, "S N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p_z(h(u)) + log h'(u)."""
        return self.latent.log_prob(self.warp.forward(y)) + self.warp.log_slope(y)

    def summary(self) -> dict[str, Array]:
        """`mean` and `var`, each (N,): the log-normal distribution's, or by quadrature."""
        weights, mean, var = self.weights, self.means, self.variances
        if self.warp.name in SHIFTS:
            m, v = self.warp.centre + self.warp.width * mean, self.warp.width**2 * var
            means = (jnp.exp(m + 0.5 * v) - SHIFTS[self.warp.name] - self.warp.mean) / self.warp.scale
            within = jnp.expm1(v) * jnp.exp(2.0 * m + v) / self.warp.scale**2
        else:
            x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(_HERMITE))
            u = self.warp.inverse(mean[..., None] + jnp.sqrt(var)[..., None] * x)
            means = u @ w
            within = (u - means[..., None]) ** 2 @ w
        total = weights @ means
        return {"mean": total, "var": weights @ (within + (means - total) ** 2)}

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        arrays = self.latent.pointwise(self.warp.forward(y))
        return {"log_prob": arrays["log_prob"] + self.warp.log_slope(y), "cdf": arrays["cdf"]} | self.summary()

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """`pointwise`, the intervals h⁻¹ of those of z, and the score ∫ (F(z) - 1{z ≥ h(y)})² dh⁻¹(z), each (N,)."""
        inner = self.latent.arrays(z := self.warp.forward(y))
        ends = {name: self.warp.inverse(inner[name]) for name in ENDS}
        return self.pointwise(y) | {"crps": self._score(z)} | ends

    def _score(self, z: Float[Array, " N"]) -> Float[Array, " N"]:
        """By a Gauss-Legendre rule on panels, which end about each of few Gaussians, at z and at the target 0."""
        weights, mean, var = self.weights, self.means, self.variances
        sd = jnp.sqrt(var)
        low = jnp.minimum(z, jnp.min(mean - _REACH * sd, axis=0))
        high = jnp.maximum(z, jnp.max(mean + _REACH * sd, axis=0))
        inner = low + jnp.linspace(0.0, 1.0, 2 * _FEW)[:, None] * (high - low)
        inner = jnp.concatenate([mean - _WIDTH * sd, mean + _WIDTH * sd]) if len(mean) <= _FEW else inner
        others = jnp.stack([low, high, z, jnp.broadcast_to(-self.warp.centre / self.warp.width, z.shape)])
        ends = jnp.sort(jnp.clip(jnp.concatenate([inner, others]), low, high), axis=0)

        def add(total: Array, node: tuple[Array, ...]) -> tuple[Array, None]:
            k, x, w = node
            length = ends[k + 1] - ends[k]
            t = ends[k] + x * length
            beyond = weights @ normal_cdf(jnp.where(t < z, 1.0, -1.0) * (t - mean) / sd)
            return total + w * length * beyond**2 * jnp.exp(-self.warp.log_slope(self.warp.inverse(t))), None

        panel = jnp.repeat(jnp.arange(len(ends) - 1), len(_NODES))
        x, w = (jnp.resize(jnp.asarray(a, z.dtype), panel.shape) for a in (_NODES, _WEIGHTS))
        return jax.lax.scan(add, jnp.zeros_like(z), (panel, x, w))[0]


def _gaussians(value: Any, key: str) -> tuple[Float[Array, " S"], Float[Array, "S N"], Float[Array, "S N"]]:
    """Weights, means and variances of the Gaussians that are mixed.  Raises ConfigError: they are no Gaussians."""
    if isinstance(value, ConformalPredictive | RescaledPredictive):
        weights, mean, var = _gaussians(value.original, key)
        factor = value.factor if isinstance(value, RescaledPredictive) else 1.0
        return weights, weights @ mean + factor * (mean - weights @ mean), factor**2 * var
    parts: Any = value.components if isinstance(value, MixturePredictive) else value
    fault = f"predictions are a {type(parts).__name__}, and transformed targets take Gaussians: leave it out"
    require(isinstance(parts, GaussianPredictive), f"{key}: {fault}", ConfigError)
    if isinstance(value, MixturePredictive):
        return jax.nn.softmax(value.log_weights), parts.mean, parts.var
    return jnp.ones(1, parts.mean.dtype), parts.mean[None], parts.var[None]


_Row = Float[np.ndarray, " N"]


def fit_warp(name: str, y: _Row, weight: _Row | None = None, subject: str = "the target") -> Warp:
    """The map of these targets in original units, λ by maximum likelihood.  Raises DataError, as `Warp.check` does."""
    from scipy.optimize import minimize_scalar

    mean, scale = _moments(y, weight)
    start = Warp(mean, scale, np.asarray(0.0), np.asarray(1.0), np.asarray(1.0), name)
    start.check(y, subject)

    def fit(power: float) -> tuple[Warp, float]:
        warp = replace(start, power=np.asarray(power))
        centre, width = _moments(np.asarray(warp.transform(y)), weight)
        u = (y - mean) / scale
        lost = np.abs(np.asarray(warp.forward(u) - warp.transform(y))).max() > _LOST * width
        require(not lost, f"{subject} has too many orders of magnitude for {name}: train on its logarithms in the file")
        warp = replace(warp, centre=centre, width=width)
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


def _moments(values: _Row, weight: _Row | None) -> tuple[np.ndarray, np.ndarray]:
    mean = np.average(values, weights=weight)
    return np.asarray(mean), np.asarray(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
