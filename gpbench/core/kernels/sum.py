"""Sums of kernels."""

import functools
import operator
from collections.abc import Mapping
from typing import Any, ClassVar

from jaxtyping import Array, Float

from gpbench.core.inducing import LengthscaleStart
from gpbench.core.kernels.base import Family, Kernel


class Sum(Family):
    """k(x, x') = Σ_i k_i(x, x'): the sum of independent functions.  Every part has its own parameters."""

    parts: tuple[Kernel, ...]
    family: ClassVar[str] = "sum"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return functools.reduce(operator.add, (part.cross(X, Y) for part in self.parts))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""
        return functools.reduce(operator.add, (part.diag(X) for part in self.parts))

    def describe(self) -> str:
        """The descriptions of the parts."""
        return " + ".join(part.describe() for part in self.parts)

    @classmethod
    def initial(
        cls, X: Float[Array, "N D"], options: Mapping[str, Any], *, start: LengthscaleStart, amplitude: float
    ) -> Kernel:
        """The amplitude is divided equally among `options["parts"]`, the specifications of the parts."""
        parts = options["parts"]
        return cls(tuple(part.initial(X, start=start, amplitude=amplitude / len(parts)) for part in parts))
