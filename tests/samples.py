"""Records for tests, with the fields that all records have, a disk that is full, and the choice of settings."""

import errno
import io
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from gpbench.records.record import Record
from gpbench.records.store import Store


def sample(id: str = "a" * 16, **fields) -> Record:
    """A finished run with these fields."""
    needed = {"id": id, "status": "done", "dataset": "pima", "method": "sep", "setting": "", "protocol": "clean"}
    return Record.create(**needed | {"split": 0, "seed": 0, "metrics": {}, "seconds": {}} | fields)


def grid(datasets: Iterable[str], methods: Iterable[str], splits: int = 3, **fields) -> list[Record]:
    """A run of each method on each split of each data set; a field may be a function of these three."""
    records = []
    for k, place in enumerate(product(datasets, methods, range(splits))):
        own = {name: value(*place) if callable(value) else value for name, value in fields.items()}
        records.append(sample(f"{k:016x}", **dict(zip(("dataset", "method", "split"), place)) | own))
    return records


def write(folder: Path, records: Iterable[Record], config: Mapping | None = None) -> Path:
    """The folder, with these records as results, each with a trace of two steps."""
    for record in records:
        Store(folder).write(record, dict(config or {}), {"step": np.arange(2)})
    return folder


def flips(content: bytes, count: int) -> Iterator[bytes]:
    """The content with one bit flipped, at random places."""
    for position in np.random.default_rng(0).integers(0, 8 * len(content), count).tolist():
        damaged = bytearray(content)
        damaged[position // 8] ^= 1 << position % 8
        yield bytes(damaged)


class FullDisk(io.FileIO):
    """A file on a disk that has no room after ten bytes, in the place of `gpbench.outputs.open`."""

    def write(self, content):
        super().write(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")


def chosen_state(method, data, *, key):
    """The state of a member with these rows, a `Batch`, after the choice of its settings, before its first step."""
    import jax

    from gpbench.data.splits import Member
    from gpbench.train.group import Fit, Group, initial
    from gpbench.train.programs import Programs, lay_out
    from gpbench.train.search import search

    X, y, weight = data.X[None], data.y[None], data.weight[None] if data.is_weighted else None
    group = Group([Member(0)], X, y, X[:, :1], y[:, :1], data.classes, key[None], key[None], weight=weight)
    programs, run = Programs(method), Fit(initial(method, group))
    search(programs, group, lay_out(programs.devices, group), run, method.trial_steps)
    return jax.tree.map(lambda leaf: leaf[0], run.state)
