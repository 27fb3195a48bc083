"""Gauss-Hermite quadrature: expectations under a normal distribution that have no closed form."""

from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@cache
def gauss_hermite(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights, each (nodes,), with Σ w g(x) = E g(x) for x ~ N(0, 1), exact up to degree 2 nodes - 1."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    return x, w / w.sum()


def normal_expectation(
    g: Callable[[Float[Array, "N Q"]], Float[Array, "N Q"]],
    mean: Float[Array, " N"],
    variance: Float[Array, " N"],
    nodes: int = 20,
) -> Float[Array, " N"]:
    """E g(f) under N(f | mean, variance) for every n.  `g` sees the values f at all nodes, a column for each."""
    x, w = (jnp.asarray(a, mean.dtype) for a in gauss_hermite(nodes))
    return g(mean[:, None] + jnp.sqrt(variance)[:, None] * x) @ w
