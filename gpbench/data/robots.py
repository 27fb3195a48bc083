"""Readers of the robots' sets of Cheng and Boots (2017), section 4: motions of a KUKA arm, walks of a MuJoCo model."""

import io
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from gpbench.data import archives
from gpbench.data.dataset import Raw
from gpbench.errors import DataError

TORQUE_UNITS = np.array([40.0, 40.0, 20.0, 20.0, 4.0, 4.0, 2.0])  # N m: torques are divided by these
ARM_COLUMNS = tuple(f"{kind}{joint}" for kind in ("position", "velocity", "acceleration") for joint in range(1, 8))
ARM_OUTPUTS = tuple(f"torque{joint}" for joint in range(1, 8))

_JOINTS = ("thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left")
_POSITIONS = ("z", "pitch", *_JOINTS)
_VELOCITIES = ("x", *_POSITIONS)
_STATES = (*(f"position_{name}" for name in _POSITIONS), *(f"velocity_{name}" for name in _VELOCITIES))
_WALK_COLUMNS = (*_STATES, *(f"action_{name}" for name in _JOINTS))
CLIPPED = 10.0  # m/s or rad/s: what Gym's observations of the walker are clipped to


def kuka(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Text of 28 numbers a row: positions (rad), velocities and accelerations of seven joints, then their torques
    (N m), which are divided by `TORQUE_UNITS`.  Several files are put one below the other."""
    try:
        with warnings.catch_warnings(action="error"):  # of a file without rows
            rows = np.concatenate([np.loadtxt(io.BytesIO(blob), ndmin=2) for blob in blobs])
    except (ValueError, UserWarning) as error:
        raise DataError(f"not a table of numbers: {error}") from None
    if rows.shape[1] != 28:
        raise DataError(f"{rows.shape[1]} numbers in a row, not 28")
    return Raw(rows[:, :21], rows[:, 21:] / TORQUE_UNITS, ARM_COLUMNS, outputs=ARM_OUTPUTS)


def mujoco_walk(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Trajectories of MuJoCo's Walker2d: one row per step, to predict how the nine velocities change in it.

    The archive holds `length` (trajectories,) in steps; `act` (steps, 6); and `state`, positions (8) and velocities
    (9), one row more than steps for each trajectory.  Inputs are state and action, with `frames: 2` also those of the
    step before.  `variant: clipped` clips velocities to ±10 before anything else, as Gym's observations do; `raw` does
    not.
    """
    found = archives.arrays(blobs[0], "state", "act", "length")
    try:
        state, act = (found[key].astype("<f8") for key in ("state", "act"))
        length = found["length"].astype(int)
    except ValueError as error:
        raise DataError(f"not the expected npz file: {error}") from None
    steps = int(length.sum())
    if state.shape != (steps + len(length), len(_STATES)) or act.shape != (steps, len(_JOINTS)):
        raise DataError(f"{steps} steps do not fit states of shape {state.shape} and actions of shape {act.shape}")
    if options.get("variant") == "clipped":
        state[:, len(_POSITIONS) :] = state[:, len(_POSITIONS) :].clip(-CLIPPED, CLIPPED)
    trajectory = np.repeat(np.arange(len(length)), length)
    now = np.arange(steps) + trajectory  # the row of a step's state
    X, columns = np.hstack([state[now], act]), _WALK_COLUMNS
    change = (state[now + 1] - state[now])[:, len(_POSITIONS) :]
    if options.get("frames") == 2:
        later = np.flatnonzero(np.diff(trajectory) == 0) + 1
        X, columns = np.hstack([X[later], X[later - 1]]), (*columns, *(f"{name}_before" for name in columns))
        change, trajectory = change[later], trajectory[later]
    return Raw(X, change, columns, outputs=tuple(f"change_{name}" for name in _VELOCITIES), groups=trajectory)
