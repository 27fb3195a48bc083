"""Rows of each training step: those of step t follow from the key and t alone, also where they stay on the host."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from gpbench.core.random import permute
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.protocols import State

SAMPLE = 2**20  # rows that `init`, and with it the choice of settings and step sizes, sees of those that are streamed
_BYTES = 2**26  # size of a chunk; two are in memory and on the device at a time
_STEPS = 256  # most steps of a chunk


def parted(X: Any, exposure: bool) -> tuple[Any, Any]:
    """The inputs that kernels have, and the last one where it is the logarithm of an exposure, else None."""
    return (X[..., :-1], X[..., -1]) if exposure else (X, None)


def whole(X, y, classes: int = 0, *, rows: int | None = None, weight=None, unit=None, exposure: bool = False) -> Batch:
    """Makes one batch of all rows."""
    X, shift = parted(X, exposure)
    total = X.shape[0] if rows is None else rows
    index, counted = _index_and_count(X.shape[0], total, X.dtype)
    if weight is None:
        return Batch(X, y, index, counted, total, classes, unit=unit, log_exposure=shift)
    return Batch(X, y, index, counted * weight, total, classes, is_weighted=True, unit=unit, log_exposure=shift)


@partial(jax.jit, static_argnums=(0, 1, 2), inline=True)
def _index_and_count(n: int, total: int, dtype: Any) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """The index of each of n rows, and 1 for the first `total` of them, else 0."""
    index = jnp.arange(n)
    return index, (index < total).astype(dtype)


class Chunk(eqx.Module):
    """Rows of the minibatches of T steps that follow each other (`Stream`): step t is the entry t mod T."""

    X: Float[Array, "T B D"]  # standardised inputs
    y: Float[Array, "T B"]  # targets
    total: int = eqx.field(static=True)  # number N of training rows
    classes: int = eqx.field(static=True)  # number of classes, as in `Batch`
    log_exposure: Float[Array, "T B"] | None = None


def _index_at_step(
    n: int, size: int, t: Int[Array, ""], *, key: PRNGKeyArray
) -> tuple[Int[Array, " B"], Bool[Array, " B"]]:
    """The index of the rows of step t among n rows, and which of them count.  An epoch visits every row once, in blocks
    in random order (the rows were shuffled when they were split) from a random first row, so that every row is equally
    often in the short last block, which is padded with rows that do not count."""
    blocks = -(-n // size)
    epoch_key = jax.random.fold_in(key, t // blocks)
    first = jax.random.randint(epoch_key, (), 0, n)
    block = permute(t % blocks, blocks, key=jax.random.fold_in(epoch_key, 1))
    offset = block * size + jnp.arange(size)
    return (first + offset) % n, offset < n


def at_step(data: Batch | Chunk, size: int | None, t: Int[Array, ""], *, key: PRNGKeyArray) -> Batch:
    """The batch of step t: all rows, or the `size` of them that `_index_at_step` selects."""
    if size is None or size >= data.total:
        assert isinstance(data, Batch)
        return data
    index, counts = _index_at_step(data.total, size, t, key=key)
    row = t % len(data.X) if isinstance(data, Chunk) else index
    weight = counts.astype(data.X.dtype)
    if isinstance(data, Batch) and data.is_weighted:
        weight *= data.weight[index]
    shift = None if data.log_exposure is None else data.log_exposure[row]
    return Batch(data.X[row], data.y[row], index, weight, data.total, data.classes, log_exposure=shift)


_ROWS, _STEP, _PREDICTION, VALIDATION = range(4)  # numbers of the keys that follow from one


def take_step(
    method: Method,
    state: State,
    data: Batch | Chunk,
    t: Int[Array, ""],
    *,
    key: Key[Array, ""],
    split: Callable[[Batch], Batch] = lambda batch: batch,
) -> tuple[State, Info]:
    """The state after step t of a method on the rows of that step, and what the step reports."""
    batch = split(at_step(data, method.batch_size, t, key=_rows_key(key)))
    return method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, _STEP), t))


def _rows_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that selects the rows of steps (`_index_at_step`)."""
    return jax.random.fold_in(key, _ROWS)


def prediction_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that `predict` gets in a run."""
    return jax.random.fold_in(key, _PREDICTION)


class Stream:
    """The minibatches of a group's steps, from rows that stay on the host; a thread reads the chunk after this one."""

    def __init__(
        self,
        rows: Callable[[int, Int[np.ndarray, "T B"]], tuple[Any, Any]],
        *,
        total: int,
        size: int,
        last: int,
        row_bytes: int,
        keys: Key[Array, " S"],
        to_devices: Callable[[Any], Any],
    ):
        self.total, self._last = total, last
        self.steps = int(np.clip(_BYTES // (row_bytes * size * len(keys)), 1, min(_STEPS, max(last, 1))))
        self._rows, self._keys, self._to_devices = rows, keys, to_devices
        index = lambda t, key: _index_at_step(total, size, t, key=_rows_key(key))[0]
        self._index = jax.jit(jax.vmap(jax.vmap(index, in_axes=(0, None)), in_axes=(None, 0)))
        self._thread = ThreadPoolExecutor(1, "rows")
        self._chunks: dict[int, Future] = {}

    def chunk(self, step: int, end: int) -> tuple[Float[Array, "S T B D"], Float[Array, "S T B"], int]:
        """Inputs and targets of the steps from `step` on, and the number, at most `end`, before which they end."""
        number = step // self.steps
        stop = (number + 1) * self.steps
        numbers = (number, number + 1) if stop < self._last else (number,)
        self._chunks = {k: self._chunks.get(k) or self._thread.submit(self._read, k) for k in numbers}
        return *self._chunks[number].result(), min(end, stop)

    def _read(self, number: int) -> tuple[Float[Array, "S T B D"], Float[Array, "S T B"]]:
        steps = number * self.steps + jnp.arange(self.steps)
        members = [self._rows(k, index) for k, index in enumerate(np.asarray(self._index(steps, self._keys)))]
        return self._to_devices(tuple(np.stack(arrays) for arrays in zip(*members, strict=True)))
