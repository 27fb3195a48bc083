"""The interface of covariance functions, `Kernel`, and two abstract classes between it and the families."""

import abc
import math
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from gpbench.core.clusters import median_distance

LengthscaleStart = Literal["median", "root_median", "median_each"]
"""Lengthscales start at the median distance between rows; at its square root (paper `sep`); or each at the median
distance along its own input (paper `svdgp`)."""

Units = Float[np.ndarray, " D"]
"""Size of one unit of each input in units of the file."""

_COMPARED = 2000  # number of rows, from the first, whose distances give the initial lengthscales


class Kernel(eqx.Module):
    """A covariance function k(x, x').  Its array leaves are its unconstrained parameters (logarithms of positive
    quantities), in the dtype of the data; every other field is static."""

    family: ClassVar[str] = ""
    """Name by which messages call the kernel; that of its class where it is empty."""

    @abc.abstractmethod
    def cross(self, X: Float[Array, "N D"], Y: Float[Array, "P D"]) -> Float[Array, "N P"]:
        """k(x, y) for all pairs of rows, in the dtype of the rows."""

    @abc.abstractmethod
    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """k(x, x) for every row: the diagonal of `cross(X, X)` in O(N)."""

    def describe(self) -> str:
        """Describes the kernel with its parameters, for error messages: of inputs and targets as they are scaled.
        Needs concrete values: not under `jax.jit`."""
        return f"{words(self.family or type(self).__name__)} kernel"


class Family(Kernel):
    """A kernel that a configuration can name.  Its options are the fields that it declares by `gpbench.schema.setting`.
    A subclass outside gpbench is named by its `_target_` (docs/how-to/own_kernel.md)."""

    @classmethod
    @abc.abstractmethod
    def initial(
        cls, X: Float[Array, "N D"], *, start: LengthscaleStart, amplitude: float, unit: Units, **options: Any
    ) -> "Kernel":
        """The kernel that training starts from.

        Args:
            X: Rows of the inputs that the kernel will see, in whose dtype the parameters are.
            start: Rule by which lengthscales are set from the rows.
            amplitude: Prior variance k(x, x), averaged over the rows where it differs between them.
            unit: Size of one unit of each column of X in units of the file, for options in these, such as a period; a
                family that has none leaves this argument out.
            **options: A value for every option of the family, to be passed on to the constructor.
        """


class AmplitudeFamily(Family):
    """A family with an amplitude of its own: k(x, x') = amplitude · correlation(x, x')."""

    log_amplitude: eqx.AbstractVar[Float[Array, ""]]

    @property
    def amplitude(self) -> Float[Array, ""]:
        """The prior variance k(x, x)."""
        return jnp.exp(self.log_amplitude)

    def diag(self, X: Float[Array, "N D"]) -> Float[Array, " N"]:
        """The amplitude for every row."""
        return jnp.broadcast_to(self.amplitude, X.shape[:1])


def words(family: str) -> str:
    """The name of a family as text: "squared_exponential" -> "squared exponential"."""
    return family.replace("_", " ")


def span(values: Float[Array, " D"]) -> str:
    """The range of some parameters as text, for `Kernel.describe`."""
    host = np.asarray(values)
    return f"{host.min():.3g}..{host.max():.3g}"


def log_scalar(value: float, like: Float[Array, "..."]) -> Float[Array, ""]:
    """The logarithm of a positive number, as a parameter in the dtype of `like`."""
    return jax.device_put(np.asarray(math.log(value), like.dtype))


def initial_log_lengthscales2(
    X: Float[Array, "N D"], start: LengthscaleStart, isotropic: bool = False
) -> Float[Array, " L"]:
    """Logarithms of the initial squared lengthscales, in squared units of the inputs, one for each input or, where
    they are `isotropic`, their mean."""
    rows = np.asarray(X)[:_COMPARED]
    columns = rows.T[:, :, None] if start == "median_each" else [rows]
    power = 1.0 if start == "root_median" else 2.0
    logs = power * np.log([median_distance(column) for column in columns])
    each = jax.device_put(np.broadcast_to(logs, X.shape[1]).astype(X.dtype))
    return each.mean(keepdims=True) if isotropic else each
