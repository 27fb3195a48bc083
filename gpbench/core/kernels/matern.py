"""The Matérn kernels of smoothness 1/2, 3/2 and 5/2 (Rasmussen & Williams 2006, equation 4.17).

All are functions of r² = Σ_d (x_d - x'_d)² / l_d, l_d a squared lengthscale.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import Kernel, log_scalar
from gpbench.core.kernels.stationary import (
    Stationary,
    half_square_exponent,
    safe_sqrt,
    square_distance,
    start_lengthscales,
)


class _Matern(Stationary):
    """What the three have in common."""

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """Option: `isotropic`."""
        return cls(log_scalar(amplitude, X), start_lengthscales(X, start, options["isotropic"]))


class Matern12(_Matern):
    """k(x, x') = amp · exp(-r), the exponential kernel: continuous functions that are nowhere differentiable.

    It has a kink at r = 0, where rounding of r² would be amplified to its square root: hence distances through
    differences, and derivatives of 0 at coincident points.
    """

    family: ClassVar[str] = "matern12"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        r = safe_sqrt(square_distance(self.scale(X), self.scale(Y)))
        return jnp.exp(self.log_amplitude - r)


class Matern32(_Matern):
    """k(x, x') = amp · (1 + s) exp(-s), s = √3 r: functions that are differentiable once."""

    family: ClassVar[str] = "matern32"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        s = safe_sqrt(-6.0 * half_square_exponent(self.scale(X), self.scale(Y)))  # s² = 3 r²
        return (1.0 + s) * jnp.exp(self.log_amplitude - s)


class Matern52(_Matern):
    """k(x, x') = amp · (1 + s + s²/3) exp(-s), s = √5 r: functions that are differentiable twice."""

    family: ClassVar[str] = "matern52"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        s2 = -10.0 * half_square_exponent(self.scale(X), self.scale(Y))  # s² = 5 r²
        s = safe_sqrt(s2)
        return (1.0 + s + s2 / 3.0) * jnp.exp(self.log_amplitude - s)
