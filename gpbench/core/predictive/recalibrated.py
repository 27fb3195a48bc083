"""Predictions changed by one factor for all rows, which rows kept out of training choose."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from gpbench.core.predictive.base import CategoricalPredictive, Predictive
from gpbench.scored import ENDS


class Recalibration(eqx.Module):
    """The change of predictions by a factor: `scale` multiplies deviations from the mean, `conformal` the half width of
    the 95 % interval alone, and `temperature` divides log probabilities of classes (Guo et al. 2017)."""

    factor: Float[Array, "..."]  # outside programs of members, one for each of these
    name: str = eqx.field(static=True)

    def predictive(self, value: Predictive) -> Predictive:
        """The distribution that is predicted in place of this one."""
        if self.name == "temperature":
            return CategoricalPredictive(value.summary()["log_probs"] / self.factor)
        return (RescaledPredictive if self.name == "scale" else ConformalPredictive)(value, self.factor)


class ConformalPredictive(Predictive):
    """A distribution of numbers whose 95 % interval alone is scaled about its middle."""

    original: Any
    factor: Float[Array, ""]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        return self.original.log_prob(y)

    def summary(self) -> dict[str, Array]:
        return self.original.summary()

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return self.original.pointwise(y)

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        arrays = self.original.arrays(y)
        middle, half = middle_and_half(arrays)
        return arrays | {"low95": middle - self.factor * half, "high95": middle + self.factor * half}


class RescaledPredictive(Predictive):
    """The distribution of m + s (y - m) for y of the mean m, and a factor s."""

    original: Any
    factor: Float[Array, ""]

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        """log p(m + (y - m) / s) - log s."""
        return self.original.log_prob(self._before(y)) - jnp.log(self.factor)

    def summary(self) -> dict[str, Array]:
        arrays = self.original.summary()
        return {"mean": arrays["mean"], "var": self.factor**2 * arrays["var"]}

    def pointwise(self, y: Float[Array, " N"]) -> dict[str, Array]:
        return self._after(self.original.pointwise(self._before(y)))

    def arrays(self, y: Float[Array, " N"]) -> dict[str, Array]:
        arrays = self._after(self.original.arrays(self._before(y)))
        ends = {name: arrays["mean"] + self.factor * (arrays[name] - arrays["mean"]) for name in ENDS}
        return arrays | ends | {"crps": self.factor * arrays["crps"]}

    def _before(self, y: Float[Array, " N"]) -> Float[Array, " N"]:
        mean = self.original.summary()["mean"]
        return mean + (y - mean) / self.factor

    def _after(self, arrays: dict[str, Array]) -> dict[str, Array]:
        return arrays | {"log_prob": arrays["log_prob"] - jnp.log(self.factor), "var": self.factor**2 * arrays["var"]}


def middle_and_half(arrays: dict[str, Any]) -> tuple[Any, Any]:
    """The middle of each 95 % interval, and half its width."""
    low, high = arrays["low95"], arrays["high95"]
    return 0.5 * (low + high), 0.5 * (high - low)
