"""Kernels of functional ANOVA effects: zero-mean functions on the unit cube (paper `gam`, equation 8).

Durrande, Ginsbourger, Roustant and Carraro (2013): a Gaussian process with the one-dimensional kernel g, conditioned on
∫₀¹ f(x) dx = 0, has the kernel s(x, y) = g(x, y) - I(x) I(y) / II with I(x) = ∫ g(x, t) dt and II = ∫ I(x) dx.
"""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf
from jaxtyping import Array, Float

from gpbench.core.kernels.base import Kernel, words
from gpbench.core.kernels.product import UnitAmplitude
from gpbench.core.kernels.squared_exponential import SquaredExponential

_NODES = 32
"""Of a Gauss-Legendre rule on each side of x, where a kernel can have a kink."""


class Effect(Kernel):
    """k(x, y) = amplitude · Π_d s_d(x_d, y_d), s_d the zero-mean kernel of the d-th of `bases`.

    Its functions have the mean 0 over the unit interval in each input.  Only one amplitude is identifiable, so those of
    bases that have one are 1; linear kernels and sums keep a scale, which is redundant.  Outside [0, 1] the kernel is
    defined by the same formula.
    """

    log_amplitude: Float[Array, ""]
    bases: Kernel  # every leaf has a leading axis of length D
    family: ClassVar[str] = "effect"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""

        def one(base: Kernel, x, y):
            # As a matrix product: XLA computes the error functions of a broadcast product anew for each pair of rows
            correction = (integral(base, x) / double_integral(base, x.dtype))[:, None] @ integral(base, y)[None, :]
            return base.cross(x[:, None], y[:, None]) - correction

        return jnp.exp(self.log_amplitude) * jnp.prod(jax.vmap(one)(self.bases, X.T, Y.T), axis=0)

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""

        def one(base: Kernel, x):
            return base.diag(x[:, None]) - integral(base, x) ** 2 / double_integral(base, x.dtype)

        return jnp.exp(self.log_amplitude) * jnp.prod(jax.vmap(one)(self.bases, X.T), axis=0)

    def describe(self) -> str:
        """The family of the bases, with the amplitude."""
        base = self.bases.kernel if isinstance(self.bases, UnitAmplitude) else self.bases
        return f"zero-mean {words(base.family)} kernel (amplitude {jnp.exp(self.log_amplitude):.3g})"


def integral(base: Kernel, x: Float[Array, " N"]) -> Float[Array, " N"]:
    """I(x) = ∫₀¹ g(x, t) dt of a one-dimensional kernel: in closed form for the squared exponential.

    For other kernels by quadrature on both sides of x, so that a kink at t = x costs no accuracy.
    """
    if (scale := _lengthscale(base)) is not None:
        root = math.sqrt(2) * scale
        return 0.5 * math.sqrt(math.pi) * root * (erf((1 - x) / root) + erf(x / root))
    nodes, weights = _gauss_legendre(x.dtype)
    split = jnp.clip(x, 0.0, 1.0)

    def one(x, split):
        t = jnp.concatenate([split * nodes, split + (1 - split) * nodes])
        return base.cross(x[None, None], t[:, None])[0] @ jnp.concatenate([split * weights, (1 - split) * weights])

    return jax.vmap(one)(x, split)


def double_integral(base: Kernel, dtype) -> Float[Array, ""]:
    """II = ∫₀¹ I(x) dx."""
    if (scale := _lengthscale(base)) is not None:
        root = math.sqrt(2) * scale
        return root**2 * jnp.expm1(-1 / root**2) + math.sqrt(math.pi) * root * erf(1 / root)
    nodes, weights = _gauss_legendre(dtype)
    return weights @ integral(base, nodes)


def _lengthscale(base: Kernel) -> Float[Array, ""] | None:
    """That of a squared exponential kernel of amplitude 1, None for other kernels."""
    if isinstance(base, UnitAmplitude) and isinstance(base.kernel, SquaredExponential):
        return base.kernel.lengthscales[0]
    return None


def _gauss_legendre(dtype) -> tuple[Float[Array, " Q"], Float[Array, " Q"]]:
    """Nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return jnp.asarray((nodes + 1) / 2, dtype), jnp.asarray(weights / 2, dtype)
