"""Student t noise about a Gaussian latent value, by one-dimensional integrals that hold for any ratio of the two.  A
power of 1 + z is a mixture over a precision λ, (1 + z)^-a = ∫ λ^(a-1) e^(-λ (1 + z)) dλ / Γ(a), and with z = (y - f)² /
(df scale²) each term is Gaussian in f, so that its expectation has a closed form.  The remaining integral over u = log
λ is smooth with exponential tails, and the trapezoidal rule converges geometrically.  Gauss-Hermite nodes in f would
miss the peak at f = y where the noise is small beside the latent variance."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import erf, gammaln, logsumexp
from jaxtyping import Array, Float

from gpbench.core.predictive.base import ContinuousPredictive

_DEPTH = 23.0  # integrands are cut off where they have fallen by e^-23 = 1e-10
_Nodes = tuple[Float[Array, "N Q"], Float[Array, " N"]]
"""Nodes and their spacings."""


def log_expected_power(
    a: Float[Array, ""], distance2: Float[Array, " N"], ratio: Float[Array, " N"], nodes: int
) -> Float[Array, " N"]:
    """log E (1 + z)^-a with z = (√distance2 + √ratio ε)² and ε ~ N(0, 1), by the trapezoidal rule.  `distance2` and
    `ratio` are the squared distance of y from the mean of f, and the variance of f, in units of df scale²."""
    u, h = _grid(a, distance2, nodes)
    # ∫ e^(a u - e^u) E e^(-z e^u) du / Γ(a)
    log_terms = a * u - jnp.exp(u) + _log_damping(u, distance2, ratio)
    return logsumexp(log_terms, axis=-1) + jnp.log(h) - gammaln(a)


def expected_log1p(distance2: Float[Array, " N"], ratio: Float[Array, " N"], nodes: int) -> Float[Array, " N"]:
    """E log(1 + z), with z and arguments as in `log_expected_power`.  From Frullani's integral log(1 + z) = ∫ (1 -
    e^(-λ z)) e^-λ / λ dλ."""
    low = -_DEPTH - jnp.log1p(distance2 + ratio)
    u, h = _uniform(low, jnp.full_like(low, jnp.log(_DEPTH)), nodes)
    return h * jnp.sum(-jnp.expm1(_log_damping(u, distance2, ratio)) * jnp.exp(-jnp.exp(u)), axis=-1)


def _log_damping(
    u: Float[Array, "N Q"], distance2: Float[Array, " N"], ratio: Float[Array, " N"]
) -> Float[Array, "N Q"]:
    """log E e^(-λ z) = -λ distance2 / (1 + 2 λ ratio) - ½ log(1 + 2 λ ratio) at λ = e^u."""
    spread = 1.0 + 2.0 * jnp.exp(u) * ratio[:, None]
    return -jnp.exp(u) * distance2[:, None] / spread - 0.5 * jnp.log(spread)


def _grid(a: Float[Array, ""], distance2: Float[Array, " N"], nodes: int) -> _Nodes:
    """Nodes in u = log λ, (N, nodes), and their spacings (N,), for integrands between those of Γ(a) and of its
    density at λ (1 + distance2): from the left tail of the one to the right tail of the other."""
    low = jnp.log(a) - jnp.log1p(distance2) - _DEPTH / a - jnp.sqrt(2.0 * _DEPTH / a)
    high = jnp.log(a + _DEPTH + jnp.sqrt(2.0 * _DEPTH * a))
    return _uniform(low, jnp.broadcast_to(high, low.shape), nodes)


def _uniform(low: Float[Array, " N"], high: Float[Array, " N"], nodes: int) -> _Nodes:
    """Equally spaced nodes.  The integral does not depend on where they are, and gradients leave them alone."""
    low, high = jax.lax.stop_gradient((low, high))
    h = (high - low) / (nodes - 1)
    return low[:, None] + h[:, None] * jnp.arange(nodes, dtype=low.dtype), h


class StudentTPredictive(ContinuousPredictive):
    """y = f + scale t with f ~ N(mean, latent) and t of Student's distribution with `df` degrees of freedom.  `var` is
    infinite where df ≤ 2."""

    mean: Float[Array, " N"]
    latent: Float[Array, " N"]
    scale: Float[Array, ""]
    df: Float[Array, ""]
    nodes: int = eqx.field(static=True, default=64)

    @property
    def var(self) -> Float[Array, " N"]:
        return self.latent + student_t_variance(self.scale, self.df)

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log E t(y | f, scale, df)."""
        width2 = self.df * self.scale**2
        power = log_expected_power(
            0.5 * (self.df + 1.0), (y - self.mean) ** 2 / width2, self.latent / width2, self.nodes
        )
        return power + log_constant(self.scale, self.df)

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """½ + E ½ erf(d / √(2 latent + df scale² / λ)) with d = y - mean and λ ~ Γ(df / 2)."""
        width2, d = self.df * self.scale**2, y - self.mean
        u, h = _grid(0.5 * (self.df + 1.0), jnp.zeros_like(d), self.nodes)
        weight = jnp.exp(0.5 * self.df * u - jnp.exp(u) - gammaln(0.5 * self.df))
        conditional = erf(d[:, None] / jnp.sqrt(2.0 * self.latent[:, None] + width2 * jnp.exp(-u)))
        return 0.5 + 0.5 * h * jnp.sum(weight * conditional, axis=-1)


def log_constant(scale: Float[Array, ""], df: Float[Array, ""]) -> Float[Array, ""]:
    """Log density of scale t at 0: log Γ((df + 1) / 2) - log Γ(df / 2) - ½ log(π df) - log scale."""
    return gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * jnp.log(jnp.pi * df) - jnp.log(scale)


def student_t_variance(scale: Float[Array, ""], df: Float[Array, ""]) -> Float[Array, ""]:
    """Variance of scale t: scale² df / (df - 2), infinite for df ≤ 2."""
    return jnp.where(df > 2.0, scale**2 * df / jnp.where(df > 2.0, df - 2.0, 1.0), jnp.inf)
