"""Kernels by their specifications, rows and closed forms, which tests of kernels share."""

import jax
import jax.numpy as jnp
import numpy as np

from gpbench import registry
from gpbench.core.kernels import kernel_spec

VALUES = {
    str(kernel_spec(value)): value
    for value in [
        *(name for name in registry.KERNELS if name not in ("sum", "product")),
        {"matern12": {"inputs": [2, 0]}},
        {"matern52": {"isotropic": True}},
        {"periodic": {"isotropic": True, "period": 2.5}},
        {"sum": ["linear", "constant", {"squared_exponential": {"inputs": [1]}}]},
        {"product": ["periodic", "squared_exponential"]},
        {"product": [{"matern32": {"inputs": [0]}}, {"sum": ["linear", "constant"]}]},
        {"anova": {"order": 3, "base": "matern12"}},
        {"anova": {"order": 1, "base": {"sum": ["linear", "constant"]}, "inputs": [0, 2]}},
    ]
}
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
AMPLITUDE, SQUARED = 2.0, np.array([0.5, 1.0, 4.0])


def stationary(family, *more):
    return family(jnp.log(AMPLITUDE), jnp.log(SQUARED), *more)


@jax.jit
def cross(kernel, X=X, Y=Y):
    return kernel.cross(jnp.asarray(X), jnp.asarray(Y))
