"""Quantiles and the continuous ranked probability score of a density on the real line, from its cdf alone.

Both use x = centre + scale sinh v, which resolves the middle and reaches far into heavy tails.  Against a dense
trapezoid the score's relative error in float64 is below 1e-6 for Gaussians, Student t (df ≥ 2) and their mixtures, and
below 1e-4 where the density has a kink, as with Laplace noise without latent variance.  It is larger for mixtures whose
components are much narrower than their distances.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

Cdf = Callable[[Float[Array, " N"]], Float[Array, " N"]]
"""P(target ≤ y) of every row, as a function of y."""

_BISECTIONS = 48
_WIDEST = 40.0
"""Quantiles are sought up to sinh 40 = 1e17 standard deviations from the mean."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
"""Nodes and weights of a Gauss-Legendre rule on [-1, 1]."""
_TAIL = 9.0
"""Integrals end at sinh 9 = 4,000 quarter widths of the 95 % interval."""


def intervals(cdf: Cdf, mean: Float[Array, " N"], var: Float[Array, " N"], y: Float[Array, " N"]) -> dict[str, Array]:
    """Score and central interval of each row, from the cdf alone.

    Args:
        cdf: P(target ≤ y) for each row.
        mean: Means.
        var: Variances; infinite ones are allowed.
        y: Targets.

    Returns:
        `crps` at y, in the units of y, and the ends `low95` and `high95` of the central 95 % interval, each (N,).
    """
    low, high = (quantile(cdf, mean, var, p) for p in (0.025, 0.975))
    return {"crps": crps(cdf, y, low, high), "low95": low, "high95": high}


def quantile(cdf: Cdf, mean: Float[Array, " N"], var: Float[Array, " N"], p: float) -> Float[Array, " N"]:
    """The p-quantile of each row, by bisection.

    Args:
        cdf: P(target ≤ y) for each row.
        mean: Means, about which the quantile is sought.
        var: Variances; infinite ones are allowed.
        p: Probability in (0, 1).
    """
    scale = jnp.where(jnp.isfinite(var), jnp.sqrt(var), 1.0)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = 0.5 * (low + high)
        below = cdf(mean + scale * jnp.sinh(middle)) < p
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    ends = jnp.full_like(mean, -_WIDEST), jnp.full_like(mean, _WIDEST)
    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, ends)
    return mean + scale * jnp.sinh(0.5 * (low + high))


def crps(cdf: Cdf, y: Float[Array, " N"], low: Float[Array, " N"], high: Float[Array, " N"]) -> Float[Array, " N"]:
    """Continuous ranked probability score ∫ (F(x) - 1{x ≥ y})² dx of each row (Gneiting & Raftery 2007, eq. 20).

    Args:
        cdf: The distribution function F, for each row.
        y: Targets, on either side of which Gauss-Legendre quadrature is used.
        low: Lower end of the central 95 % interval.
        high: Upper end of it.
    """
    centre, scale = 0.5 * (low + high), 0.25 * (high - low)
    at_y = jnp.arcsinh((y - centre) / scale)

    def side(end: Array, u: Array) -> tuple[Array, Array]:
        v = at_y + (end - at_y) * u
        return cdf(centre + scale * jnp.sinh(v)), jnp.abs(end - at_y) * scale * jnp.cosh(v)

    def add(total: Array, node: tuple[Array, Array]) -> tuple[Array, None]:
        u, weight = node
        below, width_below = side(jnp.minimum(-_TAIL, at_y), u)
        above, width_above = side(jnp.maximum(_TAIL, at_y), u)
        return total + weight * (width_below * below**2 + width_above * (1.0 - above) ** 2), None

    nodes = jnp.asarray(0.5 * (1.0 + _NODES), y.dtype), jnp.asarray(0.5 * _WEIGHTS, y.dtype)  # on [0, 1]
    return jax.lax.scan(add, jnp.zeros_like(y), nodes)[0]
