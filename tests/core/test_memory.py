"""Compiled programs are forgotten where jobs of ever new shapes made many, and kept where they are used again."""

import jax
import jax.numpy as jnp
import pytest

from gpbench.core import memory


@pytest.fixture
def limit(monkeypatch) -> int:
    """A process without compiled programs, which keeps 20."""
    monkeypatch.setattr(memory, "_surviving", 0)
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 0)
    memory.release_programs()
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 20)
    return memory._surviving + 20


def count() -> int:
    return len(jax.local_devices()[0].client.live_executables())


def work(rows: int) -> float:
    """A job on so many rows: a few programs for each shape."""
    return float(jnp.sum(jnp.ones(rows) * 2.0))


def test_programs_of_many_shapes_are_bounded(limit):
    released = []
    for rows in range(1, 21):
        assert work(rows) == 2.0 * rows
        released.append(memory.release_programs())
        assert count() <= limit
    assert any(released)


def test_jobs_of_one_shape_keep_their_programs(limit):
    work(3)
    before = count()
    for _ in range(30):
        work(3)
        assert not memory.release_programs()
    assert count() == before


def test_programs_in_use_survive(limit, monkeypatch):
    held = jax.jit(lambda x: x + 1.0).lower(jnp.ones(2)).compile()
    monkeypatch.setattr(memory, "MOST_PROGRAMS", 0)
    assert memory.release_programs()
    assert held(jnp.ones(2)).tolist() == [2.0, 2.0]
