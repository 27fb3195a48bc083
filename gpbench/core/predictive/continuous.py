"""Predictive densities of a Gaussian latent value with Gaussian or Laplace noise, or Gaussian noise that varies."""

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.gaussians import normal_cdf
from gpbench.core.predictive.base import ContinuousPredictive
from gpbench.core.quadrature import PerRow, log_peaked_expectation, normal_points
from gpbench.scored import ENDS


class GaussianPredictive(ContinuousPredictive):
    """N(mean, var), noise included."""

    mean: Float[Array, " N"]
    var: Float[Array, " N"]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log N(y | mean, var)."""
        return norm.logpdf(y, self.mean, jnp.sqrt(self.var))

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Φ((y - mean) / √var)."""
        return normal_cdf((y - self.mean) / jnp.sqrt(self.var))

    def intervals(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """Normal quantiles, and s (z (2 Φ(z) - 1) + 2 φ(z) - 1/√π), z = (y - mean)/s (Gneiting & Raftery 2007)."""
        s = jnp.sqrt(self.var)
        z = (y - self.mean) / s
        score = s * (z * (2.0 * normal_cdf(z) - 1.0) + 2.0 * norm.pdf(z) - 1.0 / jnp.sqrt(jnp.pi).astype(s.dtype))
        return {"crps": score, **{name: self.mean + s * norm.ppf(p).astype(s.dtype) for name, p in ENDS.items()}}


class VaryingNoisePredictive(ContinuousPredictive):
    """y = f + ε with f ~ N(mean, latent), ε ~ N(0, e^g) and g ~ N(log_noise, spread), by quadrature over g."""

    mean: Float[Array, " N"]
    latent: Float[Array, " N"]
    log_noise: Float[Array, " N"]
    spread: Float[Array, " N"]
    nodes: int = eqx.field(static=True, default=20)

    @property
    def var(self) -> Float[Array, " N"]:
        """latent + e^(log_noise + spread / 2)."""
        return self.latent + jnp.exp(jnp.minimum(self.log_noise + 0.5 * self.spread, _MOST))

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log E N(y | mean, latent + e^g)."""
        return log_expected_normal_power(self.mean, self.latent, self.log_noise, self.spread, y, 1.0, self.nodes)

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """E Φ((y - mean) / √(latent + e^g))."""
        g, log_weights = normal_points(self.log_noise, self.spread, self.nodes)
        scale = jnp.sqrt(self.latent[:, None] + jnp.exp(jnp.minimum(g, _MOST)))
        return normal_cdf((y[:, None] - self.mean[:, None]) / scale) @ jnp.exp(log_weights)


def log_expected_normal_power(
    mean: PerRow, latent: PerRow, log_noise: PerRow, spread: PerRow, y: PerRow, alpha: float, nodes: int
) -> PerRow:
    """log E N(y | f, e^g)^α for f ~ N(mean, latent) and g ~ N(log_noise, spread), by quadrature over g.  That is log E
    N(y | mean, latent + e^g / α), + ½ (1 - α) (log 2π + g) - ½ log α within E.  The nodes are about the mode of the
    integrand, which an outlier moves many deviations from `log_noise`.  Of two modes, the lower one is left out, which
    costs log 2 nats where they are alike, and more where it is much the wider."""

    def power(g: Array) -> Array:
        g = jnp.minimum(g, _MOST)
        log_z = norm.logpdf(y[:, None], mean[:, None], jnp.sqrt(latent[:, None] + jnp.exp(g) / alpha))
        return log_z + 0.5 * (1.0 - alpha) * (jnp.log(2.0 * jnp.pi) + g) - 0.5 * jnp.log(alpha)

    # all modes are between these ends; there are two where either a large f or a large noise explains the target
    half = 0.5 * spread
    ends = log_noise - half, jnp.maximum(log_noise + half, jnp.log(alpha * (y - mean) ** 2 + 1e-30))
    starts = jnp.linspace(*ends, 24, axis=1)
    heights = power(starts) - 0.5 * (starts - log_noise[:, None]) ** 2 / jnp.maximum(spread, 1e-8)[:, None]
    start = jnp.take_along_axis(starts, jnp.argmax(heights, axis=1)[:, None], axis=1)[:, 0]
    return log_peaked_expectation(power, log_noise, spread, start, nodes)


_MOST = 80.0  # largest log variance: e^80 is a number of float32
_LARGE = 5.0  # least argument of Mills ratio's continued fraction


class LaplacePredictive(ContinuousPredictive):
    """y = f + ε with f ~ N(mean, latent) and ε of a Laplace distribution of variance `noise` = 2 b².  The
    normal-Laplace distribution (Reed 2006), whose density and distribution function have closed forms."""

    mean: Float[Array, " N"]
    latent: Float[Array, " N"]
    noise: Float[Array, ""]

    @property
    def var(self) -> Float[Array, " N"]:
        return self.latent + self.noise

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(y), the convolution of the two densities."""
        return jnp.logaddexp(*self._log_sides(y)) - 0.5 * jnp.log(2.0 * self.noise)

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """Φ(d/s) + ½ e^(d/b + s²/2b²) Φ(-d/s - s/b) - ½ e^(-d/b + s²/2b²) Φ(d/s - s/b), with d = y - mean."""
        below, above = map(jnp.exp, self._log_sides(y))
        return normal_cdf((y - self.mean) / jnp.sqrt(self.latent)) + 0.5 * (below - above)

    def _log_sides(self, y: Float[Array, " N"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """±d/b + s²/2b² + log Φ(-u), u = ±d/s + s/b: the terms of the density with noise below and above 0.  For large
        u that is a difference of large numbers.  With u²/2 - d²/2s² = ±d/b + s²/2b² it becomes -d²/2s² + log R(u) - ½
        log 2π with the Mills ratio R(u) = Φ(-u)/φ(u)."""
        b, s = jnp.sqrt(0.5 * self.noise), jnp.sqrt(self.latent)
        d = y - self.mean

        def side(sign: float) -> Array:
            u = sign * d / s + s / b
            small, large = jnp.minimum(u, _LARGE), jnp.maximum(u, _LARGE)
            direct = sign * d / b + 0.5 * (s / b) ** 2 + norm.logcdf(-small)
            by_ratio = -0.5 * (d / s) ** 2 + _log_mills_ratio(large) - 0.5 * jnp.log(2.0 * jnp.pi)
            return jnp.where(u > _LARGE, by_ratio, direct)

        return side(1.0), side(-1.0)


def _log_mills_ratio(u: Float[Array, " N"]) -> Float[Array, " N"]:
    """log Φ(-u)/φ(u) for u ≥ 5, by Laplace's continued fraction 1/(u + 1/(u + 2/(u + 3/(u + ...))))."""
    tail = u
    for k in range(30, 0, -1):
        tail = u + k / tail
    return -jnp.log(tail)
