"""A kernel of some of the inputs."""

from typing import ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from gpbench.core.kernels.base import Kernel


class ActiveInputs(Kernel):
    """k(x, x') = kernel(x_S, x'_S), S the columns `inputs`: the option `inputs` of a family."""

    kernel: Kernel
    inputs: tuple[int, ...] = eqx.field(static=True)
    family: ClassVar[str] = "active_inputs"

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows."""
        return self.kernel.cross(select(X, self.inputs), select(Y, self.inputs))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row."""
        return self.kernel.diag(select(X, self.inputs))

    def describe(self) -> str:
        """The kernel, and its inputs."""
        return f"{self.kernel.describe()} of the inputs {', '.join(map(str, self.inputs))}"


def select(X: Float[Array, "N D"], inputs: tuple[int, ...]) -> Float[Array, "N S"]:
    """The columns `inputs`.  They must exist: `Spec.initial` checks it."""
    return X[:, np.asarray(inputs)]
