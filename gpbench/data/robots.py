"""Robots: recordings of an arm and of a walker, and a simulated arm with its inverse dynamics."""

import io
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from gpbench.data import archives
from gpbench.data.dataset import Raw
from gpbench.errors import require

TORQUE_UNITS = np.array([40.0, 40.0, 20.0, 20.0, 4.0, 4.0, 2.0])  # N m: torques are divided by these
_ARM_COLUMNS = tuple(f"{kind}{joint}" for kind in ("position", "velocity", "acceleration") for joint in range(1, 8))
_ARM_OUTPUTS = tuple(f"torque{joint}" for joint in range(1, 8))

_JOINTS = ("thigh", "leg", "foot", "thigh_left", "leg_left", "foot_left")
_POSITIONS = ("z", "pitch", *_JOINTS)
_VELOCITIES = ("x", *_POSITIONS)
_STATES = (*(f"position_{name}" for name in _POSITIONS), *(f"velocity_{name}" for name in _VELOCITIES))
_WALK_COLUMNS = (*_STATES, *(f"action_{name}" for name in _JOINTS))
_CLIPPED = 10.0  # m/s or rad/s: what Gym's observations of the walker are clipped to


def kuka(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Text of 28 numbers a row: positions (rad), velocities and accelerations of joints, torques (N m)."""
    with archives.parsing("a table of numbers"), warnings.catch_warnings(action="error"):  # of a file without rows
        rows = np.concatenate([np.loadtxt(io.BytesIO(blob), ndmin=2) for blob in blobs])
    require(rows.shape[1] == 28, f"{rows.shape[1]} numbers in a row, not 28")
    return Raw(rows[:, :21], rows[:, 21:] / TORQUE_UNITS, _ARM_COLUMNS, outputs=_ARM_OUTPUTS)


@archives.parsing("the expected npz file")
def mujoco_walk(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Trajectories of MuJoCo's Walker2d, from state and action of a step, or of two by `frames: 2`, to the change of
    velocities: arrays `length` in steps, `act` and `state`, which has a row more than steps for each trajectory."""
    content = archives.arrays(blobs[0], "state", "act", "length")
    state, act = (content[key].astype("<f8") for key in ("state", "act"))
    length = content["length"].astype(int)
    steps = int(length.sum())
    is_fit = state.shape == (steps + len(length), len(_STATES)) and act.shape == (steps, len(_JOINTS))
    require(is_fit, f"{steps} steps do not fit states of shape {state.shape} and actions of shape {act.shape}")
    if options.get("variant") == "clipped":  # as Gym's observations are
        state[:, len(_POSITIONS) :] = state[:, len(_POSITIONS) :].clip(-_CLIPPED, _CLIPPED)
    trajectory = np.repeat(np.arange(len(length)), length)
    now = np.arange(steps) + trajectory  # the row of a step's state
    X, columns = np.hstack([state[now], act]), _WALK_COLUMNS
    change = (state[now + 1] - state[now])[:, len(_POSITIONS) :]
    if options.get("frames") == 2:
        later = np.flatnonzero(np.diff(trajectory) == 0) + 1
        X, columns = np.hstack([X[later], X[later - 1]]), (*columns, *(f"{name}_before" for name in columns))
        change, trajectory = change[later], trajectory[later]
    return Raw(X, change, columns, outputs=tuple(f"change_{name}" for name in _VELOCITIES), groups=trajectory)


# A simulated arm, a stand-in for the KUKA recordings of Cheng and Boots (2017).  Seven joints with the proportions of
# KUKA's LBR iiwa 7: 0.34 m from base to shoulder, 0.4 m to the elbow, 0.4 m to the wrist, 0.126 m to the flange; joint
# limits and top speeds as its data sheet has them.  Masses and centres of mass are of the size of the real ones but
# made up, each link turns like a solid cylinder, and the last one carries a tool off its axis.  With all joints at 0
# the arm points up and the axes of all links are parallel to the base's.
GRAVITY = 9.81  # m/s²
AXES = np.array([[0.0, 0, 1], [0, 1, 0]])[[0, 1, 0, 1, 0, 1, 0]]  # of the joints, in the frame of their link
REACH = np.array([0.0, 0.34, 0.2, 0.2, 0.2, 0.2, 0.06])  # m, along z, from the joint before; the flange is 0.066 on
MASS = np.array([3.5, 3.5, 4.1, 3.5, 2.2, 2.3, 1.5])  # kg
CENTRE = np.array(
    [[0, -0.03, 0.12], [0, 0.06, 0.04], [0, 0.03, 0.13], [0, 0.07, 0.03], [0, 0.02, 0.08], [0, 0, 0], [0.05, 0, 0.06]]
)  # m, of mass, from the joint
_LENGTH, _RADIUS = np.array([0.34, 0.2, 0.2, 0.2, 0.2, 0.1, 0.15]), 0.07  # m, of the cylinders
_ACROSS, _ALONG = 3 * _RADIUS**2 + _LENGTH**2, np.full(7, 6 * _RADIUS**2)
INERTIA = MASS[:, None] / 12 * np.stack([_ACROSS, _ACROSS, _ALONG], axis=1)  # kg m², about the centre of mass

LIMIT = np.radians([170.0, 120, 170, 120, 170, 120, 175])
TOP_SPEED = np.radians([98.0, 98, 100, 130, 140, 180, 180])  # rad/s
VISCOUS, COULOMB, NOISE = 0.03, 0.03, 0.01  # friction per rad/s, dry friction, standard deviation: in TORQUE_UNITS
STEPS, RATE = 2500, 100.0  # of one motion; per second


def inverse_dynamics(
    q: Float[np.ndarray, "N 7"], qd: Float[np.ndarray, "N 7"], qdd: Float[np.ndarray, "N 7"]
) -> Float[np.ndarray, "N 7"]:
    """Torques (N m) that move the arm without friction, by the recursive Newton-Euler algorithm (Luh et al. 1980)."""
    turning = accelerated = np.zeros((len(q), 3))  # rad/s, rad/s²
    rising = np.tile([0.0, 0.0, GRAVITY], (len(q), 1))  # m/s²: a base that rises is gravity
    links = []
    for i, axis in enumerate(AXES):
        p, c = np.array([0, 0, REACH[i]]), CENTRE[i]
        rising = rising + np.cross(accelerated, p) + np.cross(turning, np.cross(turning, p))
        turning, accelerated, rising = (_turned(v, axis, -q[:, i]) for v in (turning, accelerated, rising))
        accelerated = accelerated + axis * qdd[:, [i]] + np.cross(turning, axis) * qd[:, [i]]
        turning = turning + axis * qd[:, [i]]
        force = MASS[i] * (rising + np.cross(accelerated, c) + np.cross(turning, np.cross(turning, c)))
        moment = INERTIA[i] * accelerated + np.cross(turning, INERTIA[i] * turning) + np.cross(c, force)
        links.append((force, moment))
    torques = np.empty_like(q)
    force = moment = np.zeros((len(q), 3))  # on the next link, in the frame of this one
    for i in reversed(range(len(AXES))):
        force, moment = force + links[i][0], moment + links[i][1]
        torques[:, i] = (moment * AXES[i]).sum(axis=1)
        force, moment = (_turned(v, AXES[i], q[:, i]) for v in (force, moment))
        moment = moment + np.cross([0, 0, REACH[i]], force)
    return torques


def _turned(
    v: Float[np.ndarray, "N 3"], axis: Float[np.ndarray, " 3"], angle: Float[np.ndarray, " N"]
) -> Float[np.ndarray, "N 3"]:
    """Vectors turned about a unit axis."""
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(angle[:, None] * axis).apply(v)


def kuka_sim(rng: np.random.Generator, rows: int) -> Raw:
    """Motions of 25 seconds, 100 rows a second, each a group of its own, with friction and noise."""
    motions = [_motion(rng) for _ in range(-(-rows // STEPS))]
    X, torques = (np.concatenate(arrays)[:rows] for arrays in zip(*motions))
    return Raw(X, torques, _ARM_COLUMNS, outputs=_ARM_OUTPUTS, groups=np.arange(rows) // STEPS)


def _motion(rng: np.random.Generator) -> tuple[Float[np.ndarray, "T 21"], Float[np.ndarray, "T 7"]]:
    """Each joint swings about its own centre in three harmonics of one beat, within its limit and its top speed."""
    centre = 0.4 * LIMIT * rng.uniform(-1, 1, 7)
    beats = 2 * np.pi * rng.uniform(0.05, 0.5) * np.array([[1.0], [2.0], [3.0]])  # rad/s
    size = rng.uniform(0, 1, (3, 7))
    size *= np.minimum(0.6 * LIMIT / size.sum(axis=0), TOP_SPEED / (size * beats).sum(axis=0))
    phase = beats * (np.arange(STEPS) / RATE)[:, None, None] + rng.uniform(0, 2 * np.pi, (3, 7))
    sin, cos = size * np.sin(phase), size * np.cos(phase)
    # rounded, as last bits may differ from one machine to another
    q, qd, qdd = (waves.sum(axis=1).round(4) for waves in (sin, beats * cos, -(beats**2) * sin))
    q = (centre + q).round(4)
    torques = inverse_dynamics(q, qd, qdd) / TORQUE_UNITS + VISCOUS * qd + COULOMB * np.sign(qd)
    return np.hstack([q, qd, qdd]), (torques + NOISE * rng.standard_normal(q.shape)).round(4)
