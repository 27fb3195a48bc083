"""Members of one shape that train together: their arrays, their initial states, and how far their training is."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from gpbench.core.predictive.recalibrated import Recalibration
from gpbench.core.predictive.warped import Warp
from gpbench.data.splits import Member
from gpbench.errors import ConfigError, require
from gpbench.methods.base import Method
from gpbench.methods.protocols import HasRates, State
from gpbench.runtime import available_cores
from gpbench.train import batches
from gpbench.train.batches import Stream

Predictions = dict[str, np.ndarray]
"""Per test row `log_prob`, with `mean`, `var` and `cdf` (regression) or `log_probs` (classification), and for the bound
`expected_log_prob` and, one for each member, `kl`; members come first."""

PARTS = ("init", "search", "compile", "train", "evaluate")
"""Stages whose seconds a record has: initial states (with what they import and compile on the way), the choice of
settings, compilation, the steps, and predictions with their metrics."""

_compilations = {"before": 0.0, "seconds": 0.0}  # CPU seconds when the last one began, and of all in this process


def _follow(event: str, duration_secs: float, **_: str | int) -> None:
    if event.endswith("jaxpr_to_mlir_module_duration"):  # the stage right before compilation
        _compilations["before"] = time.process_time()
    elif event.endswith("backend_compile_duration"):
        most = duration_secs * max(1, len(available_cores()))  # by the clock, which runs on while others compute
        _compilations["seconds"] += min(time.process_time() - _compilations["before"], most)


jax.monitoring.register_event_duration_secs_listener(_follow)  # initial states compile on the way


def spent() -> float:
    """CPU seconds of this process so far, without those of compilation."""
    return time.process_time() - _compilations["seconds"]


class Changes(eqx.Module):
    """Changes of what methods predict, which make it a prediction of targets as they were; those of each member."""

    warp: Warp | None = None  # from targets as they were to those of training; None: they are alike
    recalibration: Recalibration | None = None  # of predictions of what methods train on
    exposure: bool = eqx.field(static=True, default=False)  # the last input is the logarithm of an exposure
    threshold: Float[Array, "..."] | None = None  # scaled, above which targets have scores of their own


@dataclass
class Group:
    """Members of one shape that train in one program; arrays have these as first axis.  Of the N training rows the
    first `rows` count, None being all; those beyond give every device equally many, with weight 0.  With a `stream` the
    steps have their rows from there, arrays stay on the host, and X and y are what `init` sees."""

    members: list[Member]
    X: Float[Array | np.ndarray, "S N D"]
    y: Float[Array | np.ndarray, "S N"]
    X_test: Float[Array | np.ndarray, "S T D"]
    y_test: Float[Array | np.ndarray, "S T"]
    classes: int
    init_keys: Key[Array, " S"]
    step_keys: Key[Array, " S"]
    rows: int | None = None
    changes: Changes = field(default_factory=Changes)
    stream: Stream | None = None
    weight: Float[Array | np.ndarray, "S N"] | None = None  # sample weights above 0; None for 1
    unit: Float[np.ndarray, "S U"] | None = None  # size of one unit of each kernel's input in the file's; None for 1
    kept_out: tuple[np.ndarray, ...] | None = None  # inputs and trained targets of rows that choose a recalibration

    @property
    def size(self) -> int:
        return len(self.members)

    @property
    def total(self) -> int:
        """Number of training rows of a member that count."""
        rows = self.stream.total if self.stream else self.rows
        return self.X.shape[1] if rows is None else rows


@dataclass
class Fit:
    """A group in training: where it is, and what it cost.  Seconds are the whole group's."""

    state: State
    step: int = 0
    over: bool = False  # all steps are done, or every member has converged or diverged
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    trace: dict[str, np.ndarray] = field(default_factory=dict)
    predictions: Predictions = field(default_factory=dict)
    converged: list[bool] | None = None  # True for each member whose further steps would change nothing; None: unknown
    step_memory: int | None = None  # bytes that compiled steps need beside state and data; None: XLA does not say
    step_operations: float | None = None  # arithmetic operations of a compiled step of a member
    row_operations: float | None = None  # the same of the prediction of a row
    cpu_seconds: float = 0.0  # of all parts without compilation
    on_part: Callable[[str], None] = lambda phase: None  # is called with the name of each of `PARTS` when it begins

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Adds what happens inside to the seconds of a part."""
        self.on_part(phase)
        start, cpu = time.perf_counter(), spent()
        yield
        self.seconds[phase] += time.perf_counter() - start
        if phase != "compile":
            self.cpu_seconds += spent() - cpu


def initial(method: Method, group: Group, run: Fit | None = None) -> State:
    """The group's initial states, stacked, with the settings that are configured and the first of `method.rates`."""
    states, timed = [], run.timed if run else nullcontext
    exposure = group.changes.exposure
    fault = f"{method.name} takes no exposure: leave it out, or take svi, gam or constant"
    require(method.exposures or not exposure, fault, ConfigError)
    of_all = [None] * group.size
    keys = [group.init_keys[member] for member in range(group.size)]  # JAX can trace an index, and no iteration
    weights, units = (of_all if array is None else array for array in (group.weight, group.unit))
    for X, y, key, weight, unit in zip(group.X, group.y, keys, weights, units, strict=True):
        facts = {"classes": group.classes, "rows": group.rows, "weight": weight, "unit": unit, "exposure": exposure}
        data = batches.whole(jax.device_put(X), jax.device_put(y), **facts)
        with timed("init"):
            state = method.init(data, key=key)
        if isinstance(method, HasRates) and method.rates:
            state = method.with_rate(state, method.rates[0])
        is_sample = group.stream is not None and len(y) < group.stream.total
        fault = f"keeps numbers for each row, and run.stream takes such methods up to {len(y):,} rows"
        has_rows = is_sample and any(len(y) in leaf.shape for leaf in jax.tree.leaves(state))
        require(not has_rows, f"{method.name} {fault}", ConfigError)
        states.append(state)
    are_alike = len(set(map(jax.tree.structure, states))) == 1  # not of gam, where an input varies in some rows alone
    require(are_alike, "these runs differ in what they learn, and cannot train together: run.together=1", ConfigError)
    if len(states) > 1:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    # One member's state is not copied, since it may be most of what there is; but two leaves may be one array.
    leaves, structure = jax.tree.flatten(states.pop())
    uses = Counter(map(id, leaves))
    own, shared = eqx.partition(leaves, [uses[id(leaf)] == 1 for leaf in leaves])
    return jax.tree.unflatten(structure, eqx.combine(*_with_member_axis(own, shared)))


@partial(jax.jit, donate_argnums=0)
def _with_member_axis(own: list[Array | None], shared: list[Array | None]) -> tuple[list, list]:
    """Arrays with an axis of one member in front, the first ones in the same memory.  They have the types that steps
    return, lest these are compiled for weak types too."""
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, leaf.dtype)[None], (own, shared))
