"""Kernels made of kernels: sums, products, restrictions to some inputs, and kernels whose amplitude is fixed."""

import functools
import operator
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from gpbench.core.kernels.base import AmplitudeFamily, Family, Kernel, LengthscaleStart, Units


class ActiveInputs(Kernel):
    """k(x, x') = kernel(x_S, x'_S), S the columns `inputs`: the option `inputs` of a family."""

    kernel: Kernel
    inputs: tuple[int, ...] = eqx.field(static=True)
    family: ClassVar[str] = "active_inputs"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return self.kernel.cross(select(X, self.inputs), select(Y, self.inputs))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.kernel.diag(select(X, self.inputs))

    def describe(self) -> str:
        return f"{self.kernel.describe()} of the inputs {', '.join(map(str, self.inputs))}"


def select(X: Float[Array, "N D"], inputs: tuple[int, ...]) -> Float[Array, "N S"]:
    """The rows with these columns, which must exist: `Spec.initial` checks it."""
    return X[:, np.asarray(inputs)]


class Sum(Family):
    """k(x, x') = Σ_i k_i(x, x'): the sum of independent functions.  Every term has its own parameters."""

    parts: tuple[Kernel, ...]
    family: ClassVar[str] = "sum"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return functools.reduce(operator.add, (term.cross(X, Y) for term in self.parts))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return functools.reduce(operator.add, (term.diag(X) for term in self.parts))

    def describe(self) -> str:
        return " + ".join(term.describe() for term in self.parts)

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, unit: Units, **options: Any
    ) -> Kernel:
        """The amplitude is divided equally among `options["parts"]`, the specifications of the parts."""
        parts = options["parts"]
        return cls(tuple(term.initial(X, start=start, amplitude=amplitude / len(parts), unit=unit) for term in parts))


class Product(Family):
    """k(x, x') = Π_i k_i(x, x').  Only the product of the factors' scales is identifiable, so `initial` leaves one
    factor its scale and fixes the amplitudes of the others at 1.  Linear, deep and ANOVA kernels and sums have no
    amplitude that could be fixed: one of them carries the scale, and a product of several of them has a redundant
    parameter for each further one."""

    factors: tuple[Kernel, ...]
    family: ClassVar[str] = "product"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return functools.reduce(operator.mul, (factor.cross(X, Y) for factor in self.factors))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return functools.reduce(operator.mul, (factor.diag(X) for factor in self.factors))

    def describe(self) -> str:
        return " * ".join(f"({factor.describe()})" for factor in self.factors)

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, unit: Units, **options: Any
    ) -> Kernel:
        """The factors of `options["parts"]`, their specifications; one of them has the amplitude."""
        parts = options["parts"]
        factors = [fix_amplitude(term.initial(X, start=start, unit=unit)) for term in parts]
        carrier = next((i for i, factor in enumerate(factors) if _has_scale(factor)), 0)
        factors[carrier] = parts[carrier].initial(X, start=start, amplitude=amplitude, unit=unit)
        return cls(tuple(factors))


class UnitAmplitude(Kernel):
    """A kernel whose amplitude is 1 and not a parameter.  Made by `fix_amplitude`."""

    kernel: AmplitudeFamily  # its log_amplitude is None, which is no leaf
    family: ClassVar[str] = "unit_amplitude"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return self._with_amplitude(X.dtype).cross(X, Y)

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self._with_amplitude(X.dtype).diag(X)

    def describe(self) -> str:
        return self._with_amplitude(None).describe()

    def _with_amplitude(self, dtype: DTypeLike | None) -> AmplitudeFamily:
        unit = jnp.zeros((), dtype)  # its logarithm
        return eqx.tree_at(lambda kernel: kernel.log_amplitude, self.kernel, unit, is_leaf=lambda leaf: leaf is None)


def fix_amplitude(kernel: Kernel) -> Kernel:
    """The kernel with its amplitude fixed at 1; one whose scale is not an amplitude (linear, sum, ANOVA) as it is."""
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
    """True if some parameter sets the scale of the kernel."""
    match kernel:
        case UnitAmplitude():
            return False
        case ActiveInputs():
            return _has_scale(kernel.kernel)
        case Product():
            return any(map(_has_scale, kernel.factors))
        case _:
            return True
