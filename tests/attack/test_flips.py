"""Damaged records, collections and checkpoints, made by a seed: flipped bytes, cut ends, and pieces in another place.

Each is refused in a line, or read as the same numbers: no other exception, and no other numbers in silence.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import sample

from gpbench.errors import GpbenchError
from gpbench.records import collection, folder
from gpbench.records.arrays import pack
from gpbench.records.collection import open_store
from gpbench.records.store import Store
from gpbench.train.checkpoint import Checkpoint

ID = "a" * 16
RNG = np.random.default_rng(0)
TRACE = {"step": np.arange(60), "nll": RNG.normal(size=60)}
COLUMNS = ("target", "log_prob", "mean", "variance")
PREDICTIONS = {"row": np.arange(50), **{name: RNG.uniform(size=50) for name in COLUMNS}}
STATE = {"state/0": jnp.asarray(RNG.normal(size=(5, 5))), "state/1": jnp.arange(7)}


def damaged(content: bytes, count: int) -> Iterator[bytes]:
    """The content with one to three bytes changed, with its end cut off, or with a piece of it in another place."""
    rng = np.random.default_rng(len(content))
    for kind in rng.integers(3, size=count).tolist():
        start, end, place = [*sorted(rng.integers(len(content), size=2).tolist()), int(rng.integers(len(content)))]
        if kind == 0:
            changed = bytearray(content)
            for position in rng.integers(len(content), size=int(rng.integers(1, 4))).tolist():
                changed[position] ^= int(rng.integers(1, 256))
            yield bytes(changed)
        elif kind == 1:
            yield content[:place]
        else:
            piece = content[start:end][:64]
            yield content[:place] + piece + content[place + int(rng.integers(2)) * len(piece) :]


def of_record(results: Path) -> tuple[Path, Callable[[], Any]]:
    """The record of a run that has all files, and the reading of the run, None where a file of it is left out."""
    store = Store(results)
    store.write(sample(ID), {"method": {"m": 3}}, TRACE, predictions=PREDICTIONS, state=STATE)

    def read() -> Any:
        store = Store(results)
        record = store.get(ID, whole=False)
        contents = [store.config(ID), store.trace(ID), store.predictions(ID), store.state(ID)]
        return [record.to_json(), *contents] if record and all(contents) else None

    return store.runs / ID / folder.RECORD, read


def of_collection(results: Path) -> tuple[Path, Callable[[], Any]]:
    """A collection, and the reading of it, None where a record is left out."""
    rows = [(sample(f"{k:016x}", split=k), f"a: {k}\n") for k in range(20)]
    collection.write(path := results / "all.parquet", rows, {record.id: pack(TRACE) or b"" for record, _ in rows})

    def read() -> Any:
        store = open_store(path)
        records = store.all()
        traces = [store.trace(record.id) for record in records]
        whole = len(records) == len(rows) and all(traces)
        return [[r.to_json() for r in records], [store.config(r.id) for r in records], traces] if whole else None

    return path, read


def of_checkpoint(results: Path) -> tuple[Path, Callable[[], Any]]:
    """A checkpoint, and the loading of it."""
    checkpoint = Checkpoint(results, "group")
    checkpoint.save(STATE, TRACE, {"step": 3})
    return checkpoint.path, lambda: jax.tree.map(np.asarray, checkpoint.load(STATE))


KINDS: dict[str, Callable[[Path], tuple[Path, Callable[[], Any]]]] = {
    folder.RECORD: of_record,
    "collection": of_collection,
    "checkpoint": of_checkpoint,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [40, 400])
def test_a_damaged_file_is_refused_or_read_as_the_same_numbers(count, kind, tmp_path):
    path, read = KINDS[kind](tmp_path)
    whole, content = read(), path.read_bytes()
    assert whole is not None
    noticed = 0
    for changed in damaged(content, count):
        path.write_bytes(changed)
        try:
            found = read()
        except GpbenchError as error:
            assert "\n" not in str(error)
            found = None
        if found is None:
            noticed += 1
        else:
            np.testing.assert_equal(found, whole)
    assert noticed > count / 2
    path.write_bytes(content)
    np.testing.assert_equal(read(), whole)
