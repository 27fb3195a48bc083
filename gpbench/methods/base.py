"""The interface every method has, and all that the training loop knows of it."""

from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from gpbench.errors import ConfigError

State = Any
"""What a method carries from step to step: any pytree of arrays."""


class Batch(eqx.Module):
    """Rows of the training data: a minibatch, or all of them (`index` is then 0 .. N-1).

    `weight` is 1 for a row that counts and 0 for one that only fills up: a last, short minibatch, or all rows to a
    number that several devices can share equally, and then the rows that count come first.  `total` is N, those that
    count.
    """

    X: Float[Array, "B D"]
    y: Float[Array, " B"]
    index: Int[Array, " B"]
    weight: Float[Array, " B"]
    total: int = eqx.field(static=True)
    classes: int = eqx.field(static=True, default=0)

    @property
    def scale(self) -> Float[Array, ""]:
        """N / |B|, which makes a sum over the batch an unbiased estimate of the sum over the data."""
        return self.total / self.weight.sum()


class Info(eqx.Module):
    """What one step reports: the objective (larger is better) at the parameters the step started from."""

    objective: Float[Array, ""]


@runtime_checkable
class Predictive(Protocol):
    """What `predict` returns: `Gaussian`, `Bernoulli`, `Categorical`, ... of `gpbench.core.predictive`."""

    def log_prob(self, y: Float[Array, " N"]) -> Float[Array, " N"]: ...


class Method(eqx.Module):
    """A method is its configuration; everything that changes is in the state.

    `init` runs once per split on concrete arrays and may use the host.  `step`, `predict` and `objective` are pure
    and traced: jit, vmap over splits, scan over steps and sharding over devices all come from outside.  No method
    owns a loop, a print, a file or a random seed.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass", "regression"})
    """The kinds of data the method can be trained on."""

    setting_fields: ClassVar[frozenset[str]] = frozenset({"inducing", "batch_size"})
    """The fields that `setting` shows, which records then do not list once more."""

    name: str = eqx.field(static=True, kw_only=True, default="")
    """What records and tables call it."""
    steps: int = eqx.field(static=True, kw_only=True, default=1)
    """How many steps the loop takes."""
    batch_size: int | None = eqx.field(static=True, kw_only=True, default=None)
    """How many rows a step sees; None is all of them."""

    rates: tuple[float, ...] = eqx.field(static=True, kw_only=True, default=(), converter=tuple)
    """First step sizes to choose among, by the objective after `trial_steps` steps; none leaves the optimiser's own."""
    trial_steps: int = eqx.field(static=True, kw_only=True, default=100)
    """How many steps each of `rates` is tried for."""

    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        """The first state, from all training rows.  Raises ConfigError where configuration and data do not fit."""
        raise NotImplementedError

    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """The next state."""
        raise NotImplementedError

    def predict(self, state: State, X: Float[Array, "N D"]) -> Predictive:
        """The predictive distribution at new inputs."""
        raise NotImplementedError

    def tried(self, state: State, rate: float) -> State:
        """A first state with another first step size.  Optional: for methods that are given `rates`."""
        raise NotImplementedError

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        """What training makes larger (log evidence, bound, ...).  Optional."""
        raise NotImplementedError

    def divergence(self, state: State) -> Float[Array, ""] | None:
        """KL of the posterior from the prior, in nats, for the bound on held-out rows (metric `vlb`).  Optional."""
        return None

    def diagnose(self, state: State) -> str:
        """Why a run with this state may have diverged, for its one-line error.  Optional."""
        return ""

    def kept(self, state: State) -> dict[str, Array]:
        """What of a state a picture shows beside the predictions, such as inducing points.  Optional."""
        return {}

    def row_memory(self, n: int) -> int:
        """How many numbers the state holds for each of n training rows.  Optional: few need not be counted."""
        return 0

    @property
    def setting(self) -> str:
        """The size that tables tell runs of this method apart by, as the papers print it: `m=15%`.  Optional."""
        return ""


def inducing_count(inducing: float | int, n: int) -> int:
    """How many inducing points: a fraction of the N training rows, or a number.  Raises ConfigError beyond 1 .. N."""
    m = round(inducing * n) if isinstance(inducing, float) and inducing <= 1 else int(inducing)
    if not 1 <= m <= n:
        raise ConfigError(f"method.inducing={inducing:g} asks for {m} inducing points, but there are {n} training rows:"
                          f" choose a number from 1 to {n} or a fraction up to 1.0")  # fmt: skip
    return m


def inducing_setting(inducing: float | int) -> str:
    """`m=15%` for a fraction, `m=200` for a number."""
    is_fraction = isinstance(inducing, float) and inducing <= 1
    return f"m={100 * inducing:g}%" if is_fraction else f"m={int(inducing)}"
