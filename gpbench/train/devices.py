"""Where a run's rows lie: on one device, on several of this process, or on those of several processes.

A step is written for all rows.  Here its arguments are laid out, rows over the devices and all else on every one of
them, and JAX's partitioner makes of it a program in which each device works on its own rows and sums are added up.
"""

import hashlib
import json
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from gpbench import runtime
from gpbench.errors import ConfigError

_ROWS = "rows"


class Devices:
    """`count` devices, of which every process of the run has its part; None is all that several processes have, or one.

    One device is JAX's default one, and then nothing here does anything.  Raises ConfigError where there are fewer.
    """

    def __init__(self, count: int | None = None):
        found = jax.devices()
        count = count or (len(found) if jax.process_count() > 1 else 1)
        if count > len(found):
            raise ConfigError(f"run.devices={count}: JAX finds {len(found)} ({found[0].device_kind}); ask for no more")
        if jax.process_count() > 1 and count < len(found):
            raise ConfigError(f"run.devices={count}: the {jax.process_count()} processes of this run have {len(found)}"
                              " devices together; leave run.devices=null for all of them")  # fmt: skip
        self.count = count
        self._mesh = None
        if count > 1:
            self._mesh = jax.make_mesh((count,), (_ROWS,), axis_types=(AxisType.Auto,), devices=found[:count])

    def facts(self) -> dict[str, Any]:
        """What a record says of them.  Simulated are devices that share a core of a CPU."""
        cpu = jax.default_backend() == "cpu"
        simulated = cpu and runtime.devices_here(self.count) > (os.cpu_count() or 1)
        return {"devices": self.count, "processes": jax.process_count(), "simulated": simulated}

    @property
    def leads(self) -> bool:
        """Whether this process is the one that writes checkpoints and records."""
        return jax.process_index() == 0

    def padded(self, n: int) -> int:
        """How many rows n become, so that every device has equally many."""
        return -(-n // self.count) * self.count

    def everywhere(self, tree: Any) -> Any:
        """Arrays, the same in every process, on every device."""
        return self._put(tree, lambda leaf: PartitionSpec())

    def by_rows(self, tree: Any, rows: int) -> Any:
        """Arrays with splits as first axis: those with `rows` as second are dealt out, the others are everywhere.

        An M x M matrix with M = N is dealt out too: how an array lies changes no number.
        """
        return self._put(tree, lambda leaf: _along(leaf, rows))

    def split(self, batch: Any) -> Any:
        """Inside a program: a minibatch in equal parts, as nearly as it goes, whichever rows it is made of."""
        if self._mesh is None:
            return batch
        layout = NamedSharding(self._mesh, PartitionSpec(_ROWS))
        return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, layout), batch)

    @property
    def common(self) -> NamedSharding | None:
        """For `jax.jit`: results that every device has.  None leaves it to JAX, where there is one device."""
        return None if self._mesh is None else NamedSharding(self._mesh, PartitionSpec())

    def layout(self, tree: Any) -> Any:
        """For `jax.jit`: results that lie as these arrays do."""
        return None if self._mesh is None else jax.tree.map(lambda leaf: leaf.sharding, tree)

    def on_host(self, tree: Any) -> Any:
        """The whole of every array as NumPy's, in every process; random keys stay typed.  All processes must ask."""

        def whole(leaf):
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(whole(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
            here = leaf.is_fully_addressable or leaf.is_fully_replicated
            return np.asarray(leaf if here else multihost_utils.process_allgather(leaf, tiled=True))

        return jax.tree.map(whole, tree)

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """For each flag whether it is true in any of the processes, which so take the same turn."""
        if jax.process_count() == 1:
            return flags
        return tuple(map(bool, multihost_utils.process_allgather(np.array(flags)).any(axis=0)))

    def must_agree(self, what: Any) -> None:
        """Raises ConfigError unless all processes say the same, which they do where they share a results folder."""
        if jax.process_count() == 1:
            return
        digest = hashlib.sha256(json.dumps(what).encode()).digest()
        told = multihost_utils.process_allgather(np.frombuffer(digest, np.uint8))
        if (told != told[0]).any():
            raise ConfigError("the processes of this run find different records: run.results must name one folder that"
                              " all of them see, in the same words")  # fmt: skip

    def meet(self, where: str) -> None:
        """Waits for the other processes."""
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(where)

    def _put(self, tree: Any, spec: Callable) -> Any:
        if self._mesh is None:
            return jax.tree.map(jnp.asarray, tree)
        mesh = self._mesh
        return jax.tree.map(lambda leaf: _on(NamedSharding(mesh, spec(leaf)), leaf), tree)


def _on(layout: NamedSharding, leaf: Any) -> jax.Array:
    """The array in this layout; each process puts its own part in place."""
    if layout.is_fully_addressable:
        return jax.device_put(leaf, layout)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_on(layout, jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, layout, lambda part: whole[part])


def _along(leaf: Any, rows: int) -> PartitionSpec:
    return PartitionSpec(None, _ROWS) if leaf.ndim > 1 and leaf.shape[1] == rows else PartitionSpec()


def fill(rows: np.ndarray, n: int) -> np.ndarray:
    """n rows: these, and as many of them again, in turn, as it takes.  What they count for is their weight's affair."""
    return rows if len(rows) == n else np.resize(rows, (n, *rows.shape[1:]))
