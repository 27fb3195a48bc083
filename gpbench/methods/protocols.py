"""Rows as methods get them, and optional protocols of methods, which the training loop tests by `isinstance`."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

T = TypeVar("T")
State = Any
"""State of a method, which `step` updates: any pytree of arrays."""

STOP = "stop_after"
"""The searchable setting that is a number of steps after which training stops: one trial passes through all its
candidates."""


class Batch(eqx.Module):
    """Rows of the training data: a minibatch, or all of them.

    Rows of weight 0 are padding: of a last, short minibatch, or of all rows, so that several devices share them
    equally.  In the second case the rows that count come first.

    Args:
        X: Standardised inputs.
        y: Targets: standardised for regression, counts as they are, -1 and 1 for two classes, 0 .. C-1 for more.
        index: Index of each row among the N training rows; 0 .. N-1 where the batch is all of them.
        weight: 1 for a row that counts, or its sample weight above 0; else 0.  A sum over rows needs it as a factor
            (`sum`).
        total: Number N of training rows that count.
        classes: Number C of classes; 0 for regression, 1 for counts.
        is_weighted: Whether rows have sample weights; a minibatch of others needs no array of N weights.
        unit: Size of one unit of each input in units of the file, for `init` alone; None if not known, and in steps.
        log_exposure: What the latent value of each row is to be shifted by (`shifted`); None for nothing.
    """

    X: Float[Array, "B D"]
    y: Float[Array, " B"]
    index: Int[Array, " B"]
    weight: Float[Array, " B"]
    total: int = eqx.field(static=True)
    classes: int = eqx.field(static=True, default=0)
    is_weighted: bool = eqx.field(static=True, default=False)
    unit: Float[Array | np.ndarray, " D"] | None = None
    log_exposure: Float[Array, " B"] | None = None

    @property
    def scale(self) -> Float[Array, ""]:
        """Ratio N / |B| of the training rows to the batch's rows that count."""
        return self.total / self.counted.sum()

    @property
    def counted(self) -> Float[Array, " B"]:
        """1 for a row that counts, whatever its sample weight; else 0."""
        return (self.weight > 0.0).astype(self.weight.dtype)

    def shifted(self, mean: Float[Array, "B ..."]) -> Float[Array, "B ..."]:
        """Means of latent values as the likelihood of counts takes them: with the logarithm of the exposure."""
        return mean if self.log_exposure is None else mean + self.log_exposure

    def sum(self, terms: Float[Array, " B"]) -> Float[Array, ""]:
        """Estimate the sum over all N rows, without bias, from a term for each row of the batch."""
        return self.scale * jnp.sum(self.weight * terms)

    @property
    def task(self) -> str:
        """Kind of the targets: regression, count, binary or multiclass."""
        return {0: "regression", 1: "count", 2: "binary"}.get(self.classes, "multiclass")

    def first(self, rows: int | None) -> "Batch":
        """The first of all training rows, which come in random order; None, or a number above N: all that count."""
        n = min(rows or self.total, self.total)
        if n == len(self.y):
            return self
        first = (self.X[:n], self.y[:n], self.index[:n], self.weight[:n])
        exposure = None if self.log_exposure is None else self.log_exposure[:n]
        return Batch(*first, n, self.classes, self.is_weighted, self.unit, exposure)


@runtime_checkable
class HasObjective(Protocol):
    """A method that can evaluate the objective of training on all rows."""

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        """The log evidence, a bound on it or another objective, in nats; larger is better."""


@runtime_checkable
class HasConvergence(Protocol):
    """A method with a criterion of convergence."""

    def converged(self, state: State) -> Bool[Array, ""] | None:
        """True where further steps leave the state as it is, so that training ends; None: no criterion."""


@runtime_checkable
class HasOptimum(Protocol):
    """A method whose training may end where it has not converged, after a chosen stop or by a rough criterion."""

    def optimum(self, state: State) -> Bool[Array, ""] | None:
        """True where the optimiser or solver has converged, for the record; None: no criterion."""


@runtime_checkable
class HasBound(Protocol):
    """A method with a variational bound on the density of held-out rows (metric `vlb`)."""

    def kl(self, state: State) -> Float[Array, ""] | None:
        """KL[q || prior] in nats; None where the metric is not defined."""

    def expected_log_prob(
        self, state: State, X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"] | None:
        """E_q log p(y|f) of every held-out row, in nats of the scaled targets; None where the metric is not defined."""


@runtime_checkable
class HasRates(Protocol):
    """A method whose initial step size the run can choose among `Method.rates`."""

    def with_rate(self, state: State, rate: float) -> State:
        """The initial state with another initial step size."""


@runtime_checkable
class HasSearch(Protocol):
    """A method some of whose settings the run can choose on validation rows (`Method.search`).  They are arrays in the
    state, so that one compiled program serves all values."""

    def settings(self, state: State) -> dict[str, Array]:
        """Values of the settings among which `search` chooses, by name; the record has them too."""

    def with_settings(self, state: State, settings: Mapping[str, float]) -> State:
        """The initial state with other values of some of these settings."""


@runtime_checkable
class HasDiagnostics(Protocol):
    """A method with numbers that show whether training has converged."""

    def diagnostics(self, state: State) -> dict[str, Array]:
        """Scalars for the record, by name, such as `rhat`."""


@runtime_checkable
class HasDiagnosis(Protocol):
    """A method that can find the reason of a divergence."""

    def diagnose(self, state: State) -> str:
        """Probable reason, for the run's one-line error, from the state before parameters became NaN; "": unknown."""


@runtime_checkable
class HasArrays(Protocol):
    """A method with arrays that pictures show beside the predictions."""

    def arrays(self, state: State) -> dict[str, Array]:
        """Arrays by name, such as the inducing points `inducing` (M, D)."""


@runtime_checkable
class HasCovariance(Protocol):
    """A method of regression that knows the joint posterior of f at several rows."""

    def covariance(self, state: State, X: Float[Array, "N D"]) -> Float[Array, "N N"]:
        """Posterior covariance of f at X, in units of scaled targets; a ConfigError for other than Gaussian noise."""


@runtime_checkable
class HasLatents(Protocol):
    """A method with hidden functions that pictures show."""

    def latents(self, state: State, X: Float[Array, "N D"]) -> dict[str, Array]:
        """Values of hidden functions at X by name, such as the means of hidden units `hidden` (N, H)."""


@runtime_checkable
class HasEffects(Protocol):
    """A method whose predictor is a sum of effects, which pictures show for any number of inputs."""

    def effects(self, state: State) -> dict[str, Array]:
        """Effects on grids of their inputs, and their shares of the variance, by name."""


@runtime_checkable
class HasLimits(Protocol):
    """A method with settings whose useful values end at a number that the data have."""

    def limits(self, n: int) -> dict[str, int]:
        """Largest value that makes a difference with n training rows, by setting."""


@runtime_checkable
class HasRowMemory(Protocol):
    """A method whose state grows with the training rows."""

    def row_memory(self, n: int) -> int:
        """Number of numbers in the state for each of n training rows, by which the run estimates memory."""


def learned(state: State, kind: type[T]) -> list[T]:
    """The objects of a class that a method learns, such as its kernels: those of `state.parameters` where it has these.
    An optimiser's averages of gradients have the structure of the parameters, and are left out.  Its state is a named
    tuple, as all of optax's are."""
    is_leaf = lambda node: isinstance(node, kind) or hasattr(node, "_fields")
    leaves = jax.tree.leaves(getattr(state, "parameters", state), is_leaf=is_leaf)
    return [leaf for leaf in leaves if isinstance(leaf, kind)]


def diagnosis(method: object, state: State) -> str:
    """Probable reason of a divergence; "" for a method without `diagnose`."""
    return method.diagnose(state) if isinstance(method, HasDiagnosis) else ""
