"""Makes the trajectories of the data sets mujoco1_full and mujoco2_full: walks of MuJoCo's Walker2d-v5, in the store.

The policy is `gpbench/data/assets/mujoco_walk_policy.npz`, a stochastic one of two layers of 64 units, trained by TRPO.
Episode e draws all its random numbers from NumPy's `default_rng(e)`.  Walks are chaotic: another machine, or another
version of MuJoCo, makes other walks after the first second or so, of the same distribution.

Episodes are made in blocks, which lie in the store until all are there; the same command goes on where it was stopped.
Needs `pip install -c constraints.txt -e .[mujoco]`.
"""

import argparse
import importlib.util
import os
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Float

from gpbench import paths

POLICY = resources.files("gpbench.data") / "assets/mujoco_walk_policy.npz"
SUBSTEPS, LONGEST, RESET_NOISE = 4, 1000, 5e-3  # physics steps of 0.002 s per action; actions per episode


class Walker:
    """Walker2d-v5 as Gymnasium has it, with the policy that walks it."""

    def __init__(self) -> None:
        self.mujoco, xml = _simulator()
        self.model = self.mujoco.MjModel.from_xml_path(str(xml))
        self.data = self.mujoco.MjData(self.model)
        with POLICY.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            self.policy = {name: archive[name].astype(float) for name in archive.files}

    def episode(self, number: int) -> tuple[Float[np.ndarray, "T1 17"], Float[np.ndarray, "T 6"]]:
        """States (positions but x: 8, velocities: 9), one more than actions, which are within ±1."""
        rng, data = np.random.default_rng(number), self.data
        self.mujoco.mj_resetData(self.model, data)
        data.qpos += rng.uniform(-RESET_NOISE, RESET_NOISE, 9)
        data.qvel[:] = rng.uniform(-RESET_NOISE, RESET_NOISE, 9)
        self.mujoco.mj_forward(self.model, data)
        states, actions = [self._state()], []
        while len(actions) < LONGEST and self._stands():
            actions.append(self._action(states[-1], rng.standard_normal(6)))
            data.ctrl[:] = actions[-1]
            self.mujoco.mj_step(self.model, data, nstep=SUBSTEPS)
            states.append(self._state())
        return np.array(states), np.array(actions)

    def _state(self) -> Float[np.ndarray, " 17"]:
        return np.concatenate([self.data.qpos[1:], self.data.qvel])

    def _stands(self) -> bool:
        _, height, pitch = self.data.qpos[:3]
        return bool(0.8 < height < 2.0 and -1.0 < pitch < 1.0)

    def _action(self, state: Float[np.ndarray, " 17"], noise: Float[np.ndarray, " 6"]) -> Float[np.ndarray, " 6"]:
        p = self.policy
        observed = np.concatenate([state[:8], state[8:].clip(-10, 10)])
        hidden = ((observed - p["mu"]) / p["sd"]).clip(-10, 10)
        for layer in "12":
            hidden = np.tanh(hidden @ p[f"W{layer}"] + p[f"b{layer}"])
        return (hidden @ p["W3"] + p["b3"] + p["std"] * noise).clip(-1, 1)


def _simulator():
    """The module mujoco, and where Gymnasium keeps the model.  Exits with one line where either is not installed."""
    gymnasium = importlib.util.find_spec("gymnasium")  # only its file is wanted
    if gymnasium is None or gymnasium.origin is None or importlib.util.find_spec("mujoco") is None:
        raise SystemExit("MuJoCo and Gymnasium are needed: pip install -c constraints.txt -e .[mujoco]")
    import mujoco

    return mujoco, Path(gymnasium.origin).parent / "envs/mujoco/assets/walker2d_v5.xml"


def make(folder: Path, episodes: int, block: int) -> Path:
    """Writes `trajectories_<episodes>.npz` into a folder and returns its path: `length`, `state` and `act`, float32,
    the trajectories one below the other.  Blocks that are there already are taken as they are."""
    whole = folder / f"trajectories_{episodes}.npz"
    if whole.is_file():
        return whole
    folder.mkdir(parents=True, exist_ok=True)
    starts = range(0, episodes, block)
    parts = [folder / f"block_{start}_{min(start + block, episodes)}.npz" for start in starts]
    walker = Walker()
    for start, part in zip(starts, parts):
        if not part.is_file():
            walks = [walker.episode(number) for number in range(start, min(start + block, episodes))]
            states, actions = (np.concatenate(arrays).astype(np.float32) for arrays in zip(*walks))
            length = np.array([len(actions) for _, actions in walks], dtype=np.int16)
            _write(part, {"length": length, "state": states, "act": actions})
            print(f"{part.name}: {length.sum()} steps", flush=True)
    loaded = [dict(np.load(part, allow_pickle=False)) for part in parts]
    _write(whole, {name: np.concatenate([arrays[name] for arrays in loaded]) for name in loaded[0]})
    for part in parts:
        part.unlink()
    return whole


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Written beside and renamed into place, so that a file that is there is whole."""
    beside = path.with_name(f"{path.stem}.{os.getpid()}.part")
    with open(beside, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)
    os.replace(beside, path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=1000, help="1000 is what the cards read")
    parser.add_argument("--block", type=int, default=20, help="episodes between two files")
    parser.add_argument("--store", type=Path, default=paths.store_dir(), help="default: GPBENCH_STORE, or datasets/")
    options = parser.parse_args()
    try:
        print(make(options.store / "mujoco_walk", options.episodes, options.block))
    except OSError as error:
        raise SystemExit(f"{options.store} cannot be written: {error.strerror}; --store names another") from None


if __name__ == "__main__":
    main()
