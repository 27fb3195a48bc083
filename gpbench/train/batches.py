"""Rows of each training step.  Pure and traced: the rows of step t follow from the key and t alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from gpbench.core.random import permute
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.protocols import State


def whole(X, y, classes: int = 0, *, rows: int | None = None, weight=None, unit=None) -> Batch:
    """Makes one batch of all rows."""
    total = X.shape[0] if rows is None else rows
    index, counted = _index_and_count(X.shape[0], total, X.dtype)
    if weight is None:
        return Batch(X, y, index, counted, total, classes, unit=unit)
    return Batch(X, y, index, counted * weight, total, classes, is_weighted=True, unit=unit)


@partial(jax.jit, static_argnums=(0, 1, 2), inline=True)
def _index_and_count(n: int, total: int, dtype: Any) -> tuple[Int[Array, " N"], Float[Array, " N"]]:
    """The index of each of n rows, and 1 for the first `total` of them, else 0."""
    index = jnp.arange(n)
    return index, (index < total).astype(dtype)


class Chunk(eqx.Module):
    """Rows of the minibatches of T steps that follow each other, where all rows do not fit (`gpbench.train.stream`).

    Step t is the entry t mod T.
    """

    X: Float[Array, "T B D"]  # standardised inputs
    y: Float[Array, "T B"]  # targets
    total: int = eqx.field(static=True)  # number N of training rows
    classes: int = eqx.field(static=True)  # number of classes, as in `Batch`


def index_at_step(
    n: int, size: int, t: Int[Array, ""], *, key: PRNGKeyArray
) -> tuple[Int[Array, " B"], Bool[Array, " B"]]:
    """Select the rows of step t: their index among n rows, and which of them count.

    An epoch visits every row once, in contiguous blocks in random order (the training rows were shuffled when they
    were split) from a random first row, so that every row is equally often in the short last block.  That block is
    padded with rows that do not count.
    """
    blocks = -(-n // size)
    epoch_key = jax.random.fold_in(key, t // blocks)
    first = jax.random.randint(epoch_key, (), 0, n)
    block = permute(t % blocks, blocks, key=jax.random.fold_in(epoch_key, 1))
    offset = block * size + jnp.arange(size)
    return (first + offset) % n, offset < n


def at_step(data: Batch | Chunk, size: int | None, t: Int[Array, ""], *, key: PRNGKeyArray) -> Batch:
    """The batch of step t: all rows, or the `size` of them that `index_at_step` selects."""
    if size is None or size >= data.total:
        assert isinstance(data, Batch)
        return data
    index, counts = index_at_step(data.total, size, t, key=key)
    row = t % len(data.X) if isinstance(data, Chunk) else index
    weight = counts.astype(data.X.dtype)
    if isinstance(data, Batch) and data.is_weighted:
        weight *= data.weight[index]
    return Batch(data.X[row], data.y[row], index, weight, data.total, data.classes)


_ROWS, _STEP, _PREDICTION, _VALIDATION = range(4)


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
    batch = split(at_step(data, method.batch_size, t, key=rows_key(key)))
    return method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, _STEP), t))


def rows_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that selects the rows of steps (`index_at_step`)."""
    return jax.random.fold_in(key, _ROWS)


def prediction_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that `predict` gets in a run."""
    return jax.random.fold_in(key, _PREDICTION)


def validation_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key by which a run draws its validation rows."""
    return jax.random.fold_in(key, _VALIDATION)
