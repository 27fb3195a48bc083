"""One step of a run, and the keys that its parts derive from one key of the run: no two uses share one."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Int, Key

from gpbench.methods.base import Batch, Info, Method, State
from gpbench.train import batches

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
    """Step t, on the rows of that step; `split` distributes these over devices.  `key` is the run's."""
    batch = split(batches.at_step(data, method.batch_size, t, key=jax.random.fold_in(key, _ROWS)))
    return method.step(state, batch, key=jax.random.fold_in(jax.random.fold_in(key, _STEP), t))


def prediction_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key that `predict` gets in a run."""
    return jax.random.fold_in(key, _PREDICTION)


def validation_key(key: Key[Array, ""]) -> Key[Array, ""]:
    """The key by which a run draws its validation rows."""
    return jax.random.fold_in(key, _VALIDATION)
