"""Checkpoints of a group of splits in training: written beside and renamed into place, read without pickle."""

import contextlib
import errno
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gpbench.errors import StorageError

_UNREADABLE = (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile)


class Checkpoint:
    """One file for one group of runs.  `like` gives the structure and shapes that a state must have."""

    def __init__(self, folder: Path, name: str):
        self.path = folder / f"{name}.npz"

    def save(self, state: Any, trace: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Writes all three, or leaves the last checkpoint as it is.  Raises StorageError."""
        arrays = {f"state/{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        arrays |= {f"trace/{name}": np.asarray(values) for name, values in trace.items()}
        beside = self.path.with_suffix(f".{os.getpid()}.tmp")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(beside, "wb") as file:
                np.savez(file, allow_pickle=False, facts=json.dumps(dict(facts)), **arrays)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            mend = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
            raise StorageError(
                f"cannot write the checkpoint {self.path}: {error.strerror or error}; {mend},"
                " or name another folder with run.results=DIR; finished runs are kept"
            ) from error

    def facts(self) -> dict[str, Any] | None:
        """The facts as saved; None where there is no checkpoint that can be read."""
        try:
            with np.load(self.path, allow_pickle=False) as file:
                return json.loads(str(file["facts"]))
        except _UNREADABLE:
            return None

    def load(self, like: Any) -> tuple[Any, dict[str, np.ndarray], dict[str, Any]] | None:
        """State, trace and facts as saved; None where there is no checkpoint that fits `like`."""
        leaves, structure = jax.tree.flatten(like)
        try:
            with np.load(self.path, allow_pickle=False) as file:
                state = [file[f"state/{i}"] for i in range(len(leaves))]
                trace = {name.removeprefix("trace/"): file[name] for name in file if name.startswith("trace/")}
                facts = json.loads(str(file["facts"]))
                more = f"state/{len(leaves)}" in file
        except _UNREADABLE:
            return None
        if more or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(state, leaves, strict=True)):
            return None
        return jax.tree.unflatten(structure, jax.device_put(state)), trace, facts

    def delete(self) -> None:
        """Forgets it, and what a process killed while it wrote has left beside it."""
        for path in (self.path, *self.path.parent.glob(f"{self.path.stem}.*.tmp")):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
