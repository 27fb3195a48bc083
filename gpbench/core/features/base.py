"""The interface of inducing features: what the inducing outputs u are."""

import abc

import equinox as eqx
from jaxtyping import Array, Float

from gpbench.core.kernels import Kernel


class Features(eqx.Module):
    """M linear functionals of f, each with a location.  Array leaves are parameters that may be learned."""

    Z: eqx.AbstractVar[Float[Array, "M D"]]

    @abc.abstractmethod
    def gram(self, kernel: Kernel) -> Float[Array, "M M"]:
        """Kzz, the prior covariances of the features."""

    @abc.abstractmethod
    def cross(self, kernel: Kernel, X: Float[Array, "N D"]) -> Float[Array, "M N"]:
        """Kzx, the prior covariances of the features with f at X."""
