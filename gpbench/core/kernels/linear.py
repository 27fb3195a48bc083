"""The linear and the constant kernel."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels.base import AmplitudeFamily, Family, Kernel, LengthscaleStart, log_scalar, span


class Linear(Family):
    """k(x, x') = Σ_d v_d x_d x'_d: linear functions whose slopes have variances v_d.  It has no bias: add `constant`
    for one."""

    log_variance: Float[Array, " D"]
    family: ClassVar[str] = "linear"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return self._scale(X) @ self._scale(Y).T

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """Σ_d v_d x_d² for every row."""
        return jnp.sum(self._scale(X) ** 2, axis=1)

    def _scale(self, X: Float[Array, "N D"]) -> Float[Array, "N D"]:
        return X * jnp.exp(0.5 * self.log_variance)

    def describe(self) -> str:
        return f"linear kernel (variances {span(jnp.exp(self.log_variance))} of scaled inputs)"

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """All variances equal, such that k(x, x) is `amplitude` on average over the rows.  It has no options."""
        mean_square = float(jnp.mean(jnp.sum(X**2, axis=1))) or 1.0
        return cls(jnp.full(X.shape[1], log_scalar(amplitude / mean_square, X)))


class Constant(AmplitudeFamily):
    """k(x, x') = amp: a bias of variance amp, for sums."""

    log_amplitude: Float[Array, ""]
    family: ClassVar[str] = "constant"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """The amplitude for all pairs of rows."""
        return jnp.broadcast_to(self.amplitude, (len(X), len(Y)))

    def describe(self) -> str:
        return f"constant kernel (amplitude {self.amplitude:.3g})"

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """A constant of this amplitude.  It has no options."""
        return cls(log_scalar(amplitude, X))
