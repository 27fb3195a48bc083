"""Stationary kernels: functions of a distance between rows, with a lengthscale per input."""

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpbench.core.kernels.base import (
    AmplitudeFamily,
    Kernel,
    LengthscaleStart,
    Units,
    initial_log_lengthscales2,
    log_scalar,
    span,
    words,
)
from gpbench.schema import setting


def _isotropic() -> Any:
    """The option of all stationary kernels, declared below the arrays of each."""
    return setting(False, "flag", "One lengthscale for all inputs.")


class Stationary(AmplitudeFamily):
    """A kernel of the scaled distance r² = Σ_d (x_d - x'_d)² / l_d alone, l_d a squared lengthscale.
    `log_lengthscale2` has an entry per input (ARD), or a single one for all inputs (the option `isotropic`)."""

    log_lengthscale2: eqx.AbstractVar[Float[Array, " L"]]

    @property
    def lengthscales(self) -> Float[Array, " L"]:
        """√l_d, in the units of the inputs: an entry per input, or a single one that broadcasts (isotropic)."""
        return jnp.exp(0.5 * self.log_lengthscale2)

    def scale(self, X: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """The rows in units of the lengthscales."""
        return X * jnp.exp(-0.5 * self.log_lengthscale2)

    def describe(self) -> str:
        lengthscales = f"lengthscales {span(self.lengthscales)} of scaled inputs"
        return f"{words(self.family)} kernel (amplitude {self.amplitude:.3g}, {lengthscales})"


def _half_square_exponent(X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
    """-½|x - y|² for all pairs of rows in units of the lengthscales, at most 0, through one matrix product.  The
    rounding error is relative to |x|² + |y|²: right for kernels that are differentiable in the squared distance."""
    # -½|x-y|² = x·y - ½|x|² - ½|y|²
    exponent = X @ Y.T - 0.5 * jnp.sum(X**2, 1)[:, None] - 0.5 * jnp.sum(Y**2, 1)[None, :]
    return jnp.minimum(exponent, 0.0)


def square_distance(X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
    """|x - y|² for all pairs of rows through differences, exactly 0 for equal rows, in O(N P) memory both ways."""

    @jax.checkpoint
    def add(total: Array, column: tuple[Array, Array]) -> tuple[Array, None]:
        x, y = column
        return total + (x[:, None] - y[None, :]) ** 2, None

    return jax.lax.scan(add, jnp.zeros((len(X), len(Y)), X.dtype), (X.T, Y.T))[0]


def _safe_sqrt(square: Float[Array, "N P"]) -> Float[Array, "N P"]:
    """√square with the derivative 0 where `square` is 0, instead of an infinite one that turns into NaN."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


class _Scaled(Stationary):
    """A kernel with no parameters but its amplitude and lengthscales."""

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    isotropic: bool = _isotropic()

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """Option: `isotropic`."""
        return cls(log_scalar(amplitude, X), initial_log_lengthscales2(X, start, options["isotropic"]), **options)


class SquaredExponential(_Scaled):
    """k(x, x') = amp · exp(-½ Σ_d (x_d - x'_d)² / l_d), with a squared lengthscale l_d for every input.  Amplitude and
    squared lengthscales are kept as logarithms, as the authors of the paper `sep` do."""

    family: ClassVar[str] = "squared_exponential"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return jnp.exp(_half_square_exponent(self.scale(X), self.scale(Y)) + self.log_amplitude)


class Matern12(_Scaled):
    """k(x, x') = amp · exp(-r), the exponential kernel: continuous functions that are nowhere differentiable.  It has a
    kink at r = 0, where rounding of r² would be amplified to its square root: hence distances through differences, and
    derivatives of 0 at coincident points."""

    family: ClassVar[str] = "matern12"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        r = _safe_sqrt(square_distance(self.scale(X), self.scale(Y)))
        return jnp.exp(self.log_amplitude - r)


class Matern32(_Scaled):
    """k(x, x') = amp · (1 + s) exp(-s), s = √3 r: functions that are differentiable once."""

    family: ClassVar[str] = "matern32"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        s = _safe_sqrt(-6.0 * _half_square_exponent(self.scale(X), self.scale(Y)))  # s² = 3 r²
        return (1.0 + s) * jnp.exp(self.log_amplitude - s)


class Matern52(_Scaled):
    """k(x, x') = amp · (1 + s + s²/3) exp(-s), s = √5 r: functions that are differentiable twice."""

    family: ClassVar[str] = "matern52"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        s2 = -10.0 * _half_square_exponent(self.scale(X), self.scale(Y))  # s² = 5 r²
        s = _safe_sqrt(s2)
        return (1.0 + s + s2 / 3.0) * jnp.exp(self.log_amplitude - s)


class RationalQuadratic(Stationary):
    """k(x, x') = amp · (1 + r²/(2α))^-α, r² = Σ_d (x_d - x'_d)² / l_d (Rasmussen & Williams 2006, equation 4.19).  A
    mixture of squared exponential kernels over all lengthscales; their own for α to infinity."""

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    log_alpha: Float[Array, ""]
    isotropic: bool = _isotropic()
    alpha: float = setting(1.0, "positive", "Initial shape, small for heavy tails.")
    family: ClassVar[str] = "rational_quadratic"

    @property
    def shape(self) -> Float[Array, ""]:
        """The shape α > 0: small for heavy tails."""
        return jnp.exp(self.log_alpha)

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        half_square = -_half_square_exponent(self.scale(X), self.scale(Y))
        return jnp.exp(self.log_amplitude - self.shape * jnp.log1p(half_square / self.shape))

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """Options: `isotropic`, and `alpha`, the initial shape."""
        lengthscales = initial_log_lengthscales2(X, start, options["isotropic"])
        return cls(log_scalar(amplitude, X), lengthscales, log_scalar(options["alpha"], X), **options)


class Periodic(Stationary):
    """k(x, x') = amp · exp(-2 Σ_d sin²(π (x_d - x'_d)/p_d) / l_d) (MacKay 1998; Rasmussen & Williams 2006, eq. 4.31).
    It is the squared exponential kernel of the points (cos, sin)(2π x_d/p_d), for their squared distance is 4 sin²(π
    (x_d - x'_d)/p_d).  A lengthscale √l_d is a length on that circle of radius 1.  `log_period` has an entry for each
    input, or a single one where they are `isotropic` and no period is given."""

    log_amplitude: Float[Array, ""]
    log_lengthscale2: Float[Array, " L"]
    log_period: Float[Array, " P"]
    isotropic: bool = _isotropic()
    period: float | None = setting(
        None, "positive or null", "Initial period of every input, in its original units; null: 1 in those of training."
    )
    family: ClassVar[str] = "periodic"

    @property
    def periods(self) -> Float[Array, " P"]:
        """p_d, in the units of the inputs."""
        return jnp.exp(self.log_period)

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return jnp.exp(_half_square_exponent(self._on_circles(X), self._on_circles(Y)) + self.log_amplitude)

    def _on_circles(self, X: Float[Array, "N D"]) -> Float[Array, "N 2*D"]:
        angle = 2.0 * math.pi * X / self.periods
        return jnp.concatenate([self.scale(jnp.cos(angle)), self.scale(jnp.sin(angle))], axis=1)

    def describe(self) -> str:
        parameters = f"lengthscales {span(self.lengthscales)}, periods {span(self.periods)} of scaled inputs"
        return f"periodic kernel (amplitude {self.amplitude:.3g}, {parameters})"

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, unit: Units, **options: Any
    ) -> Kernel:
        """Options: `isotropic`, and `period`, the initial period of every input.  Lengthscales are set from distances
        between points on the circles, those of an input's cosine and sine averaged."""
        if (period := options["period"]) is None:
            log_period = jnp.zeros(1 if options["isotropic"] else X.shape[1], X.dtype)
        else:
            log_period = jnp.asarray(math.log(period) - np.log(unit), X.dtype)
        circles = cls(log_scalar(amplitude, X), jnp.zeros_like(log_period), log_period)._on_circles(X)
        each = initial_log_lengthscales2(circles, start).reshape(2, -1).mean(axis=0)
        lengthscales = each.mean(keepdims=True) if options["isotropic"] else each
        return cls(log_scalar(amplitude, X), lengthscales, log_period, **options)
