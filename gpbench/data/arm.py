"""A simulated arm, a stand-in for the KUKA recordings of Cheng and Boots (2017): rhythmic motions and their torques.

Seven joints with the proportions of KUKA's LBR iiwa 7: 0.34 m from base to shoulder, 0.4 m to the elbow, 0.4 m to the
wrist, 0.126 m to the flange; joint limits and top speeds as its data sheet has them.  Masses and centres of mass are of
the size of the real ones but made up, each link turns like a solid cylinder, and the last one carries a tool off its
axis.  With all joints at 0 the arm points up and the axes of all links are parallel to the base's.
"""

import numpy as np
from jaxtyping import Float

from gpbench.data.dataset import Raw
from gpbench.data.robots import ARM_COLUMNS, ARM_OUTPUTS, TORQUE_UNITS

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
    """Torques (N m) that move the arm without friction: positions (rad), velocities and accelerations of the joints.

    The recursive Newton-Euler algorithm (Luh, Walker and Paul 1980): motions from the base outwards, forces back.
    """
    turning = accelerated = np.zeros((len(q), 3))  # rad/s, rad/s²
    rising = np.tile([0.0, 0.0, GRAVITY], (len(q), 1))  # m/s²: a base that rises is gravity
    of_links = []
    for i, axis in enumerate(AXES):
        p, c = np.array([0, 0, REACH[i]]), CENTRE[i]
        rising = rising + np.cross(accelerated, p) + np.cross(turning, np.cross(turning, p))
        turning, accelerated, rising = (_turned(v, axis, -q[:, i]) for v in (turning, accelerated, rising))
        accelerated = accelerated + axis * qdd[:, [i]] + np.cross(turning, axis) * qd[:, [i]]
        turning = turning + axis * qd[:, [i]]
        force = MASS[i] * (rising + np.cross(accelerated, c) + np.cross(turning, np.cross(turning, c)))
        moment = INERTIA[i] * accelerated + np.cross(turning, INERTIA[i] * turning) + np.cross(c, force)
        of_links.append((force, moment))
    torques = np.empty_like(q)
    force = moment = np.zeros((len(q), 3))  # on the next link, in the frame of this one
    for i in reversed(range(len(AXES))):
        force, moment = force + of_links[i][0], moment + of_links[i][1]
        torques[:, i] = (moment * AXES[i]).sum(axis=1)
        force, moment = (_turned(v, AXES[i], q[:, i]) for v in (force, moment))
        moment = moment + np.cross([0, 0, REACH[i]], force)
    return torques


def _turned(
    v: Float[np.ndarray, "N 3"], axis: Float[np.ndarray, " 3"], angle: Float[np.ndarray, " N"]
) -> Float[np.ndarray, "N 3"]:
    """Vectors turned about a unit axis (Rodrigues' formula)."""
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    return v * cos + np.cross(axis, v) * sin + axis * (v * axis).sum(axis=1)[:, None] * (1 - cos)


def kuka_sim(rng: np.random.Generator, rows: int) -> Raw:
    """Motions of 25 seconds, 100 rows a second, each a group of its own; the last one ends with the rows asked for.

    Torques are those of `inverse_dynamics` and of friction, in `TORQUE_UNITS`, with noise.  All is rounded to four
    decimals, positions, velocities and accelerations before the torques: the values are sums of many terms, whose last
    bits may differ from one machine to another.
    """
    parts = [_motion(rng) for _ in range(-(-rows // STEPS))]
    X, torques = (np.concatenate(part)[:rows] for part in zip(*parts))
    return Raw(X, torques, ARM_COLUMNS, outputs=ARM_OUTPUTS, groups=np.arange(rows) // STEPS)


def _motion(rng: np.random.Generator) -> tuple[Float[np.ndarray, "T 21"], Float[np.ndarray, "T 7"]]:
    """Each joint swings about its own centre in three harmonics of one beat, within its limit and its top speed."""
    centre = 0.4 * LIMIT * rng.uniform(-1, 1, 7)
    beats = 2 * np.pi * rng.uniform(0.05, 0.5) * np.array([[1.0], [2.0], [3.0]])  # rad/s
    size = rng.uniform(0, 1, (3, 7))
    size *= np.minimum(0.6 * LIMIT / size.sum(axis=0), TOP_SPEED / (size * beats).sum(axis=0))
    phase = beats * (np.arange(STEPS) / RATE)[:, None, None] + rng.uniform(0, 2 * np.pi, (3, 7))
    sin, cos = size * np.sin(phase), size * np.cos(phase)
    q, qd, qdd = (part.sum(axis=1).round(4) for part in (sin, beats * cos, -(beats**2) * sin))
    q = (centre + q).round(4)
    torques = inverse_dynamics(q, qd, qdd) / TORQUE_UNITS + VISCOUS * qd + COULOMB * np.sign(qd)
    return np.hstack([q, qd, qdd]), (torques + NOISE * rng.standard_normal(q.shape)).round(4)
