"""The training loop: several splits at once under vmap, steps in chunks of `lax.scan`, evaluation between chunks.

It knows a method by `init`, `step` and `predict` alone.  Nothing runs on the host within a chunk.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from gpbench.errors import Stopped
from gpbench.methods.base import Batch, Method, State
from gpbench.train import batches
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.progress import Progress
from gpbench.train.stop import StopRequest

Predictions = dict[str, np.ndarray]
"""Per test row: `log_prob`, and `mean` and `var` (regression) or `log_probs` (classification); splits come first."""


@dataclass
class Group:
    """Splits of one shape that train in one program.  Arrays have the splits as first axis."""

    splits: list[int]
    X: Array
    y: Array
    X_test: Array
    y_test: Array
    classes: int
    init_keys: list[PRNGKeyArray]
    step_keys: PRNGKeyArray

    @property
    def size(self) -> int:
        return len(self.splits)


@dataclass
class Fit:
    """A group in training: where it is, and what it cost.  Seconds are the whole group's."""

    state: State
    step: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict(compile=0.0, train=0.0, evaluate=0.0))
    trace: dict[str, np.ndarray] = field(default_factory=dict)
    predictions: Predictions = field(default_factory=dict)


@dataclass(frozen=True)
class Cadence:
    """How often: steps between evaluations, seconds between checkpoints."""

    trace_every: int = 10
    checkpoint_every: float = 60.0


def initial(method: Method, group: Group) -> State:
    """The group's first states, stacked: `init` runs split by split, on the host where it likes."""
    states = [
        method.init(batches.whole(X, y, group.classes), key=key)
        for X, y, key in zip(group.X, group.y, group.init_keys, strict=True)
    ]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def fit(
    method: Method,
    group: Group,
    *,
    cadence: Cadence,
    score: Callable[[Predictions], dict[str, np.ndarray]],
    checkpoint: Checkpoint,
    progress: Progress,
    stop: StopRequest,
) -> Fit:
    """Trains the group to `method.steps`, from its last checkpoint if there is one.

    `score` turns predictions into test metrics for the trace, each (splits,).  Compilation, training and evaluation are
    timed apart.  Raises Stopped, after writing a checkpoint, when `stop` has a reason; StorageError.
    """
    started = time.perf_counter()
    run = Fit(initial(method, group))
    programs = _Programs(method, group, run)
    if saved := checkpoint.load(run.state):
        run.state, run.trace, facts = saved
        run.step = facts["step"]
        run.seconds = {name: run.seconds[name] + facts["seconds"][name] for name in run.seconds}
        progress.note(f"going on from the checkpoint at step {run.step}")
    run.seconds["train"] += time.perf_counter() - started - (run.seconds["compile"])
    saved_at = time.monotonic()
    while run.step < method.steps:
        length = min(cadence.trace_every, method.steps - run.step)
        objective = programs.advance(run, length)
        run.predictions = programs.predict(run)
        metrics = score(run.predictions)
        _extend(run, {"step": run.step, "seconds": run.seconds["train"], "objective": objective, **metrics})
        progress.update(run.step, float(np.mean(objective)), {k: float(np.mean(v)) for k, v in metrics.items()})
        reason = stop.reason if run.step < method.steps else None
        if reason or time.monotonic() - saved_at > cadence.checkpoint_every:
            checkpoint.save(run.state, run.trace, {"step": run.step, "seconds": run.seconds})
            saved_at = time.monotonic()
        if reason:
            raise Stopped(f"stopped by {reason} at step {run.step} of {method.steps}; the same command goes on from there")
        if not np.isfinite(objective).any() and not np.isfinite(run.predictions["log_prob"]).any():
            break  # every split of the group has diverged: more steps would not mend it
    if not run.predictions:
        run.predictions = programs.predict(run)
    return run


def _extend(run: Fit, row: dict[str, Any]) -> None:
    """Adds one row to the trace: scalars are shared by the group, arrays have a value per split."""
    for name, value in row.items():
        value = np.asarray(value)[None]
        run.trace[name] = np.concatenate([run.trace[name], value]) if name in run.trace else value


class _Programs:
    """The two compiled programs of a group: a chunk of steps, and the predictions.  Compiled once per shape, timed."""

    def __init__(self, method: Method, group: Group, run: Fit):
        self.method, self.group, self.seconds = method, group, run.seconds
        self.compiled: dict[Any, Callable] = {}

    def advance(self, run: Fit, length: int) -> np.ndarray:
        """`length` more steps; the objective of the last, per split."""
        group = self.group
        args = (run.state, group.X, group.y, group.step_keys, jnp.asarray(run.step))
        program = self._program(("advance", length), partial(_advance, self.method, group.classes, length), args)
        started = time.perf_counter()
        run.state, objective = jax.block_until_ready(program(*args))
        run.seconds["train"] += time.perf_counter() - started
        run.step += length
        return np.asarray(objective)

    def predict(self, run: Fit) -> Predictions:
        """Predictions of the test rows, on the host."""
        args = (run.state, self.group.X_test, self.group.y_test)
        program = self._program("predict", partial(_predict, self.method), args)
        started = time.perf_counter()
        predictions = jax.device_get(program(*args))
        run.seconds["evaluate"] += time.perf_counter() - started
        return predictions

    def _program(self, name, function, args) -> Callable:
        if name not in self.compiled:
            started = time.perf_counter()
            self.compiled[name] = jax.jit(function).lower(*args).compile()
            self.seconds["compile"] += time.perf_counter() - started
        return self.compiled[name]


def _advance(method: Method, classes: int, length: int, state, X, y, keys, start):
    """A chunk of steps on every split; the step number is shared, so that the splits stay one program."""

    def one_step(state, t):
        def on_split(state, X, y, key):
            data = batches.whole(X, y, classes)
            batch = batches.at_step(data, method.batch_size, t, key=jax.random.fold_in(key, 0))
            return method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, 1), t))

        state, info = eqx.filter_vmap(on_split)(state, X, y, keys)
        return state, info.objective

    state, objective = jax.lax.scan(one_step, state, start + jnp.arange(length))
    return state, objective[-1]


def _predict(method: Method, state, X, y):
    def on_split(state, X, y):
        predictive = method.predict(state, X)
        outputs = {"log_prob": predictive.log_prob(y)}
        return outputs | {name: getattr(predictive, name) for name in ("mean", "var", "log_probs") if hasattr(predictive, name)}

    return eqx.filter_vmap(on_split)(state, X, y)
