"""The script that makes walks, against the mirror's walks of the same policy."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ks_2samp

pytest.importorskip("mujoco", reason="MuJoCo is not installed: the extra `mujoco`")
pytest.importorskip("gymnasium", reason="Gymnasium is not installed: the extra `mujoco`")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("make_mujoco", ROOT / "scripts" / "make_mujoco.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(script, tmp_path_factory):
    return dict(np.load(script.make(tmp_path_factory.mktemp("walks"), episodes=5, block=2)))


@pytest.fixture(scope="module")
def stored(mirror):
    return dict(np.load(mirror / "mujoco_walk_250traj.npz"))


def changes(walks: dict, episodes: int) -> np.ndarray:
    """Changes of velocity within the first trajectories, clipped as the cards do."""
    ends = np.cumsum(walks["length"][:episodes].astype(int) + 1)
    parts = np.split(walks["state"][: ends[-1], 8:].clip(-10, 10), ends[:-1])
    return np.concatenate([np.diff(part, axis=0) for part in parts])


def test_the_first_steps_are_those_of_the_mirror_until_chaos_parts_them(made, stored):
    np.testing.assert_allclose(made["state"][:51], stored["state"][:51], atol=2e-5)
    np.testing.assert_allclose(made["act"][:50], stored["act"][:50], atol=2e-5)


def test_outputs_are_distributed_as_those_of_the_mirror(made, stored):
    ours, theirs = changes(made, 5), changes(stored, 250)
    assert max(ks_2samp(ours[:, j], theirs[:, j]).statistic for j in range(9)) < 0.04
    np.testing.assert_allclose(ours.std(axis=0), theirs.std(axis=0), rtol=0.1)


def test_a_stopped_run_goes_on_and_ends_with_the_same_walks(script, made, tmp_path, monkeypatch):
    asked = []
    episode = script.Walker.episode
    monkeypatch.setattr(script.Walker, "episode", lambda self, number: asked.append(number) or episode(self, number))
    script.make(tmp_path, episodes=2, block=2)
    (tmp_path / "trajectories_2.npz").rename(tmp_path / "block_0_2.npz")  # as if stopped after the first block
    again = dict(np.load(script.make(tmp_path, episodes=5, block=2)))
    assert asked == [0, 1, 2, 3, 4] and list(tmp_path.iterdir()) == [tmp_path / "trajectories_5.npz"]
    for name in ("length", "state", "act"):
        np.testing.assert_array_equal(again[name], made[name])
