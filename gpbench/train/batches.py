"""Rows of each training step.  Pure and traced: the rows of step t follow from the key and t alone."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PRNGKeyArray

from gpbench.core.random import permute
from gpbench.methods.base import Batch, Info, Method
from gpbench.methods.protocols import State


def whole(X, y, classes: int = 0, *, rows: int | None = None, weight=None) -> Batch:
    """Makes one batch of all rows.

    Args:
        X: inputs (N, D).
        y: targets (N,).
        classes: number of classes, 0 for regression.
        rows: number of rows that count; those beyond only fill the batch up and have weight 0.
        weight: sample weights above 0 (N,); None for 1.
    """
    index = jnp.arange(X.shape[0])
    total = X.shape[0] if rows is None else rows
    counted = (index < total).astype(X.dtype)
    return Batch(X, y, index, counted if weight is None else counted * weight, total, classes)


def at_step(data: Batch, size: int | None, t: Int[Array, ""], *, key: PRNGKeyArray) -> Batch:
    """The batch of step t: all rows, or `size` of them.

    An epoch visits every row once, in contiguous blocks in random order (the training rows were shuffled when they
    were split) from a random first row, so that every row is equally often in the short last block.  That block is
    padded with rows of weight 0.
    """
    if size is None or size >= data.total:
        return data
    n = data.total
    blocks = -(-n // size)
    epoch_key = jax.random.fold_in(key, t // blocks)
    first = jax.random.randint(epoch_key, (), 0, n)
    block = permute(t % blocks, blocks, key=jax.random.fold_in(epoch_key, 1))
    offset = block * size + jnp.arange(size)
    index = (first + offset) % n
    weight = (offset < n) * data.weight[index]
    return Batch(data.X[index], data.y[index], index, weight, n, data.classes)


_ROWS, _STEP, _PREDICTION, _VALIDATION = range(4)


def take_step(
    method: Method,
    state: State,
    data: Batch,
    t: Int[Array, ""],
    *,
    key: Key[Array, ""],
    split: Callable[[Batch], Batch] = lambda batch: batch,
) -> tuple[State, Info]:
    """Takes step t of a method on the rows of that step.

    Args:
        method: the method.
        state: its state before the step.
        data: all training rows.
        t: number of the step.
        key: key of the run.
        split: function that distributes the rows of the step over devices.

    Returns:
        The state after the step, and what the step reports.
    """
    batch = split(at_step(data, method.batch_size, t, key=jax.random.fold_in(key, _ROWS)))
    return method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, _STEP), t))


def prediction_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that `predict` gets in a run."""
    return jax.random.fold_in(key, _PREDICTION)


def validation_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key by which a run draws its validation rows."""
    return jax.random.fold_in(key, _VALIDATION)
