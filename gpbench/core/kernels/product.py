"""Products of kernels, and kernels whose amplitude is fixed because the scale belongs to the whole."""

import functools
import operator
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.active_inputs import ActiveInputs
from gpbench.core.kernels.base import AmplitudeFamily, Family, Kernel


class Product(Family):
    """k(x, x') = Π_i k_i(x, x').

    Only the product of the factors' scales is identifiable, so `initial` leaves one factor its scale and fixes the
    amplitudes of the others at 1.  Linear kernels, sums and ANOVA kernels have no amplitude that could be fixed: one of
    them carries the scale, and a product of several of them has a redundant parameter for each further one.
    """

    factors: tuple[Kernel, ...]
    family: ClassVar[str] = "product"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return functools.reduce(operator.mul, (factor.cross(X, Y) for factor in self.factors))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""
        return functools.reduce(operator.mul, (factor.diag(X) for factor in self.factors))

    def describe(self) -> str:
        """The descriptions of the factors."""
        return " * ".join(f"({factor.describe()})" for factor in self.factors)

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """The factors of `options["parts"]`, their specifications; one of them has the amplitude."""
        parts = options["parts"]
        factors = [fix_amplitude(part.initial(X, start=start)) for part in parts]
        carrier = next((i for i, factor in enumerate(factors) if _has_scale(factor)), 0)
        factors[carrier] = parts[carrier].initial(X, start=start, amplitude=amplitude)
        return cls(tuple(factors))


class UnitAmplitude(Kernel):
    """A kernel whose amplitude is 1 and not a parameter.  Made by `fix_amplitude`."""

    kernel: AmplitudeFamily  # its log_amplitude is None, which is no leaf
    family: ClassVar[str] = "unit_amplitude"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return self._with_amplitude(X.dtype).cross(X, Y)

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """1 for every row."""
        return jnp.ones(len(X), X.dtype)

    def describe(self) -> str:
        """The kernel, with an amplitude of 1."""
        return self._with_amplitude(None).describe()

    def _with_amplitude(self, dtype) -> AmplitudeFamily:
        one = jnp.zeros((), dtype)  # its logarithm
        return eqx.tree_at(lambda kernel: kernel.log_amplitude, self.kernel, one, is_leaf=lambda leaf: leaf is None)


def fix_amplitude(kernel: Kernel) -> Kernel:
    """The kernel with its amplitude fixed at 1.  One whose scale is not an amplitude (linear, sum, ANOVA) stays."""
    match kernel:
        case AmplitudeFamily():
            return UnitAmplitude(eqx.tree_at(lambda kernel: kernel.log_amplitude, kernel, None))
        case ActiveInputs():
            return ActiveInputs(fix_amplitude(kernel.kernel), kernel.inputs)
        case Product():
            return Product(tuple(map(fix_amplitude, kernel.factors)))
        case _:
            return kernel


def _has_scale(kernel: Kernel) -> bool:
    """Whether some parameter sets the scale of the kernel."""
    match kernel:
        case UnitAmplitude():
            return False
        case ActiveInputs():
            return _has_scale(kernel.kernel)
        case Product():
            return any(map(_has_scale, kernel.factors))
        case _:
            return True
