"""Inducing points: the values of f at M places."""

from jaxtyping import Array, Float

from gpbench.core.features.base import Features
from gpbench.core.kernels import Kernel


class InducingPoints(Features):
    """uₘ = f(zₘ), for any kernel."""

    Z: Float[Array, "M D"]

    def gram(self, kernel: Kernel) -> Float[Array, "M M"]:
        """k(Z, Z)."""
        return kernel.cross(self.Z, self.Z)

    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """k(Z, X)."""
        return kernel.cross(self.Z, X)
