"""Counts with a rate e^f and a normal f: probabilities, distribution functions, intervals and scores.  All expressions
are about f = log y, where the terms of a log probability cancel: with log y! subtracted at last, float32 loses 0.1 nats
at y = 1e5, and with log Γ(y + r) - log Γ(r) 0.7 nats at r = 1e6."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, xlogy
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.predictive.base import ContinuousPredictive
from gpbench.core.predictive.numerical import Cdf
from gpbench.core.quadrature import PerRow, log_peaked_expectation
from gpbench.scored import ENDS

LARGEST = 40.0
"""Largest log rate: e^40 is more than any count, and its square a number of float32."""
_DEPTH = 23.0  # integrands are cut off where they have fallen by e^-23 = 1e-10
_EXACT = 32  # counts below this are summed one by one in the score; of larger ones the sum is an integral
_HALVINGS = 32
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
"""Nodes and weights of a Gauss-Legendre rule on [-1, 1], of the score."""
_PANEL = np.polynomial.legendre.leggauss(32)  # those of each of the three panels of a cdf

Shape = Float[Array, ""] | None
"""The shape r of a negative binomial distribution; None for its limit, the Poisson distribution."""


def log_count(f: Float[Array, "..."], y: Float[Array, "..."], shape: Shape) -> Float[Array, "..."]:
    """log p(y|f) of a count y with the mean e^f, and the variance e^f or, with a shape r, e^f + e^(2f)/r."""
    f = jnp.minimum(f, LARGEST)
    positive = jnp.where(y > 0, y, 1.0)
    if shape is None:
        return jnp.where(y > 0, _stirling(positive) + _log_kernel(f - jnp.log(positive), positive, None), -jnp.exp(f))
    constant = _stirling(positive) + _stirling(shape) - _stirling(positive + shape) - jnp.log1p(positive / shape)
    none = -shape * jax.nn.softplus(f - jnp.log(shape))
    return jnp.where(y > 0, constant + _log_kernel(f - jnp.log(positive), positive, shape), none)


def _log_kernel(d: Float[Array, "..."], y: Float[Array, "..."], shape: Shape) -> Float[Array, "..."]:
    """log p(y|f) at f = log y + d less its largest value, that at d = 0, for y > 0, whole or not."""
    if shape is None:
        return y * (d - jnp.expm1(d))
    p, q = y / (y + shape), shape / (y + shape)
    return -y * _log_mean(p, q, -d) - shape * _log_mean(q, p, d)


def _log_mean(p: Float[Array, "..."], q: Float[Array, "..."], d: Float[Array, "..."]) -> Float[Array, "..."]:
    """log(p + q e^d) with p + q = 1, exact for small q and d, and without overflow for large d.  A shape of 1e6
    multiplies it, and its rounding: log1p is left only where e^d overflows, or 1 - q + q e^d cancels."""
    near = jnp.clip(d, jnp.where(p < 0.5, -1.0, -LARGEST), LARGEST)
    return jnp.where(near == d, jnp.log1p(q * jnp.expm1(near)), jnp.logaddexp(jnp.log(p), d + jnp.log(q)))


def _stirling(y: Float[Array, "..."]) -> Float[Array, "..."]:
    """y log y - y - log y!, for y ≥ 0, whole or not."""
    small, large = jnp.minimum(y, 10.0), jnp.maximum(y, 10.0)
    series = 1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * large**2)) / large**2) / large**2
    by_series = -0.5 * jnp.log(2.0 * jnp.pi * large) - series / large
    return jnp.where(y > 10.0, by_series, xlogy(small, small) - small - gammaln(small + 1.0))


def log_expected_power(mean: PerRow, variance: PerRow, y: PerRow, shape: Shape, alpha: float, nodes: int) -> PerRow:
    """log E p(y|f)^α for f ~ N(mean, variance), by quadrature about the mode of the integrand."""
    power = lambda f: alpha * log_count(f, y[:, None], shape)
    return log_peaked_expectation(power, mean, variance, jnp.minimum(mean, jnp.log1p(y)), nodes)


class CountPredictive(ContinuousPredictive):
    """Counts with the mean e^f, f ~ N(location, latent), Poisson or negative binomial given f.  `log_prob` is a log
    probability.  `cdf` is P(target ≤ y) at whole y, and increases smoothly between them."""

    location: Float[Array, " N"]
    latent: Float[Array, " N"]
    shape: Shape = None
    nodes: int = eqx.field(static=True, default=20)

    @property
    def mean(self) -> Float[Array, " N"]:
        """e^(location + latent / 2)."""
        return jnp.exp(jnp.minimum(self.location + 0.5 * self.latent, LARGEST))

    @property
    def var(self) -> Float[Array, " N"]:
        """mean + mean² (e^latent - 1 + e^latent / r)."""
        wider = jnp.expm1(jnp.minimum(self.latent, LARGEST))
        more = 0.0 if self.shape is None else (1.0 + wider) / self.shape
        return self.mean + self.mean * (self.mean * (wider + more))

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log E p(y|f)."""
        return log_expected_power(self.location, self.latent, y, self.shape, 1.0, self.nodes)

    def cdf(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """P(T > f), where T is the log of a gamma variable of shape y + 1, or of the ratio of that and one of mean 1.
        The integral over T = log(y + 1) + d of Φ((T - location) / s), s² = latent, is by a Gauss-Legendre rule in v, d
        = width sinh v, on three panels with the ends location ± 6 s, between which Φ rises.  Its errors are below 1e-6
        for s from 1e-4, the least, to 2, and below 2e-6 to 4."""
        a, s, m = (x[:, None, None] for x in (y + 1.0, jnp.sqrt(jnp.maximum(self.latent, 1e-8)), self.location))
        a = jnp.where(a > 0.0, a, 1.0)
        low, high, width2 = -_reach_down(a), _reach_up(a), 1.0 / a
        if self.shape is not None:
            low, high = low - _reach_up(self.shape), high + _reach_down(self.shape)
            width2 = jnp.minimum(width2 + 1.0 / self.shape, 1.0)
        width, rise = jnp.sqrt(width2), m - jnp.log(a)
        inner = (jnp.clip(rise + reach * s, low, high) for reach in (-6.0, 6.0))
        ends = jnp.arcsinh(jnp.concatenate([low, *inner, high], axis=1) / width)
        x, w = (jnp.asarray(array, s.dtype) for array in _PANEL)
        half = 0.5 * (ends[:, 1:] - ends[:, :-1])
        v = ends[:, :-1] + half * (1.0 + x)
        d = width * jnp.sinh(v)
        density = jnp.exp(_log_kernel(d, a, self.shape)) * jnp.cosh(v)
        # products with w are several times as fast as sums, into which XLA fuses all of the above
        total, above = (jnp.sum((g @ w) * half[:, :, 0], axis=1) for g in (density, density * norm.cdf((d - rise) / s)))
        return jnp.where(y > -1.0, above / total, 0.0)

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        """`log_prob`, `cdf`, `mean`, `var`, and `below`, P(target < y), each (N,)."""
        arrays = super().pointwise(y)
        below = jnp.maximum(arrays["cdf"] - jnp.exp(arrays["log_prob"]), 0.0)
        return arrays | {"below": jnp.where(y > 0.0, below, 0.0)}

    @staticmethod
    def intervals_of(
        cdf: Cdf, mean: Float[Array, " N"], var: Float[Array, " N"], y: Float[Array, " N"]
    ) -> dict[str, Array]:
        return {"crps": _score(cdf, mean, var, y), **dict(zip(ENDS, _quantiles(cdf, mean, var)))}


def _reach_down(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """Distance from log a to the lower end of the log of a gamma variable of shape a."""
    return _DEPTH / a + jnp.sqrt(2.0 * _DEPTH / a)


def _reach_up(a: Float[Array, "..."]) -> Float[Array, "..."]:
    """Distance from log a to its upper end."""
    return jnp.log1p(_reach_down(a))


# The cdf is mapped over a leading axis: a program with a copy of it for each use takes seconds to compile.


def _quantiles(cdf: Cdf, mean: Float[Array, " N"], var: Float[Array, " N"]) -> Float[Array, "P N"]:
    """The smallest counts whose cdf is that of `ENDS` or more, by bisection in log(y + 2) up to Cantelli's bound."""
    levels = jnp.asarray([*ENDS.values()], mean.dtype)[:, None]

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        is_below = jax.vmap(cdf)(jnp.floor(jnp.exp(middle)) - 2.0) < levels
        return jnp.where(is_below, middle, low), jnp.where(is_below, high, middle)

    high = jnp.log(mean + jnp.sqrt(levels / (1.0 - levels) * var) + 3.0)
    return jnp.floor(jnp.exp(jax.lax.fori_loop(0, _HALVINGS, halve, (jnp.zeros_like(high), high))[1])) - 2.0


def _score(cdf: Cdf, mean: Float[Array, " N"], var: Float[Array, " N"], y: Float[Array, " N"]) -> Float[Array, " N"]:
    """Continuous ranked probability score Σ_k (F(k) - 1{k ≥ y})² of each row.  From k = 32 on the sum is the integral
    from k - ½ to k + ½ with Euler's and Maclaurin's first correction, over log k = c + w sinh v with the moments c and
    w² of a log-normal distribution.  It runs to counts of 1e14, and leaves out every 1 - F that may be the rounding of
    F."""
    largest = 1.0 - 32.0 * float(np.finfo(y.dtype).eps)

    def square(F: Array, is_above: Array) -> Array:
        return jnp.where(is_above & (largest < F), 0.0, (F - is_above) ** 2)

    w = jnp.sqrt(jnp.log1p(var / jnp.maximum(mean, 1e-30) ** 2))
    c = jnp.log(jnp.maximum(mean, 1e-30)) - 0.5 * w**2

    def add(total: Array, k: Array) -> tuple[Array, None]:
        return total + square(cdf(jnp.full_like(y, k)), k >= y), None

    exact = jax.lax.scan(add, jnp.zeros_like(y), jnp.arange(_EXACT, dtype=y.dtype))[0]
    start, at_y = jnp.full_like(y, _EXACT - 0.5), jnp.maximum(y, _EXACT) - 0.5
    bounds = jnp.stack([jnp.log(start), jnp.log(at_y), jnp.maximum(c + 12.0 * w, jnp.log(at_y))])
    # the integrals from `start` to the count of F², and from there on of (F - 1)²
    ends = jnp.arcsinh((bounds - c) / w)
    middle, half = 0.5 * (ends[1:] + ends[:-1]), 0.5 * (ends[1:] - ends[:-1])
    is_above = jnp.asarray([[False], [True]])

    def add_node(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        v = middle + half * node[0]
        k = jnp.exp(c + w * jnp.sinh(v))
        return total + node[1] * square(jax.vmap(cdf)(k), is_above) * k * jnp.cosh(v), None

    rule = jnp.asarray(_NODES, y.dtype), jnp.asarray(_WEIGHTS, y.dtype)
    tail = jnp.sum(w * half * jax.lax.scan(add_node, jnp.zeros_like(middle), rule)[0], axis=0)
    # -(g'(high) - g'(low)) / 24 of either integrand g
    points = jnp.stack([start + 0.5, start - 0.5, start, at_y + 0.5, at_y - 0.5])
    up, down, centre, up_at_y, down_at_y = jax.vmap(cdf)(points)
    is_large = y >= _EXACT
    high, low = jnp.where(is_large, up_at_y - down_at_y, 0.0), (up - down) * (centre - ~is_large)
    return exact + tail - (high - low) / 12.0
