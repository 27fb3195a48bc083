"""The interface of all methods: the base class `Method`, and the reports that pass through it."""

import abc
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import equinox as eqx
from jaxtyping import Array, Float, PRNGKeyArray

from gpbench import registry, schema
from gpbench.core.predictive import Predictive
from gpbench.errors import ConfigError, require
from gpbench.methods.protocols import Batch as Batch
from gpbench.methods.protocols import HasRates, HasSearch, State
from gpbench.schema import RANGE, setting, settings


class Info(eqx.Module):
    """Report of one step: the objective at the parameters that the step started from; larger is better."""

    objective: Float[Array, ""]


class Method(eqx.Module):
    """Base class of all methods: the settings of a method, and the functions that train it and predict.

    An instance holds the settings alone; everything that training changes is in the state.  `init` runs once per split
    on concrete arrays and may use the host.  `step`, `predict` and `objective` are pure and traced: jit, vmap over
    splits, scan over steps and sharding over devices come from outside.  No method owns a loop, a print, a file or a
    random seed.

    Arguments are values of the class's settings by name; those left out have their defaults.  A value out of its range,
    a kernel or a likelihood that the class does not take, and a `search` of a setting that is not in `searchable` raise
    a ConfigError.
    """

    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass", "regression"})
    """Kinds of targets that the method can be trained on."""
    kernels: ClassVar[tuple[str, ...] | None] = None
    """Families that the setting `kernel` can have, of all inputs; None: any."""
    likelihoods: ClassVar[tuple[str, ...] | None] = None
    """Families that the setting `likelihood` can have; None: any that fits the task."""
    sample_weights: ClassVar[bool] = False
    """True where a weight w of a row means w repeated rows: of its expected log likelihood, say.  Else the estimators
    refuse weights."""
    exposures: ClassVar[bool] = False
    """True if the method shifts latent values by `Batch.shifted`, so that counts may have exposures."""
    searchable: ClassVar[tuple[str, ...]] = ()
    """Settings that `search` can choose on validation rows."""
    carries_over: ClassVar[bool] = False
    """True if training can go on with all rows from the state of a search, which saw four fifths of them (`halving`):
    nothing in the state is made from the rows by `init`."""
    label_fields: ClassVar[frozenset[str]] = frozenset({"inducing", "batch_size"})
    """Settings that `label` shows, so that tables do not list them again."""

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
    halving: bool = setting(
        False,
        "flag",
        "Trials by successive halving, after which training goes on from the winner's state; false: every candidate "
        "takes trial_steps, and training starts again.",
    )

    def __check_init__(self) -> None:
        """Check every setting against its declaration, of gpbench's classes and of users'."""
        declared = settings(type(self))
        for name, field in declared.items():
            schema.parse(field.metadata[RANGE]).check(f"method.{name}", getattr(self, name))
        for kind, accepted in (("kernel", self.kernels), ("likelihood", self.likelihoods)):
            if kind in declared:
                registry.check_family(kind, getattr(self, kind), accepted, self.name or type(self).__name__)
        can_search, known = isinstance(self, HasSearch), " and ".join(self.searchable)
        fault = "has no initial step size to choose: leave it empty"
        require(not self.rates or isinstance(self, HasRates), f"method.rates: {self.name} {fault}", ConfigError)
        require(not self.search or can_search, f"method.search: {self.name} has no settings to choose", ConfigError)
        for name, values in self.search:
            can_choose = not self.searchable or name in self.searchable
            require(can_choose, f"method.search: {self.name} can choose {known}, not {name}", ConfigError)
            for value in values:
                words = declared[name].metadata[RANGE] if name in declared else "number"
                schema.parse(words).check(f"method.search.{name}", value)

    @abc.abstractmethod
    def init(self, data: Batch, *, key: PRNGKeyArray) -> State:
        """Make the initial state from all training rows, as concrete arrays; the same key gives the same state.  It is
        a pytree of arrays in the dtype of the data, with shapes that training keeps.  Settings and data that do not fit
        raise a ConfigError."""

    @abc.abstractmethod
    def step(self, state: State, batch: Batch, *, key: PRNGKeyArray) -> tuple[State, Info]:
        """Take one step of training, a pure function: the next state, of the same structure and shapes, and a report.
        The batch has all training rows, or `batch_size` of them."""

    @abc.abstractmethod
    def predict(self, state: State, X: Float[Array, "N D"], *, key: PRNGKeyArray) -> Predictive:
        """Predict the targets at standardised inputs: the distribution of each row's target, noise included.  It
        depends on that row and the key alone; deterministic methods ignore the key."""

    @property
    def label(self) -> str:
        """Size by which tables tell runs of this method apart, as papers print it, as in `m=15%`."""
        return ""


def _search(values: Any) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Convert a mapping, pairs of names and values, or null to tuples: static fields are compared and hashed.  A name
    whose values are null is left out: on the command line mappings are merged into the configured one."""
    pairs = values.items() if isinstance(values, Mapping) else values or ()
    return tuple((name, tuple(choices)) for name, choices in pairs if choices is not None)


FRACTION_MOST = 1000
"""The most inducing points that a fraction of the training rows gives: their cost is cubic, so more are asked for by
number."""


def inducing_count(
    inducing: float | int | str, n: int, *, name: str = "inducing", noun: str = "inducing points"
) -> int:
    """Number of inducing points, or what else (`noun`) a method has for some of its n rows by the setting `name`.  A
    fraction of the training rows is at most `FRACTION_MOST` of them; "15%, at least 200" is no fewer than 200, or all
    rows.  Numbers beyond 1 .. n raise a ConfigError."""
    schema.parse(schema.SIZE).check(f"method.{name}", inducing)
    share, least = schema.percentage(inducing) or (inducing, 0)
    m = int(share) if isinstance(share, Integral) else max(min(round(float(share) * n), FRACTION_MOST), min(least, n))
    fault = f"asks for {m} {noun}, but there are {n} training rows"
    mend = f"choose a number from 1 to {n} or a fraction up to 1.0"
    require(1 <= m <= n, f"method.{name}={inducing} {fault}: {mend}", ConfigError)
    return m


def size_label(method: Method, *sizes: str) -> str:
    """The sizes of a method, and its batch size where it has one, as `Method.label` shows them."""
    return ", ".join([*sizes, *([f"batch={method.batch_size}"] if method.batch_size else [])])


def inducing_setting(inducing: float | int | str, *, symbol: str = "m") -> str:
    """Label of this number of inducing points: `m=15%` for a fraction, `m=200` for a number; a text is its own, but
    for its comma, which stands between the terms of a setting."""
    size = f"{100 * inducing:g}%" if isinstance(inducing, float) else str(inducing).replace(",", "")
    return f"{symbol}={size}"
