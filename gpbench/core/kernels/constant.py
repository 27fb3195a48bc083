"""The constant kernel."""

from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import AmplitudeFamily, Kernel, log_scalar


class Constant(AmplitudeFamily):
    """k(x, x') = amp: a bias of variance amp, for sums."""

    log_amplitude: Float[Array, ""]
    family: ClassVar[str] = "constant"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """The amplitude for all pairs of rows."""
        return jnp.broadcast_to(self.amplitude, (len(X), len(Y)))

    def describe(self) -> str:
        """The family with its amplitude."""
        return f"constant kernel (amplitude {self.amplitude:.3g})"

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """It has no options."""
        return cls(log_scalar(amplitude, X))
