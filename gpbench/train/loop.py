"""The training loop: several splits or outputs at once under vmap, steps in compiled chunks, evaluation between chunks.

It knows a method by `init`, `step` and `predict` alone.  Nothing runs on the host within a chunk.  With several
processes each of them runs this loop, and all take the same turns.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from gpbench import runtime
from gpbench.data.members import Member
from gpbench.errors import Stopped
from gpbench.methods.base import Method, State
from gpbench.train import batches
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices
from gpbench.train.progress import Progress
from gpbench.train.steps import prediction_key, take_step
from gpbench.train.stop import StopRequest
from gpbench.train.trials import best_rate, best_settings

Predictions = dict[str, np.ndarray]
"""Per test row `log_prob`, with `mean`, `var` and `cdf` (regression) or `log_probs` (classification), and for the bound
`expected_log_prob` and, one for each member, `kl`; members come first."""

PARTS = ("init", "search", "compile", "train", "evaluate")
"""What the seconds of a record are of: initial states (with what they import and compile on the way), the choice of
settings, compilation, the steps, and predictions with their metrics."""


@dataclass
class Group:
    """Members of one shape that train in one program.  Arrays have these as first axis, and begin on the host.

    Of the N training rows the first `rows` count, None being all; those beyond give every device equally many, with
    weight 0.
    """

    members: list[Member]
    X: Float[Array | np.ndarray, "S N D"]
    y: Float[Array | np.ndarray, "S N"]
    X_test: Float[Array | np.ndarray, "S T D"]
    y_test: Float[Array | np.ndarray, "S T"]
    classes: int
    init_keys: Key[Array, " S"]
    step_keys: Key[Array, " S"]
    rows: int | None = None

    @property
    def size(self) -> int:
        return len(self.members)


@dataclass
class Fit:
    """A group in training: where it is, and what it cost.  Seconds are the whole group's."""

    state: State
    step: int = 0
    over: bool = False
    """All steps are done, or every member has converged or diverged."""
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PARTS, 0.0))
    trace: dict[str, np.ndarray] = field(default_factory=dict)
    predictions: Predictions = field(default_factory=dict)
    converged: list[bool] | None = None
    """Of each member, whether further steps would change nothing; None for methods without a criterion."""

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Adds what happens inside to the seconds of a part."""
        start = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - start


@dataclass(frozen=True)
class Cadence:
    """How often: steps between evaluations; seconds between checkpoints, None for none but where a run is stopped."""

    trace_every: int = 10
    checkpoint_every: float | None = 60.0


def initial(method: Method, group: Group, run: Fit | None = None) -> State:
    """The group's initial states, stacked: `init` runs member by member, on the host where it likes.

    Settings and step sizes that a run chooses are chosen here, and the seconds added to those of `run`.  Without a
    `run` the step size is the first of `method.rates`, and the settings are the configured ones.
    """
    states = []
    for X, y, key in zip(group.X, group.y, group.init_keys, strict=True):
        data = batches.whole(jnp.asarray(X), jnp.asarray(y), group.classes, rows=group.rows)
        with run.timed("init") if run else nullcontext():
            state = method.init(data, key=key)
        with run.timed("search") if run else nullcontext():
            if method.search and run:
                state = method.with_settings(state, best_settings(method, data.first(group.rows), key=key))
            if method.rates:
                state = method.with_rate(state, best_rate(method, state, data, key=key) if run else method.rates[0])
        states.append(state)
    if len(states) > 1:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    # One member's state is not copied, since it may be most of what there is; but two leaves may be one array.
    leaves, structure = jax.tree.flatten(states.pop())
    uses = Counter(map(id, leaves))
    return jax.tree.unflatten(structure, [_with_member_axis(a) if uses[id(a)] == 1 else a[None] for a in leaves])


@partial(jax.jit, donate_argnums=0)
def _with_member_axis(leaf: Array) -> Array:
    """An array with an axis of one member in front, in the same memory."""
    return leaf[None]


def fit(
    programs: "Programs",
    group: Group,
    *,
    cadence: Cadence,
    score: Callable[[Predictions], dict[str, np.ndarray]],
    checkpoint: Checkpoint,
    progress: Progress,
    stop: StopRequest,
) -> Fit:
    """Trains the group to its method's last step, from its last checkpoint if there is one.

    `score` turns predictions into test metrics for the trace, each (members,).  Raises Stopped, after writing a
    checkpoint, when `stop` has a reason; StorageError.
    """
    method, devices = programs.method, programs.devices
    run = _begin(programs, group, checkpoint, progress)
    group = lay_out(devices, group)

    def save():
        facts: dict[str, Any] = {"members": group.members, "seconds": run.seconds}
        facts |= {"step": run.step, "over": run.over, "converged": run.converged}
        state = devices.on_host(run.state)
        if devices.leads:
            checkpoint.save(state, run.trace, facts)

    saved_at = time.monotonic()
    while not run.over:
        objective, average = programs.advance(group, run, min(cadence.trace_every, method.steps - run.step))
        programs.predict(group, run)
        with run.timed("evaluate"):
            metrics = score(run.predictions)
        row = {"step": run.step, "seconds": run.seconds["train"], "objective": objective, "objective_mean": average}
        _extend(run, {**row, **metrics})
        progress.update(run.step, float(np.mean(objective)), {k: float(np.mean(v)) for k, v in metrics.items()})
        diverged = not np.isfinite(objective).any() and not np.isfinite(run.predictions["log_prob"]).any()
        run.over = run.step >= method.steps or diverged or (run.converged is not None and all(run.converged))
        reason = None if run.over else stop.reason
        every = cadence.checkpoint_every
        stopped, due = devices.any(bool(reason), every is not None and time.monotonic() - saved_at > every)
        if stopped or due:
            save()
            saved_at = time.monotonic()
        if stopped:
            at = f"step {run.step} of {method.steps}"
            raise Stopped(f"stopped by {reason or 'another process'} at {at}; run the same command to resume")
    if not run.predictions:
        programs.predict(group, run)
    if group.size > 1:  # a kill between two of the group's records must not lose what the others were made from
        save()
    return run


def _begin(programs: "Programs", group: Group, checkpoint: Checkpoint, progress: Progress) -> Fit:
    """The group as its checkpoint has it, or at its initial states.  What came after the checkpoint never counts."""
    method, lay = programs.method, partial(programs.devices.by_rows, rows=group.X.shape[1])
    if checkpoint.path.exists():
        if saved := checkpoint.load(lay(initial(method, group))):  # its settings are chosen already
            state, trace, facts = saved
            progress.note(f"going on from the checkpoint at step {facts['step']}")
            return Fit(lay(state), facts["step"], facts["over"], facts["seconds"], trace, converged=facts["converged"])
        progress.note(f"the checkpoint {checkpoint.path} is damaged or does not fit: starting anew")
    run = Fit(state=None, over=method.steps == 0)
    run.state = lay(initial(method, group, run))
    return run


def lay_out(devices: Devices, group: Group) -> Group:
    """The group with its arrays where the steps need them."""
    trained = devices.by_rows((group.X, group.y), rows=group.X.shape[1])
    others = devices.everywhere((group.X_test, group.y_test, group.init_keys, group.step_keys))
    names = ("X", "y", "X_test", "y_test", "init_keys", "step_keys")
    return replace(group, **dict(zip(names, (*trained, *others), strict=True)))


def _extend(run: Fit, row: dict[str, Any]) -> None:
    """Adds one row to the trace: scalars are shared by the group, arrays have a value per member."""
    for name, value in row.items():
        value = np.asarray(value)[None]
        run.trace[name] = np.concatenate([run.trace[name], value]) if name in run.trace else value


class Programs:
    """The two programs of a method, for steps and for predictions: compiled once for each shape of a group."""

    def __init__(self, method: Method, devices: Devices | None = None):
        self.method = method
        self.devices = devices or Devices()
        self._compiled: dict[Any, Any] = {}

    def footprint(self, group: Group) -> int:
        """The bytes that a step on this group takes on each device: state, data and work, of the compiled program."""
        state = self.devices.by_rows(initial(self.method, group), rows=group.X.shape[1])
        program, _ = self._advance(lay_out(self.devices, group), Fit(state), 1)
        memory = program.memory_analysis()
        return memory.argument_size_in_bytes + memory.temp_size_in_bytes

    def _advance(self, group: Group, run: Fit, steps: int) -> tuple[Any, tuple]:
        """The compiled program of a chunk, and its arguments."""
        ends = self.devices.everywhere((np.asarray(run.step), np.asarray(run.step + steps)))
        args = (run.state, group.X, group.y, group.step_keys, *ends)
        return self._program(_advance, group, args, run), args

    def advance(self, group: Group, run: Fit, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """`steps` more; the objective of the last and the mean over all of them, per member."""
        program, args = self._advance(group, run, steps)
        with run.timed("train"):
            run.state, objectives, converged = jax.block_until_ready(program(*args))
        run.step += steps
        run.converged = None if converged is None else np.asarray(converged).tolist()
        last, average = map(np.asarray, objectives)
        return last, average

    def predict(self, group: Group, run: Fit) -> None:
        """Predictions of the test rows, on the host."""
        args = (run.state, group.X_test, group.y_test, group.step_keys)
        program = self._program(_predict, group, args, run)
        with run.timed("evaluate"):
            run.predictions = jax.device_get(program(*args))

    def _program(self, function: Callable, group: Group, args: tuple, run: Fit) -> Any:
        leaves, structure = jax.tree.flatten(args)
        key = (function, group.classes, group.rows, structure, *map(jax.typeof, leaves))
        if key not in self._compiled:
            with run.timed("compile"):
                program = self._jitted(function, group, run)
                compiled = program.lower(*args).compile()
            if memory := compiled.memory_analysis():
                work = f"one step's work on {group.size} x {group.X.shape[1]} rows"
                runtime.require_memory(memory.temp_size_in_bytes, work)
            self._compiled[key] = compiled
        return self._compiled[key]

    def _jitted(self, function: Callable, group: Group, run: Fit) -> Any:
        method, devices = self.method, self.devices
        if function is _predict:
            return jax.jit(partial(_predict, method), out_shardings=devices.common)
        # The old state's memory becomes the new one's: a state may be most of what there is.
        body = partial(_advance, method, group.classes, group.rows, devices)
        layouts = (devices.layout(run.state), devices.common, devices.common)
        return jax.jit(body, donate_argnums=0, out_shardings=layouts)


def _advance(method: Method, classes: int, rows: int | None, devices: Devices, state, X, y, keys, start, end):
    """Steps `start` to `end` - 1 on every member; their last and their mean objective, and whether it has converged.

    `start` and `end` are traced, so that chunks of every length are one program.
    """

    def on_member(state, X, y, key):
        data = batches.whole(X, y, classes, rows=rows)

        def one_step(t, carry):
            state, info = take_step(method, carry[0], data, t, key=key, split=devices.split)
            objective = info.objective.astype(X.dtype)
            return state, objective, carry[2] + objective

        first = (state, jnp.full((), jnp.nan, X.dtype), jnp.zeros((), X.dtype))
        state, objective, total = jax.lax.fori_loop(start, end, one_step, first)
        return state, (objective, total / (end - start)), method.converged(state)

    return _over_members(on_member, state, X, y, keys)


def _over_members(on_member: Callable, *stacked):
    """`on_member` on every member, in one program: side by side on a GPU, one after another on a CPU.

    A CPU's cores are busy with one member's products already, and batched products are slower there (measured: 4.9
    against 3.4 ms an iteration of `sep` at M=104).  A single member is not sliced, which would copy its data.
    """
    if jax.tree.leaves(stacked)[0].shape[0] == 1:
        only = on_member(*jax.tree.map(lambda a: a[0], stacked))
        return jax.tree.map(lambda a: a[None], only)
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda one: on_member(*one), stacked)
    return jax.vmap(on_member)(*stacked)


def _predict(method: Method, state, X, y, keys):
    """What `Predictions` says, for every member."""

    def on_member(state, X, y, key):
        known = method.predict(state, X, key=prediction_key(key)).arrays(y)
        bound = {"expected_log_prob": method.expected_log_prob(state, X, y), "kl": method.kl(state)}
        return known if any(part is None for part in bound.values()) else known | bound

    return _over_members(on_member, state, X, y, keys)
