"""The interface every method has, and all that the training loop knows of it."""

import abc
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench import schema
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError
from gpbench.schema import RANGE, check_family, setting, settings

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

    @property
    def task(self) -> str:
        """What kind of targets these are: regression, binary or multiclass."""
        return {0: "regression", 2: "binary"}.get(self.classes, "multiclass")

    def first(self, rows: int | None) -> "Batch":
        """The first `rows` of the rows that count, which come in random order; all of them where there are fewer."""
        n = min(rows or self.total, self.total)
        if n == len(self.y):
            return self
        return Batch(self.X[:n], self.y[:n], self.index[:n], self.weight[:n], n, self.classes)


class Info(eqx.Module):
    """What one step reports.

    objective: larger is better, at the parameters the step started from.  scalars: anything else to follow.
    """

    objective: Float[Array, ""]
    scalars: Mapping[str, Float[Array, ""]] = eqx.field(default_factory=dict)


class Method(eqx.Module):
    """A method is its configuration; everything that changes is in the state.

    `init` runs once per split on concrete arrays and may use the host.  `step`, `predict` and `objective` are pure
    and traced: jit, vmap over splits, scan over steps and sharding over devices all come from outside.  No method
    owns a loop, a print, a file or a random seed.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass", "regression"})
    """The kinds of data the method can be trained on."""
    kernels: ClassVar[tuple[str, ...] | None] = None
    """Families that the setting `kernel` can have, of all inputs; None: any."""
    likelihoods: ClassVar[tuple[str, ...] | None] = None
    """Families that the setting `likelihood` can have; None: any that fits the task."""
    searchable: ClassVar[tuple[str, ...]] = ()
    """Settings that `search` can choose on validation rows."""
    label_fields: ClassVar[frozenset[str]] = frozenset({"inducing", "batch_size"})
    """Fields that `setting` shows, so that tables do not list them again."""

    name: str = setting("", "text", "Name in records, tables and file names.")
    steps: int = setting(1, "count", "Number of steps that the training loop takes.")
    batch_size: int | None = setting(
        None, "count or null", "Number of rows in a minibatch; null: all rows in every step."
    )
    rates: tuple[float, ...] = setting(
        (),
        "list of positive",
        "Initial step sizes of the optimiser to choose among, by the objective after trial_steps steps; []: the "
        "optimiser's own.",
        converter=tuple,
    )
    search: tuple[tuple[str, tuple[float, ...]], ...] = setting(
        (),
        "choices or null",
        "Settings to choose on validation rows, each with its values, as in {dropout: [0.05, 0.1]}; null: none.",
        converter=lambda values: _search(values),
    )
    trial_steps: int = setting(
        100, "count", "Number of steps in the trial of each of `rates`, and of each combination of `search`."
    )

    def __check_init__(self) -> None:
        """Check every setting against its declaration, of gpbench's classes and of users'.

        Raises:
            ConfigError: for a value out of its range, a kernel or a likelihood that the class does not take, and a
                `search` of other settings than the `searchable`.
        """
        declared = settings(type(self))
        for name, field in declared.items():
            schema.parse(field.metadata[RANGE]).check(f"method.{name}", getattr(self, name))
        for kind, accepted in (("kernel", self.kernels), ("likelihood", self.likelihoods)):
            if kind in declared:
                check_family(kind, getattr(self, kind), accepted, self.name or type(self).__name__)
        if self.rates and not isinstance(self, HasRates):
            raise ConfigError(f"method.rates: {self.name} has no initial step size to choose: leave it empty")
        if self.search and not isinstance(self, HasSearch):
            raise ConfigError(f"method.search: {self.name} has no settings to choose")
        for name, values in self.search:
            if self.searchable and name not in self.searchable:
                known = " and ".join(self.searchable)
                raise ConfigError(f"method.search: {self.name} can choose {known}, not {name}")
            for value in values:
                words = declared[name].metadata[RANGE] if name in declared else "number"
                schema.parse(words).check(f"method.search.{name}", value)

    @abc.abstractmethod
    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        """The initial state, from all training rows.  Raises ConfigError where configuration and data do not fit."""

    @abc.abstractmethod
    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """The next state, and what the step reports."""

    @abc.abstractmethod
    def predict(self, state: State, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        """The predictive distribution at new inputs.

        Deterministic methods ignore the key.  A row's density depends on that row and the key alone.
        """

    @property
    def label(self) -> str:
        """Size by which tables tell runs of this method apart, as papers print it, as in `m=15%`."""
        return ""


@runtime_checkable
class HasObjective(Protocol):
    """A method that can evaluate what training maximises on all rows."""

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        """The objective of all rows in `data`, such as the log evidence or a bound on it, in nats."""


@runtime_checkable
class HasConvergence(Protocol):
    """A method with a criterion of convergence."""

    def converged(self, state: State) -> Bool[Array, ""] | None:
        """True where further steps leave the state as it is, so that training ends; None: no criterion."""


@runtime_checkable
class HasBound(Protocol):
    """A method with a variational bound on the density of held-out rows (metric `vlb`)."""

    def kl(self, state: State) -> Float[Array, ""] | None:
        """KL divergence of the posterior from the prior, in nats; None where the metric is not defined."""

    def expected_log_prob(
        self, state: State, X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"] | None:
        """E_q log p(y|f) of every row, in nats of the scaled targets."""


@runtime_checkable
class HasRates(Protocol):
    """A method whose initial step size the run can choose among `Method.rates`."""

    def with_rate(self, state: State, rate: float) -> State:
        """An initial state with another initial step size."""


@runtime_checkable
class HasSearch(Protocol):
    """A method some of whose settings the run can choose on validation rows (`Method.search`).

    They are arrays in the state, so that one compiled program serves all values.
    """

    def settings(self, state: State) -> dict[str, Array]:
        """The settings of a state among which `search` chooses, by name; the record has them too."""

    def with_settings(self, state: State, settings: Mapping[str, float]) -> State:
        """An initial state with other values of some of these settings."""


@runtime_checkable
class HasDiagnostics(Protocol):
    """A method with numbers that tell whether training has converged."""

    def diagnostics(self, state: State) -> dict[str, Array]:
        """Scalars for the record, by name, such as `rhat`."""


@runtime_checkable
class HasDiagnosis(Protocol):
    """A method that can tell the reason of a divergence."""

    def diagnose(self, state: State) -> str:
        """Probable reason why a run with this state diverged, for its one-line error; "" where it is unknown."""


@runtime_checkable
class HasArrays(Protocol):
    """A method with arrays that pictures show beside the predictions."""

    def arrays(self, state: State) -> dict[str, Array]:
        """Arrays by name, such as the inducing points `inducing` (M, D)."""


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
    """A method with settings that are counts of what the data have."""

    def limits(self, n: int) -> dict[str, int]:
        """Largest value that makes a difference with n training rows, by setting."""


@runtime_checkable
class HasRowMemory(Protocol):
    """A method whose state grows with the training rows."""

    def row_memory(self, n: int) -> int:
        """Count of numbers in the state for each of n training rows."""


def diagnosis(method: Method, state: State) -> str:
    """Probable reason of a divergence, or "" where the method has none to tell."""
    return method.diagnose(state) if isinstance(method, HasDiagnosis) else ""


def _search(values: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Of a mapping, of pairs of names and values, or of null, as tuples: static fields are compared and hashed.

    A name whose values are null is left out: on the command line mappings are merged into the configured one.
    """
    pairs = values.items() if isinstance(values, Mapping) else values or ()
    return tuple((name, tuple(choices)) for name, choices in pairs if choices is not None)


def inducing_count(inducing: float | int, n: int) -> int:
    """How many inducing points: a fraction of the N training rows, or a whole number.

    Raises ConfigError beyond 1 .. N, and for a number that is neither.
    """
    schema.parse("count or fraction").check("method.inducing", inducing)
    m = int(inducing) if isinstance(inducing, Integral) else round(inducing * n)
    if not 1 <= m <= n:
        raise ConfigError(
            f"method.inducing={inducing:g} asks for {m} inducing points, but there are {n} training rows:"
            f" choose a number from 1 to {n} or a fraction up to 1.0"
        )
    return m


def inducing_setting(inducing: float | int) -> str:
    """`m=15%` for a fraction, `m=200` for a number."""
    return f"m={inducing}" if isinstance(inducing, Integral) else f"m={100 * inducing:g}%"
