"""The kernel of a network's outputs: deep kernel learning (Wilson, Hu, Salakhutdinov and Xing, AISTATS 2016)."""

from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float

from gpbench.core.kernels.base import Family, Kernel, LengthscaleStart
from gpbench.core.kernels.stationary import SquaredExponential
from gpbench.core.networks import Network, initial_network
from gpbench.schema import setting


class Deep(Family):
    """k(x, x') = base(h(x), h(x')) of the outputs h of a network with rectified linear units, whose weights are
    parameters of the kernel.  The base is squared exponential, with a lengthscale for each output.  The evidence alone
    overfits the weights of a network on few rows (Ober, Rasmussen and van der Wilk 2021).  Where lengthscales have a
    prior, weights and biases have the prior N(0, 1), with layers divided by √(I + 1)."""

    network: Network
    base: SquaredExponential
    hidden: tuple[int, ...] = setting((50, 50), "list of count", "Number of units of each hidden layer.")
    outputs: int = setting(10, "count", "Number of outputs, the inputs of the base kernel.")
    seed: int = setting(0, "whole", "Seed of the initial weights.")
    family: ClassVar[str] = "deep"

    def features(self, X: Float[Array, "N D"]) -> Float[Array, "N H"]:
        """h(x) of every row."""
        return self.network(X).reshape(len(X), self.outputs)

    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        return self.base.cross(self.features(X), self.features(Y))

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        return self.base.diag(X)

    def describe(self) -> str:
        return f"deep kernel of {self.outputs} outputs: {self.base.describe()}"

    @classmethod
    def initial(cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, **options: Any) -> Kernel:
        """Options: `hidden`, `outputs` and `seed`.  Lengthscales are set from the outputs of the initial network."""
        widths = (X.shape[1], *options["hidden"], options["outputs"])
        network = initial_network(widths, scaled=True, key=jax.random.key(options["seed"]), dtype=X.dtype)
        features = network(X).reshape(len(X), -1)
        base: Any = SquaredExponential.initial(features, start=start, amplitude=amplitude, isotropic=False)
        return cls(network, base, **options)
