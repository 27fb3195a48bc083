"""Stationary kernels: a lengthscale per input, and the distances that the families are functions of."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart, initial_log_lengthscales2
from gpbench.core.kernels.base import AmplitudeFamily, span, words


class Stationary(AmplitudeFamily):
    """A kernel of the scaled distance r² = Σ_d (x_d - x'_d)² / l_d alone, l_d a squared lengthscale.

    `log_lengthscale2` has an entry per input (ARD), or a single one for all inputs (the option `isotropic`).
    """

    log_lengthscale2: eqx.AbstractVar[Float[Array, " L"]]

    @property
    def lengthscales(self) -> Float[Array, " L"]:
        """√l_d, in the units of the inputs: an entry per input, or a single one that broadcasts (isotropic)."""
        return jnp.exp(0.5 * self.log_lengthscale2)

    def scale(self, X: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """The rows in units of the lengthscales."""
        return X * jnp.exp(-0.5 * self.log_lengthscale2)

    def describe(self) -> str:
        """The family with its amplitude and its range of lengthscales."""
        lengthscales = span(self.lengthscales)
        return f"{words(self.family)} kernel (amplitude {self.amplitude:.3g}, lengthscales {lengthscales})"


def start_lengthscales(X: Float[Array, "N D"], start: LengthscaleStart, isotropic: bool) -> Float[Array, " L"]:
    """`initial_log_lengthscales2`: an entry per input, or their mean as the single entry of an isotropic kernel."""
    each = initial_log_lengthscales2(X, start)
    return each.mean(keepdims=True) if isotropic else each


def half_square_exponent(X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
    """-½|x - y|² for all pairs of rows, at most 0, through one matrix product.

    The rounding error is relative to |x|² + |y|²: right for kernels that are differentiable in the squared distance.
    """
    # -½|x-y|² = x·y - ½|x|² - ½|y|²
    exponent = X @ Y.T - 0.5 * jnp.sum(X**2, 1)[:, None] - 0.5 * jnp.sum(Y**2, 1)[None, :]
    return jnp.minimum(exponent, 0.0)


def square_distance(X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
    """|x - y|² for all pairs of rows through differences: exactly 0 for equal rows.

    One input after another, in O(N P) memory forward and backward.
    """

    @jax.checkpoint
    def add(total, column):
        x, y = column
        return total + (x[:, None] - y[None, :]) ** 2, None

    return jax.lax.scan(add, jnp.zeros((len(X), len(Y)), X.dtype), (X.T, Y.T))[0]


def safe_sqrt(square: Float[Array, "N P"]) -> Float[Array, "N P"]:
    """√square with the derivative 0 where `square` is 0, instead of an infinite one that turns into NaN."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)
