"""The periodic kernel."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart, initial_log_lengthscales2
from gpbench.core.kernels.base import Kernel, log_scalar, span
from gpbench.core.kernels.stationary import Stationary, half_square_exponent


class Periodic(Stationary):
    """k(x, x') = amp · exp(-2 Σ_d sin²(π (x_d - x'_d)/p_d) / l_d) (MacKay 1998; Rasmussen & Williams 2006, eq. 4.31).

    It is the squared exponential kernel of the points (cos, sin)(2π x_d/p_d), for their squared distance is
    4 sin²(π (x_d - x'_d)/p_d).  A lengthscale √l_d is a length on that circle of radius 1.  `log_period` has as many
    entries as `log_lengthscale2`; periods are in the units of the inputs.
    """

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    log_period: Float[Array, " L"]
    family: ClassVar[str] = "periodic"

    @property
    def period(self) -> Float[Array, " L"]:
        """p_d, in the units of the inputs."""
        return jnp.exp(self.log_period)

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return jnp.exp(half_square_exponent(self._on_circles(X), self._on_circles(Y)) + self.log_amplitude)

    def _on_circles(self, X: Float[Array, "N D"]) -> Float[Array, "N 2*D"]:
        angle = 2.0 * math.pi * X / self.period
        return jnp.concatenate([self.scale(jnp.cos(angle)), self.scale(jnp.sin(angle))], axis=1)

    def describe(self) -> str:
        """The family with its amplitude and its ranges of lengthscales and periods."""
        parameters = f"lengthscales {span(self.lengthscales)}, periods {span(self.period)}"
        return f"periodic kernel (amplitude {self.amplitude:.3g}, {parameters})"

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """Options: `isotropic`, and `period`, the initial period of every input.

        Lengthscales are set from distances between points on the circles, those of an input's cosine and sine averaged.
        """
        count = 1 if options["isotropic"] else X.shape[1]
        log_period = jnp.full(count, log_scalar(options["period"], X))
        circles = cls(log_scalar(amplitude, X), jnp.zeros_like(log_period), log_period)._on_circles(X)
        each = initial_log_lengthscales2(circles, start).reshape(2, -1).mean(axis=0)
        lengthscales = each.mean(keepdims=True) if options["isotropic"] else each
        return cls(log_scalar(amplitude, X), lengthscales, log_period)
