"""Checkpoints of a group of splits in training: written beside and renamed into place, read without pickle."""

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench import limits, npz
from gpbench.errors import StorageError, failure
from gpbench.outputs import whole_file
from gpbench.records.arrays import Headers


class Checkpoint:
    """One file for one group of runs.  `like` gives the structure and shapes that a state must have."""

    def __init__(self, folder: Path, name: str):
        self.path = folder / f"{name}.npz"

    def save(self, state: Any, trace: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Writes all three, or leaves the last checkpoint as it is.  Raises StorageError."""
        arrays = arrays_of(state)
        arrays |= {f"trace/{name}": np.asarray(values) for name, values in trace.items()}
        try:
            with whole_file(self.path) as file:
                # Zip's checksums cover what an array holds and not what it is called: the index has the names.
                index = json.dumps({"facts": dict(facts), "names": sorted(arrays)})
                np.savez(file, allow_pickle=False, index=index, **arrays)  # type: ignore[arg-type]
        except OSError as error:
            reason = failure(error, "name another folder with run.results=DIR", "make it writable")
            raise StorageError(f"cannot write the checkpoint {self.path}: {reason}; finished runs are kept") from error

    def facts(self) -> dict[str, Any] | None:
        """The facts as saved; None where there is no checkpoint that can be read."""
        try:
            with npz.opened(self.path, limits.STATE) as file:
                return json.loads(str(file["index"]))["facts"]
        except ValueError:
            return None

    def load(self, like: Any) -> tuple[Any, dict[str, np.ndarray], dict[str, Any]] | None:
        """State, trace and facts as saved; None where there is no checkpoint that fits `like`."""
        try:
            with npz.opened(self.path, limits.STATE) as file:
                state = {name: file[name] for name in file if name.startswith("state/")}
                trace = {name.removeprefix("trace/"): file[name] for name in file if name.startswith("trace/")}
                index = json.loads(str(file["index"]))
                whole = sorted({*file} - {"index"}) == index["names"] and len(file) == len(state) + len(trace) + 1
                facts = index["facts"]
        except ValueError:
            return None
        restored = state_of(state, like)
        return (restored, trace, facts) if whole and restored is not None else None

    def delete(self) -> None:
        """Forgets it, and what a process killed while it wrote has left beside it."""
        for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*.tmp")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """The leaves of a state by their names in a file, random keys as their numbers."""
    return {name: np.asarray(numbers) for name, numbers in _numbers_of(state).items()}


def headers_of(make: Callable[[], Any]) -> Headers:
    """The shapes and types of the leaves of a state by their names in a file.  The state, which may be larger than
    memory, is not made where its shapes are known without numbers."""
    names: list[str] = []

    def numbers() -> list[Any]:
        numbered = _numbers_of(make())
        names[:] = numbered
        return [*numbered.values()]

    try:
        shapes = jax.eval_shape(numbers)
    except Exception:  # of a method that looks at its data, whatever it makes of a trace
        shapes = numbers()
    return {name: (array.shape, array.dtype) for name, array in zip(names, shapes, strict=True)}


def state_of(arrays: Mapping[str, np.ndarray], like: Any) -> Any | None:
    """The state that has these arrays and the structure of `like`; None where names, shapes or types differ."""
    headers = headers_of(lambda: like)
    if {name: (numbers.shape, numbers.dtype) for name, numbers in arrays.items()} != headers:
        return None
    saved = jax.device_put([arrays[name] for name in headers])
    return jax.tree.unflatten(jax.tree.structure(like), leaves_of(dict(zip(headers, saved))))


def leaves_of(arrays: Mapping[str, Any]) -> list[Any]:
    """The leaves whose arrays `arrays_of` has named, in their order."""
    keyed = [(name.split("/")[2:], array) for name, array in arrays.items()]
    return [jax.random.wrap_key_data(jnp.asarray(array), impl=kind[0]) if kind else array for kind, array in keyed]


def _numbers_of(state: Any) -> dict[str, Any]:
    """The leaves by their names in a file: of random keys the numbers, and in the name their generator."""
    numbers = {}
    for i, leaf in enumerate(jax.tree.leaves(state)):
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            numbers[f"state/{i}/{jax.random.key_impl(leaf)}"] = jax.random.key_data(leaf)
        else:
            numbers[f"state/{i}"] = leaf
    return numbers
