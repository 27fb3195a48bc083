"""The interface every method has, and all that the training loop knows of it."""

import abc
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from gpbench import ranges
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

    has_effects: ClassVar[bool] = False
    """Whether `arrays` has effects of the inputs, which pictures show of data with more than two inputs."""

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
            ranges.parse(field.metadata[RANGE]).check(f"method.{name}", getattr(self, name))
        for kind, accepted in (("kernel", self.kernels), ("likelihood", self.likelihoods)):
            if kind in declared:
                check_family(kind, getattr(self, kind), accepted, self.name or type(self).__name__)
        for name, values in self.search:
            for value in values:
                words = declared[name].metadata[RANGE] if name in declared else "number"
                ranges.parse(words).check(f"method.search.{name}", value)

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

    def objective(self, state: State, data: Batch) -> Float[Array, ""]:
        """What training makes larger (log evidence, bound, ...).  Optional."""
        raise NotImplementedError

    def converged(self, state: State) -> Bool[Array, ""] | None:
        """Whether further steps leave this state as it is, so that training may end; None: no criterion.  Optional."""
        return None

    def kl(self, state: State) -> Float[Array, ""] | None:
        """KL of the posterior from the prior, in nats, for the bound on held-out rows (metric `vlb`).  Optional."""
        return None

    def expected_log_prob(
        self, state: State, X: Float[Array, "N D"], y: Float[Array, " N"]
    ) -> Float[Array, " N"] | None:
        """E_q log p(y|f) for every row, in nats of the scaled targets, for the metric `vlb`.  Optional."""
        return None

    def with_rate(self, state: State, rate: float) -> State:
        """An initial state with another initial step size.  Optional: for methods that have `rates`."""
        raise NotImplementedError

    def with_settings(self, state: State, settings: Mapping[str, float]) -> State:
        """An initial state with other values of some of its `settings`.  Optional: for methods that have a `search`."""
        raise NotImplementedError

    def settings(self, state: State) -> dict[str, Array]:
        """The settings of a state among which `search` may choose, by name, for the record too.  Optional."""
        return {}

    def diagnostics(self, state: State) -> dict[str, Array]:
        """Numbers that tell whether training has converged, such as R-hat, for the record.  Optional."""
        return {}

    def arrays(self, state: State) -> dict[str, Array]:
        """What pictures show of a state beside the predictions, such as inducing points.  Optional."""
        return {}

    def latents(self, state: State, X: Float[Array, "N D"]) -> dict[str, Array]:
        """What pictures show of hidden functions at X, such as the means of hidden units (N, H).  Optional."""
        return {}

    def diagnose(self, state: State) -> str:
        """Why a run with this state may have diverged, for its one-line error.  Optional."""
        return ""

    def most(self, n: int) -> dict[str, int]:
        """Fields with the largest number that makes a difference with n training rows: beyond it is the same."""
        return {"batch_size": n, "subset_rows": n}

    def row_memory(self, n: int) -> int:
        """How many numbers the state holds for each of n training rows.  Optional: few need not be counted."""
        return 0

    @property
    def label(self) -> str:
        """The size that tables tell runs of this method apart by, as the papers print it: `m=15%`.  Optional."""
        return ""


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
    ranges.parse("count or fraction").check("method.inducing", inducing)
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
