"""The squared exponential kernel."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import Kernel, log_scalar
from gpbench.core.kernels.stationary import Stationary, half_square_exponent, start_lengthscales


class SquaredExponential(Stationary):
    """k(x, x') = amp · exp(-½ Σ_d (x_d - x'_d)² / l_d), with a squared lengthscale l_d for every input.

    Amplitude and squared lengthscales are kept as logarithms, as the authors of the paper `sep` do.
    """

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    family: ClassVar[str] = "squared_exponential"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return jnp.exp(half_square_exponent(self.scale(X), self.scale(Y)) + self.log_amplitude)

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """Option: `isotropic`."""
        return cls(log_scalar(amplitude, X), start_lengthscales(X, start, options["isotropic"]))
