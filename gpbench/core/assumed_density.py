"""Assumed-density filtering of networks: moments of rectified normal variables, and Gamma distributions of precisions.
Hernández-Lobato and Adams, "Probabilistic backpropagation", ICML 2015, section 3.  The paper switches to an asymptotic
series far in the tail of the rectifier; here the tails come from a continued fraction, without cancellation, and their
derivatives are closed forms."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float

from gpbench.core.networks import Network


class Gamma(eqx.Module):
    """Gamma distribution Gam(τ | shape, rate) of a precision τ."""

    shape: Float[Array, ""]
    rate: Float[Array, ""]

    @property
    def noise(self) -> Float[Array, ""]:
        """E 1/τ = rate / (shape - 1), the variance of a residual of precision τ; positive where `valid`."""
        return self.rate / (self.shape - 1.0)

    @property
    def valid(self) -> Bool[Array, ""]:
        """True for a distribution with a finite E 1/τ."""
        return jnp.isfinite(self.shape) & jnp.isfinite(self.rate) & (self.shape > 1.0) & (self.rate > 0.0)

    def log_evidence(self, residual: Float[Array, ""], variance: Float[Array, ""]) -> Float[Array, ""]:
        """log Z of an observation, in nats: log N(residual | 0, variance + E 1/τ), with the variance of the prediction.
        The paper approximates the Student t density by the normal one of the same variance."""
        return norm.logpdf(residual, 0.0, jnp.sqrt(variance + self.noise))

    def observe(self, residual: Float[Array, ""], variance: Float[Array, ""]) -> "Gamma":
        """The distribution after an observation whose evidence is `log_evidence`; it can be invalid (`valid`).  The
        paper's Z, Z₁ and Z₂ are the evidences under shape, shape + 1 and shape + 2."""
        v0, v1, v2 = (variance + self.rate / (self.shape + k) for k in (-1.0, 0.0, 1.0))

        def log_ratio(old: Array, new: Array, gap: Array) -> Array:
            """log N(residual | 0, new) / N(residual | 0, old), gap = old - new."""
            return -0.5 * (jnp.log1p(-gap / old) + residual**2 * gap / (old * new))

        first = log_ratio(v0, v1, self.rate / (self.shape * (self.shape - 1.0)))
        return self.matched(first, log_ratio(v1, v2, self.rate / (self.shape * (self.shape + 1.0))) - first)

    def matched(self, first: Float[Array, ""], second: Float[Array, ""]) -> "Gamma":
        """Matches E τ and E τ² where first = log Z₁/Z and second = log Z₂ Z / Z₁².  The paper's updates of α and β,
        whose differences of numbers that grow with the shape are taken in closed form: 1 / shape' = D / shape and rate'
        = rate Z / (Z₁ D) with D = e^second + shape (e^second - 1)."""
        D = jnp.exp(second) + self.shape * jnp.expm1(second)
        return Gamma(self.shape / D, self.rate * jnp.exp(-first) / D)


_FURTHEST = 40.0  # number of standard deviations from 0 beyond which a normal variable is taken to be on one side of it
_LEAST = 1e-20  # square of the smallest standard deviation by which a mean is divided
_LARGE, _TERMS = 5.0, 16  # the continued fraction serves from t = 5, where 16 terms have a relative error below 1e-10


def relu_moments(
    mean: Float[Array, "..."], variance: Float[Array, "..."]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Mean and variance of a rectified normal variable max(0, x), x ~ N(mean, variance) (section 3.2 of the paper).
    Their gradients are finite down to a variance of 0."""
    # the larger variance keeps t ≤ 40 and its gradient finite; beyond, all tails are 0 in float64 too
    std = jnp.sqrt(jnp.maximum(variance, jnp.maximum((mean / _FURTHEST) ** 2, _LEAST)))
    above = mean > 0.0
    t = jnp.where(above, mean, -mean) / std
    _, first, second = _tails(t)
    # of max(0, x) with mean ≤ 0: s p₁ and v (p₂ - p₁²); and max(0, x) = x + max(0, -x) gives those with mean > 0
    share = jnp.where(above, 1.0 - second - 2.0 * t * first, second) - first**2
    return jnp.where(above, mean, 0.0) + std * first, variance * share


@jax.custom_jvp
def _tails(t: Float[Array, "..."]) -> tuple[Float[Array, "..."], Float[Array, "..."], Float[Array, "..."]]:
    """(p₀, p₁, p₂), p_k = E max(0, z - t)^k for z ~ N(0, 1) and t ≥ 0, where p₀ = P(z > t).  With the continued
    fraction of Mills' ratio R = p₀ / φ = 1 / (t + K), K = 1 / (t + L), L = 2 / (t + 3 / (t + ...)), the differences p₁
    = φ - t p₀ and p₂ = (t² + 1) p₀ - t φ are the products φ R K and φ R K L."""
    density, near = norm.pdf(t), norm.cdf(-t)
    direct = near, density - t * near, (t**2 + 1.0) * near - t * density
    u = jnp.maximum(t, _LARGE)
    tail = u
    for k in range(_TERMS, 2, -1):
        tail = u + k / tail
    tail = 2.0 / tail
    inner = 1.0 / (u + tail)
    mills = density / (u + inner)
    far = mills, mills * inner, mills * inner * tail
    p0, p1, p2 = (jnp.where(t < _LARGE, a, b) for a, b in zip(direct, far))
    return p0, p1, p2


@_tails.defjvp
def _tails_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    # p₀' = -φ, p₁' = -p₀, p₂' = -2 p₁
    (t,), (dt,) = primals, tangents
    p0, p1, p2 = _tails(t)
    return (p0, p1, p2), (-norm.pdf(t) * dt, -p0 * dt, -2.0 * p1 * dt)


def output_moments(
    mean: Network, variance: Network, X: Float[Array, "N D"]
) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
    """Means and variances of a network's outputs at X under independent weights with these means and variances.  Exact
    with at most one hidden layer.  Later layers take the hidden units of a layer for independent and their
    pre-activations for normal, as the paper does (section 3.2)."""
    m, v = X, jnp.zeros_like(X)
    for depth, (M, V) in enumerate(zip(mean.layers, variance.layers)):
        m, v = relu_moments(m, v) if depth else (m, v)
        # (m² + v) V_w + v M_w² + V_b, over the square of the layer's scale
        v = ((m**2 + v) @ V.weight + v @ M.weight**2 + V.bias) / M.scale**2
        m = M(m)
    return (m[:, 0], v[:, 0]) if m.shape[1] == 1 else (m, v)
