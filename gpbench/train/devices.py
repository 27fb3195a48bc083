"""The devices of a run: one, several of this process, or those of several processes.  A step is written for all rows:
from arguments sharded here JAX's partitioner derives a program in which each device works on its own rows."""

import hashlib
import json
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from gpbench import runtime
from gpbench.errors import ConfigError, require

_ROWS = "rows"


class Devices:
    """`count` devices, shared by the processes of the run; None is all devices of several processes, or one."""

    def __init__(self, count: int | None = None):
        devices = jax.devices()
        count = count or (len(devices) if jax.process_count() > 1 else 1)
        processes, kind = jax.process_count(), devices[0].device_kind
        few = f"run.devices={count}: JAX finds {len(devices)} ({kind}); ask for no more"
        require(count <= len(devices), few, ConfigError)
        many = f"run.devices={count}: the {processes} processes of this run have {len(devices)} devices together"
        all_used = processes == 1 or count == len(devices)
        require(all_used, f"{many}; leave run.devices=null for all of them", ConfigError)
        self.count = count
        self._mesh = None
        if count > 1:
            self._mesh = jax.make_mesh((count,), (_ROWS,), axis_types=(AxisType.Auto,), devices=devices[:count])

    def facts(self) -> dict[str, Any]:
        """The devices, as records have them.  Simulated devices share a core of a CPU."""
        simulated = jax.default_backend() == "cpu" and runtime.devices_here(self.count) > (os.cpu_count() or 1)
        return {"devices": self.count, "processes": jax.process_count(), "simulated": simulated}

    @property
    def leads(self) -> bool:
        """True in the process that writes checkpoints and records."""
        return jax.process_index() == 0

    def padded(self, n: int) -> int:
        """n rounded up to a multiple of the number of devices."""
        return -(-n // self.count) * self.count

    def everywhere(self, tree: Any) -> Any:
        """Replicated arrays, the same in every process."""
        return self.by_rows(tree, None)

    def by_rows(self, tree: Any, rows: int | None) -> Any:
        """Arrays with splits as first axis: those with `rows` as second are sharded, the others replicated.  An M x M
        matrix with M = N is sharded too: the layout changes no number."""
        if (mesh := self._mesh) is None:
            return jax.device_put(tree)  # jnp.asarray would compile a copy for each shape
        along = lambda leaf: rows is not None and leaf.ndim > 1 and leaf.shape[1] == rows
        spec = lambda leaf: PartitionSpec(None, _ROWS) if along(leaf) else PartitionSpec()
        return jax.tree.map(lambda leaf: _on(NamedSharding(mesh, spec(leaf)), leaf), tree)

    def split(self, batch: Any) -> Any:
        """Inside a program: a minibatch in parts as equal as possible, whichever rows it has."""
        if self._mesh is None:
            return batch
        layout = NamedSharding(self._mesh, PartitionSpec(_ROWS))
        return jax.tree.map(lambda leaf: jax.lax.with_sharding_constraint(leaf, layout), batch)

    @property
    def common(self) -> NamedSharding | None:
        """Sharding of replicated results, for `jax.jit`.  None leaves it to JAX, with one device."""
        return None if self._mesh is None else NamedSharding(self._mesh, PartitionSpec())

    def layout(self, tree: Any) -> Any:
        """Shardings of these arrays, for results of `jax.jit`."""
        return None if self._mesh is None else jax.tree.map(lambda leaf: leaf.sharding, tree)

    def on_host(self, tree: Any) -> Any:
        """The whole of every array as NumPy's, in every process; random keys stay typed.  All processes must ask."""

        def whole(leaf):
            if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
                return jax.random.wrap_key_data(whole(jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
            is_local = leaf.is_fully_addressable or leaf.is_fully_replicated
            return np.asarray(leaf if is_local else multihost_utils.process_allgather(leaf, tiled=True))

        return jax.tree.map(whole, tree)

    def any(self, *flags: bool) -> tuple[bool, ...]:
        """Whether each flag is true in any of the processes, so that all of them branch alike."""
        if jax.process_count() == 1:
            return flags
        return tuple(map(bool, multihost_utils.process_allgather(np.array(flags)).any(axis=0)))

    def must_agree(self, value: Any) -> None:
        """Raises ConfigError unless all processes pass the same, as they do where they share a results folder."""
        if jax.process_count() == 1:
            return
        digest = hashlib.sha256(json.dumps(value).encode()).digest()
        digests = multihost_utils.process_allgather(np.frombuffer(digest, np.uint8))
        mend = "run.results must name one folder that all of them see, written in the same way"
        fault = "the processes of this run find different records"
        require((digests == digests[0]).all(), f"{fault}: {mend}", ConfigError)

    def meet(self, stage: str) -> None:
        """Waits for the other processes."""
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(stage)


def _on(layout: NamedSharding, leaf: Any) -> jax.Array:
    """The array in this layout; each process puts its own part in place."""
    if layout.is_fully_addressable:
        return jax.device_put(leaf, layout)
    if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(_on(layout, jax.random.key_data(leaf)), impl=jax.random.key_impl(leaf))
    whole = np.asarray(leaf)
    return jax.make_array_from_callback(whole.shape, layout, lambda index: whole[index])


def fill(rows: np.ndarray, n: int) -> np.ndarray:
    """n rows: these, padded by repeating them in order.  Their weights say which count."""
    return rows if len(rows) == n else np.resize(rows, (n, *rows.shape[1:]))
