"""Checkpoints: whole or ignored, whatever happens to the file or the disk."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import FullDisk

from gpbench.errors import StorageError
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices

STATE = {"a": jnp.arange(3.0), "b": (jnp.ones((2, 2), jnp.float32), jnp.asarray(7))}
TRACE = {"step": np.array([10, 20]), "nll": np.array([[0.5, 0.4], [0.3, np.nan]])}
FACTS = {"step": 20, "seconds": {"train": 1.5}, "splits": [0, 3]}


@pytest.fixture
def checkpoint(tmp_path) -> Checkpoint:
    saved = Checkpoint(tmp_path / "checkpoints", "abc")
    saved.save(STATE, TRACE, FACTS)
    return saved


def same(loaded) -> bool:
    state, trace, facts = loaded
    pairs = [(state["a"], STATE["a"]), *zip(state["b"], STATE["b"]), *((trace[key], TRACE[key]) for key in TRACE)]
    return facts == FACTS and all(a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def test_what_is_saved_is_loaded_and_deleting_leaves_nothing_even_of_a_killed_process(checkpoint, tmp_path):
    assert same(checkpoint.load(STATE)) and checkpoint.facts() == FACTS
    none = Checkpoint(tmp_path / "none", "abc")
    assert none.load(STATE) is None and none.facts() is None
    folder: Path = checkpoint.path.parent
    (folder / ".abc.npz.12345.tmp").write_bytes(b"half")
    (folder / "other.npz").write_bytes(b"")
    checkpoint.delete()
    checkpoint.delete()
    assert [path.name for path in folder.iterdir()] == ["other.npz"]


def test_a_state_of_another_shape_type_or_size_does_not_fit_and_is_never_unpickled(checkpoint):
    b = STATE["b"]
    others = [{"a": a, "b": b} for a in (jnp.arange(4.0), jnp.arange(3))]
    others += [{"a": STATE["a"], "b": parts} for parts in (b[:1], (*b, jnp.ones(1)))]
    assert [checkpoint.load(other) for other in others] == [None] * 4
    with open(checkpoint.path, "wb") as file:
        np.savez(file, facts=json.dumps(FACTS), **{f"state/{i}": np.array([{}], dtype=object) for i in range(3)})
    assert checkpoint.load(STATE) is None


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_typed_random_keys_are_loaded_as_they_were_and_fit_no_others(tmp_path, impl):
    keys, checkpoint = jax.random.split(jax.random.key(7, impl=impl), 3), Checkpoint(tmp_path, "keys")
    state = {"key": keys, "w": jnp.ones(2)}
    checkpoint.save(Devices().on_host(state), TRACE, FACTS)
    loaded, *_ = checkpoint.load(state)
    assert loaded["key"].dtype == keys.dtype and loaded["w"].shape == (2,)
    draw = jax.vmap(jax.random.normal)
    np.testing.assert_array_equal(draw(loaded["key"]), draw(keys))
    others = [jax.random.split(jax.random.key(7, impl=other), 3) for other in ("rbg", "unsafe_rbg", "threefry2x32")]
    others = [other for other in others if other.dtype != keys.dtype] + [jax.random.key_data(keys)]
    assert [checkpoint.load({**state, "key": other}) for other in others] == [None] * 3


def test_a_folder_that_cannot_be_made_and_a_full_disk_are_one_line(tmp_path, checkpoint, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write the checkpoint .*run\.results=DIR"):
        Checkpoint(tmp_path / "file", "abc").save(STATE, TRACE, FACTS)
    monkeypatch.setattr("gpbench.outputs.open", FullDisk, raising=False)
    with pytest.raises(StorageError, match=r"No space left on device; free some space[^\n]*$"):
        checkpoint.save({"a": jnp.ones(100_000)}, TRACE, FACTS)
    assert same(checkpoint.load(STATE))
    assert [path.name for path in checkpoint.path.parent.iterdir()] == ["abc.npz"]
