"""The rational quadratic kernel."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import Kernel, log_scalar
from gpbench.core.kernels.stationary import Stationary, half_square_exponent, start_lengthscales


class RationalQuadratic(Stationary):
    """k(x, x') = amp · (1 + r²/(2α))^-α, r² = Σ_d (x_d - x'_d)² / l_d (Rasmussen & Williams 2006, equation 4.19).

    A mixture of squared exponential kernels over all lengthscales; their own for α to infinity.
    """

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    log_alpha: Float[Array, ""]
    family: ClassVar[str] = "rational_quadratic"

    @property
    def alpha(self) -> Float[Array, ""]:
        """The shape α > 0: small for heavy tails."""
        return jnp.exp(self.log_alpha)

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        half_square = -half_square_exponent(self.scale(X), self.scale(Y))
        return jnp.exp(self.log_amplitude - self.alpha * jnp.log1p(half_square / self.alpha))

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """Options: `isotropic`, and `alpha`, the initial shape."""
        lengthscales = start_lengthscales(X, start, options["isotropic"])
        return cls(log_scalar(amplitude, X), lengthscales, log_scalar(options["alpha"], X))
