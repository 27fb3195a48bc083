"""Cosines of many numbers: several times faster on CPUs than the library's, which XLA does not vectorise there."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import Chebyshev, Polynomial

_DEGREES = {"float32": 6, "float64": 11}


@jax.custom_jvp
def cosine_of_turns(u: Float[Array, "..."]) -> Float[Array, "..."]:
    """cos(2πu) by a polynomial in the square of u's distance from the nearest whole number.

    The absolute error for |u| up to a few is 5e-7 in float32 and 2e-14 in float64; beyond, it is that of rounding u.
    """
    u = u - jnp.round(u)
    t = 4.0 * u * u
    *lower, last = _coefficients(u.dtype.name)
    value = jnp.full_like(t, last)
    for coefficient in reversed(lower):
        value = value * t + jnp.asarray(coefficient, t.dtype)
    return value


@cosine_of_turns.defjvp
def _derivative(primals, tangents):
    (u,), (du,) = primals, tangents
    return cosine_of_turns(u), 2.0 * np.pi * cosine_of_turns(u + 0.25) * du


@cache
def _coefficients(dtype: str) -> tuple[float, ...]:
    """Of cos(π√t) on [0, 1], where t = (2u)²: interpolation in Chebyshev points."""
    series = Chebyshev.interpolate(lambda t: np.cos(np.pi * np.sqrt(t)), _DEGREES[dtype], domain=[0.0, 1.0])
    return tuple(series.convert(kind=Polynomial).coef)
