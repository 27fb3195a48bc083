"""The squared exponential kernel whose functions have the mean 0 under N(0, 1) in each input.  Lu, Boukouvalas and
Hensman, ICML 2022, equation 10.  As the base of the family `anova` it is their orthogonal additive kernel but for its
constant, which `{sum: [constant, {anova: ...}]}` adds: effects of different sets of inputs are orthogonal under
independent standard normal inputs.  Their map of inputs to normal ones is not there."""

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.kernels.base import AmplitudeFamily, Kernel, LengthscaleStart, initial_log_lengthscales2, span


class Orthogonal(AmplitudeFamily):
    """k(x, y) = amplitude · Π_d k_d(x_d, y_d), where ∫ k_d(x, y) N(x; 0, 1) dx = 0 for every y.  With q the squared
    lengthscale and c = √(q(q + 2))/(q + 1), k_d(x, y) = exp(-(x - y)²/(2q)) - c exp(-(x² + y²)/(2(q + 1)))."""

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " D"]
    family: ClassVar[str] = "orthogonal"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        @jax.checkpoint
        def multiply(total: Array, column: tuple[Array, Array, Array]) -> tuple[Array, None]:
            x, y, q = column
            return total * _zero_mean(x[:, None], y[None, :], q), None

        total = jnp.full((len(X), len(Y)), self.amplitude)
        return jax.lax.scan(multiply, total, (X.T, Y.T, jnp.exp(self.log_lengthscale2)))[0]

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.amplitude * jnp.prod(_zero_mean(X, X, jnp.exp(self.log_lengthscale2)), axis=1)

    def describe(self) -> str:
        return f"orthogonal kernel (lengthscales {span(jnp.exp(0.5 * self.log_lengthscale2))} of scaled inputs)"

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """The amplitude is the prior variance averaged over the rows."""
        log_lengthscale2 = initial_log_lengthscales2(X, start)
        unit = cls(jnp.zeros((), X.dtype), log_lengthscale2, **options)
        return cls(jnp.log(amplitude / jnp.mean(unit.diag(X))), log_lengthscale2, **options)


def _zero_mean(x: Float[Array, "..."], y: Float[Array, "..."], q: Float[Array, "..."]) -> Float[Array, "..."]:
    """k_d of the class: for long lengthscales, where its two terms nearly cancel, by expm1 of their ratio."""
    square = (x - y) ** 2
    # c by logarithms of q where 1 - 1/(q + 1)² cancels
    short, long = jnp.minimum(q, 1.0), jnp.maximum(q, 1.0)
    log_c_short = 0.5 * (jnp.log(short) + jnp.log(short + 2.0)) - jnp.log1p(short)
    log_c = jnp.where(q < 1.0, log_c_short, 0.5 * jnp.log1p(-1.0 / (long + 1.0) ** 2))
    first = jnp.exp(-0.5 * square / q)
    log_ratio = log_c + (square - 2.0 * q * x * y) / (2.0 * q * (q + 1.0))
    near = -first * jnp.expm1(jnp.minimum(log_ratio, 1.0))
    return jnp.where(log_ratio < 1.0, near, first - jnp.exp(log_c - 0.5 * (x**2 + y**2) / (q + 1.0)))
