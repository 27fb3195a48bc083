"""Expectations under normal distributions that have no closed form: Gauss-Hermite and quasi-random rules."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from gpbench.errors import ConfigError

PerRow = Float[Array, " N"]
"""A number for each of N rows."""
_Integrand = Callable[[Float[Array, "N _"]], Float[Array, "N _"]]
"""A function of values of f, a row of them for each n and a column for each node of a rule."""


@cache
def gauss_hermite(nodes: int) -> tuple[Float[np.ndarray, " Q"], Float[np.ndarray, " Q"]]:
    """Gauss-Hermite rule for x ~ N(0, 1), points x and weights w: Σ w g(x) = E g(x), exact up to the degree 2 Q - 1."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


def normal_points(
    mean: Float[Array, " N"], variance: Float[Array, " N"], nodes: int = 20
) -> tuple[Float[Array, "N Q"], Float[Array, " Q"]]:
    """The points of `gauss_hermite` for f ~ N(mean, variance), a row of them for each n, and their log weights."""
    x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(nodes))
    return mean[:, None] + jnp.sqrt(variance)[:, None] * x, jnp.log(w)


def normal_expectation(g: _Integrand, mean: PerRow, variance: PerRow, nodes: int = 20) -> PerRow:
    """E g(f) under N(f | mean, variance) for every row, by Gauss-Hermite quadrature."""
    x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(nodes))
    return g(mean[:, None] + jnp.sqrt(variance)[:, None] * x) @ w


def log_normal_expectation(log_g: _Integrand, mean: PerRow, variance: PerRow, nodes: int = 20) -> PerRow:
    """log E g(f) under N(f | mean, variance) for a positive g, by its logarithm, without underflow."""
    x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(nodes))
    return logsumexp(log_g(mean[:, None] + jnp.sqrt(variance)[:, None] * x), b=w, axis=-1)


def log_peaked_expectation(log_g: _Integrand, mean: PerRow, variance: PerRow, start: PerRow, nodes: int = 20) -> PerRow:
    """log E g(f) under N(f | mean, variance) for a g that may be much narrower than the normal, or far from it.  The
    nodes are those of a normal about a mode of g N, of its curvature there, and no wider than N.  Newton's method goes
    to the mode from `start`, at most 40 away.  The integral does not depend on where the nodes are, and gradients leave
    them alone."""
    m, v = mean[:, None], jnp.maximum(variance, 1e-8)[:, None]
    slope_of = jax.grad(lambda f: jnp.sum(log_g(f)))

    # about the mean: in float32 the rounding of f is larger than the deviation of the narrowest normals
    def derivatives(d: Array) -> tuple[Array, Array]:
        slope, curve = jax.jvp(slope_of, (m + d,), (jnp.ones_like(d),))
        return slope - d / v, 1.0 / v - jnp.minimum(curve, 0.0)

    def newton(_: Any, d: Array) -> Array:
        slope, precision = derivatives(d)
        return d + jnp.clip(slope / precision, -2.0, 2.0)

    mode = jax.lax.fori_loop(0, 20, newton, start[:, None] - m)
    mode, width = jax.lax.stop_gradient((mode, 1.0 / jnp.sqrt(derivatives(mode)[1])))
    x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(nodes))
    d = mode + width * x
    log_ratio = 0.5 * (x**2 - d**2 / v) + jnp.log(width) - 0.5 * jnp.log(v)
    return logsumexp(log_g(m + d) + log_ratio, b=w, axis=-1)


@cache
def gaussian_points(samples: int, dimensions: int) -> Float[np.ndarray, "S D"]:
    """Points whose average approximates an expectation under N(0, I), the same at each call.  They are `samples`, a
    power of two of at least 4 D, Sobol points in antithetic pairs, corrected to an identity covariance: exact for
    polynomials of degree 3."""
    from scipy.special import ndtri
    from scipy.stats import qmc  # takes half a second, and few runs need it

    half = samples // 2
    uniform = qmc.Sobol(dimensions, scramble=True, seed=0).random_base2(half.bit_length() - 1)
    points = ndtri(uniform)
    # L⁻¹ x has an identity covariance, where L Lᵀ is that of the points and their opposites
    L = np.linalg.cholesky(points.T @ points / half)
    points = np.linalg.solve(L, points.T).T
    return np.concatenate([points, -points])


def require_points(setting: str, samples: int, dimensions: int) -> None:
    """Raises ConfigError unless `gaussian_points` has a rule of so many points, whose number the setting gives."""
    enough = max(2, 1 << (4 * dimensions - 1).bit_length())
    if samples < enough or samples & (samples - 1):
        raise ConfigError(f"{setting}={samples} must be a power of two of at least {enough}, four times the dimensions")
