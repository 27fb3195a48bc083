"""The compiled programs of a method: chunks of steps, and predictions, of several splits or outputs at once."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from gpbench.core.mapping import map_members
from gpbench.core.memory import require_memory
from gpbench.core.operations import count_operations
from gpbench.errors import ConfigError, MemoryShortage, require
from gpbench.log import log
from gpbench.methods.base import Method
from gpbench.methods.protocols import HasConvergence
from gpbench.train import batches
from gpbench.train.batches import Chunk, prediction_key, take_step
from gpbench.train.devices import Devices
from gpbench.train.faults import log_probs, predictions
from gpbench.train.group import Fit, Group, Predictions, initial

_BLOCK = 2**16  # test rows that are predicted at a time where the training rows are streamed
_SMALLEST = 2**10  # fewest test rows of a prediction: memory that is short for them is short for training too
_FEWEST = 64  # rows that programs for new rows are for, at least


def lay_out(devices: Devices, group: Group) -> Group:
    """The group with its arrays where the steps need them; on the host where they are streamed."""
    if group.stream:
        return group
    trained = devices.by_rows((group.X, group.y, group.weight), rows=group.X.shape[1])
    dtype = trained[0].dtype
    fault = f"JAX makes {dtype} of {group.X.dtype}: something in this process has set"
    mend = "jax_enable_x64 to false, such as the module of a method; leave that out"
    require(dtype == group.X.dtype, f"{fault} {mend}", ConfigError)
    others = ("X_test", "y_test", "init_keys", "step_keys", "changes")
    arrays = devices.everywhere(tuple(getattr(group, name) for name in others))
    return replace(group, **dict(zip(("X", "y", "weight", *others), (*trained, *arrays), strict=True)))


class Programs:
    """The programs of a method, for steps and for predictions of what `arrays` makes, compiled once for each shape."""

    def __init__(self, method: Method, devices: Devices | None = None, arrays: Callable = predictions):
        self.method, self._arrays = method, arrays
        self.devices = devices or Devices()
        self._compiled: dict[Any, _Program] = {}
        self._trials: dict[Any, Programs] = {}
        self._blocks: dict[Any, int] = {}

    def of_trials(self, method: Method) -> "Programs":
        """The programs of trials of this method with other settings, which predict log densities alone.  They are kept:
        trials of further groups compile nothing."""
        key = method.steps, method.rates
        return self._trials.setdefault(key, self._trials.get(key) or Programs(method, self.devices, log_probs))

    def footprint(self, group: Group) -> int:
        """The bytes that a step on this group takes on each device: state, data and work, of the compiled program."""
        state = self.devices.by_rows(initial(self.method, group), rows=group.X.shape[1])
        return self.memory(lay_out(self.devices, group), Fit(state)) or 0

    def memory(self, group: Group, run: Fit) -> int | None:
        """Bytes that a step takes on each device, of a group that has begun; None where XLA does not say."""
        memory = self._step_program(group, run, self._start(group), run.step + 1)[0].memory
        return memory and memory.argument_size_in_bytes + memory.temp_size_in_bytes

    def operations(self, group: Group, run: Fit) -> tuple[float, float] | None:
        """Arithmetic operations of a step, and of a prediction of all test rows, for a member; None if not compiled."""
        step = self._step_program(group, run, self._start(group), run.step + 1)[0].operations
        size = self._block(group, run)
        block = self._prediction_program(group, run, 0, size)[0].operations
        return None if step is None or block is None else (step, block * group.X_test.shape[1] / size)

    def _start(self, group: Group) -> Any:  # sum of the objectives of no steps
        return self.devices.everywhere(np.zeros(group.size, group.X.dtype))

    def _step_program(self, group: Group, run: Fit, total: Any, end: int) -> tuple["_Program", tuple, int]:
        """The compiled program of the next steps, its arguments, and the step before which it stops: at most `end`."""
        X, y = group.X, group.y
        if group.stream:
            with run.timed("train"):
                X, y, end = group.stream.chunk(run.step, end)
        ends = self.devices.everywhere((np.asarray(run.step), np.asarray(end)))
        args = (run.state, total, X, y, group.weight, group.step_keys, *ends)
        steps = partial(self._take_steps, group.classes, group.changes.exposure, group.total)
        return self._program(steps, group, args, run), args, end

    def advance(self, group: Group, run: Fit, steps: int) -> tuple[np.ndarray, np.ndarray]:
        """`steps` more; the objective of the last and the mean over all of them, per member."""
        total, end = self._start(group), run.step + steps
        while run.step < end:
            program, args, stop = self._step_program(group, run, total, end)
            run.step_operations = program.operations
            run.step_memory = program.memory and program.memory.temp_size_in_bytes
            with run.timed("train"):
                run.state, (last, total), converged = jax.block_until_ready(program.function(*args))
            run.step = stop
        run.converged = None if converged is None else np.asarray(converged).tolist()
        return np.asarray(last), np.asarray(total) / steps

    def predict(self, group: Group, run: Fit) -> None:
        """Predictions of the test rows, on the host."""
        size, rows, blocks = self._block(group, run), group.X_test.shape[1], []
        for start in range(0, rows, size):
            program, args = self._prediction_program(group, run, start, size)
            run.row_operations = None if program.operations is None else program.operations / size
            with run.timed("evaluate"):
                blocks.append(jax.device_get(program.function(*args)))
        of_rows = lambda name: np.concatenate([block[name] for block in blocks], axis=1)[:, :rows]
        run.predictions = {name: of_rows(name) if a.ndim > 1 else a for name, a in blocks[0].items()}

    def predict_new(self, group: Group, run: Fit, X: Float[np.ndarray, "S T D"]) -> Predictions:
        """Predictions of rows without targets, on the host.  Copies of the last row fill them up to one of few numbers
        of rows, for which alone a program is compiled."""
        rows = X.shape[1]
        step = max(_FEWEST, 2 ** (rows.bit_length() - 3))  # so that copies are a quarter at most
        size = -(-rows // step) * step
        X = X[:, np.minimum(np.arange(size), rows - 1)]
        # targets are for log probabilities, which are not used
        X, y = self.devices.everywhere((X, np.zeros(X.shape[:2], X.dtype)))
        self.predict(replace(group, X_test=X, y_test=y), run)
        return {name: a[:, :rows] if a.ndim > 1 else a for name, a in run.predictions.items()}

    def _block(self, group: Group, run: Fit) -> int:
        """Number of test rows that are predicted at a time: all, or half as many until the memory is enough."""
        shape = (group.X.shape, group.X_test.shape)
        rows = group.X_test.shape[1]
        size = self._blocks.get(shape) or (min(_BLOCK, rows) if group.stream else rows)
        while shape not in self._blocks and size > _SMALLEST:
            try:
                self._prediction_program(group, run, 0, size)
            except MemoryShortage:
                size = max(_SMALLEST, -(-size // 2))
            else:
                break
        return self._blocks.setdefault(shape, size)

    def _prediction_program(self, group: Group, run: Fit, start: int, size: int) -> tuple["_Program", tuple]:
        """The compiled program that predicts `size` test rows from `start` on, and its arguments."""
        rows = (group.X_test, group.y_test)
        if size < group.X_test.shape[1]:
            index = np.arange(start, start + size) % group.X_test.shape[1]
            rows = (group.X_test[:, index], group.y_test[:, index])
        if group.stream:
            rows = self.devices.everywhere(rows)
        args = (run.state, *rows, group.step_keys, group.changes)
        return self._program(partial(self._predict_rows, group.classes), group, args, run), args

    def _program(self, body: partial, group: Group, args: tuple, run: Fit) -> "_Program":
        """The compiled program of a function, whose first arguments are constants, for others like these."""
        if jax.config.jax_disable_jit:  # type: ignore[attr-defined]  # a method is being debugged
            return _Program(body)
        leaves, structure = jax.tree.flatten(args)
        key = (body.func.__name__, body.args, structure, *map(jax.typeof, leaves))
        if key not in self._compiled:
            common = self.devices.common
            options: dict[str, Any] = {"out_shardings": common}
            work, rows = "predictions of", args[1]
            if body.func == self._take_steps:
                # The old state's memory becomes the new one's: a state may be most of what there is.
                options = {"out_shardings": (self.devices.layout(run.state), common, common), "donate_argnums": 0}
                work, rows = "one step's work on", group.X
            with run.timed("compile"):
                traced = jax.jit(body, **options).trace(*args)
                compiled = traced.lower().compile()
            log.debug("compiled %s %s x %s rows: %.1f s so far", work, *rows.shape[:2], run.seconds["compile"])
            program = _Program(compiled, compiled.memory_analysis(), count_operations(traced.jaxpr) / group.size)
            if program.memory:
                require_memory(program.memory.temp_size_in_bytes, f"{work} {group.size} x {rows.shape[1]} rows")
            self._compiled[key] = program
        return self._compiled[key]

    def _take_steps(self, classes: int, exposure: bool, rows: int, state, total, X, y, weight, keys, start, end):
        """Steps `start` to `end` - 1 on every member: its state, its last objective and `total` with all of them added,
        and whether it has converged.  `start` and `end` are traced: chunks of every length are one program."""
        method = self.method

        def on_member(state, total, X, y, weight, key):
            if X.ndim > 2:
                inputs, shift = batches.parted(X, exposure)
                data: Any = Chunk(inputs, y, rows, classes, shift)
            else:
                data = batches.whole(X, y, classes, rows=rows, weight=weight, exposure=exposure)

            def one_step(t, carry):
                state, info = take_step(method, carry[0], data, jnp.asarray(t), key=key, split=self.devices.split)
                objective = jnp.asarray(info.objective, X.dtype)
                return state, objective, carry[2] + objective

            first = (state, np.full((), np.nan, X.dtype), total)
            state, objective, total = jax.lax.fori_loop(start, end, one_step, first)
            converged = method.converged(state) if isinstance(method, HasConvergence) else None
            return state, (objective, total), converged

        return map_members(on_member, state, total, X, y, weight, keys)

    def _predict_rows(self, classes: int, state, X, y, keys, changes):
        """`Predictions` of every member, or of these as many as the function `arrays` makes."""

        def on_member(state, X, y, key, changes):
            return self._arrays(self.method, classes, state, X, y, key=prediction_key(key), changes=changes)

        return map_members(on_member, state, X, y, keys, changes)


class _Program(NamedTuple):
    """A function with XLA's analysis of its memory and its operations for a member, where it is compiled."""

    function: Callable
    memory: Any = None
    operations: float | None = None
