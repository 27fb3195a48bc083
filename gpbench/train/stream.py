"""Training rows that stay on the host, in memory or on disk: minibatches of a chunk of steps at a time.

A thread reads the next chunk while the device works on this one.  Rows and their order are those of a run whose rows
are all on the device, and so are its numbers (`gpbench.train.batches.index_at_step`).
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from gpbench.train.batches import index_at_step, rows_key

SAMPLE = 2**20
"""Training rows that `init`, and with it the choice of settings and step sizes, sees of rows that are streamed."""
_BYTES = 2**26
"""Size of a chunk; two are in memory and on the device at a time."""
_STEPS = 256
"""Most steps of a chunk."""

Rows = Callable[[int, Int[np.ndarray, "T B"]], tuple[Float[np.ndarray, "T B D"], Float[np.ndarray, "T B"]]]
"""Inputs and targets of these training rows of the k-th member."""


class Stream:
    """The minibatches of a group's steps."""

    def __init__(
        self,
        rows: Rows,
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
        self._index = jax.jit(jax.vmap(partial(_index, total, size), in_axes=(None, 0)))
        self._thread = ThreadPoolExecutor(1, "rows")
        self._chunks: dict[int, Future] = {}

    def chunk(self, step: int, end: int) -> tuple[Float[Array, "S T B D"], Float[Array, "S T B"], int]:
        """Rows of the steps from `step` on, for `gpbench.train.batches.Chunk`.  Returns inputs and targets on the
        devices, and the number of the step, at most `end`, before which they end.
        """
        number = step // self.steps
        stop = (number + 1) * self.steps
        numbers = (number, number + 1) if stop < self._last else (number,)
        self._chunks = {k: self._chunks.get(k) or self._thread.submit(self._read, k) for k in numbers}
        return *self._chunks[number].result(), min(end, stop)

    def _read(self, number: int) -> tuple[Float[Array, "S T B D"], Float[Array, "S T B"]]:
        steps = number * self.steps + jnp.arange(self.steps)
        members = [self._rows(k, index) for k, index in enumerate(np.asarray(self._index(steps, self._keys)))]
        return self._to_devices(tuple(np.stack(arrays) for arrays in zip(*members, strict=True)))


def _index(n: int, size: int, steps: Int[Array, " T"], key: Key[Array, ""]) -> Int[Array, "T B"]:
    """The rows of these steps of one member."""
    return jax.vmap(lambda t: index_at_step(n, size, t, key=rows_key(key))[0])(steps)
