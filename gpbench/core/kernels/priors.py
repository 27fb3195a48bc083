"""A prior on lengthscales, which keeps inputs of little use from being fitted."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float

from gpbench.core.kernels.base import Kernel
from gpbench.ranges import LENGTHSCALE_PRIOR


class LengthscalePrior(NamedTuple):
    """log l ~ N(log(median √D), spread²) for every lengthscale l of a kernel of D inputs.

    The median grows with √D as the distances between rows do (Hvarfner, Hellsten and Nardi 2024).
    """

    median: float
    spread: float

    def log_prob(self, kernel: Kernel, inputs: int) -> Float[Array, ""]:
        """The log density of the logarithms of all lengthscales of `kernel`, whose parameters they are."""
        centre = math.log(self.median * math.sqrt(inputs))
        leaves = jax.tree_util.tree_leaves_with_path(kernel)
        lengthscales = [leaf for path, leaf in leaves if jax.tree_util.keystr(path[-1:]) == ".log_lengthscale2"]
        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(kernel)))
        return sum((norm.logpdf(0.5 * leaf, centre, self.spread).sum() for leaf in lengthscales), zero)


def lengthscale_prior(value: Any) -> LengthscalePrior | None:
    """The prior that the configuration's value means: None, or {median: M, spread: S}.  Raises ConfigError."""
    if isinstance(value, LengthscalePrior):
        return value
    LENGTHSCALE_PRIOR.check("method.lengthscale_prior", value)
    return None if value is None else LengthscalePrior(float(value["median"]), float(value["spread"]))
