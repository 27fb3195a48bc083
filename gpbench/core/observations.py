"""How y is seen through f: likelihoods with what variational inference and prediction need of them."""

from typing import Literal, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float

from gpbench.core.likelihoods import gaussian_expected_log, laplace_expected_log, probit_expected_log
from gpbench.core.predictive import Bernoulli, Gaussian, Laplace, probit_bernoulli

Noise = Literal["gaussian", "laplace"]
"""Of a regression's targets about f."""


@runtime_checkable
class Likelihood(Protocol):
    """p(y|f) as variational inference needs it; `noise` is the variance of y about f, for labels not used."""

    def expected_log(
        self, y: Float[Array, " N"], mean: Float[Array, " N"], variance: Float[Array, " N"], noise: Float[Array, ""]
    ) -> Float[Array, " N"]:
        """E log p(y|f) under N(f | mean, variance), for every row."""
        ...

    def predictive(
        self, mean: Float[Array, " N"], variance: Float[Array, " N"], noise: Float[Array, ""]
    ) -> Bernoulli | Gaussian | Laplace:
        """p(y) = E p(y|f) under N(f | mean, variance), for every row."""
        ...


class Probit(eqx.Module):
    """Labels -1 and +1 with p(y|f) = Φ(y f); E log Φ by quadrature."""

    nodes: int = eqx.field(static=True, default=20)

    def expected_log(self, y, mean, variance, noise) -> Float[Array, " N"]:
        return probit_expected_log(y, mean, variance, self.nodes)

    def predictive(self, mean, variance, noise) -> Bernoulli:
        return probit_bernoulli(mean, variance)


class GaussianNoise(eqx.Module):
    """y = f + ε, ε ~ N(0, noise)."""

    def expected_log(self, y, mean, variance, noise) -> Float[Array, " N"]:
        return gaussian_expected_log(y, mean, variance, noise)

    def predictive(self, mean, variance, noise) -> Gaussian:
        return Gaussian(mean, variance + noise, noise)


class LaplaceNoise(eqx.Module):
    """y = f + ε, ε of a Laplace distribution of variance `noise`: outliers weigh less."""

    def expected_log(self, y, mean, variance, noise) -> Float[Array, " N"]:
        return laplace_expected_log(y, mean, variance, noise)

    def predictive(self, mean, variance, noise) -> Laplace:
        return Laplace(mean, variance, noise)


def likelihood(regression: bool, noise: Noise, nodes: int) -> Likelihood:
    """That of a regression's targets, or of the labels of two classes."""
    if not regression:
        return Probit(nodes)
    return LaplaceNoise() if noise == "laplace" else GaussianNoise()
