"""The simulated arm: its torques against energy and against MuJoCo, and the motions it is taken through."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from gpbench.data import robots as arm

RNG = np.random.default_rng(0)


def energy(q: np.ndarray, qd: np.ndarray) -> float:
    """Kinetic and potential energy (J), from where the links' centres are and how fast they move: q, qd (7,)."""

    def centres(q: np.ndarray) -> np.ndarray:
        at, turn, points = np.zeros(3), Rotation.identity(), []
        for i in range(7):
            at = at + turn.apply([0, 0, arm.REACH[i]])
            turn = turn * Rotation.from_rotvec(arm.AXES[i] * q[i])
            points.append(at + turn.apply(arm.CENTRE[i]))
        return np.array(points)

    h = 1e-6
    speed = (centres(q + h * qd) - centres(q - h * qd)) / (2 * h)
    turning, kinetic = np.zeros(3), 0.5 * arm.MASS @ (speed**2).sum(axis=1)
    for i in range(7):  # in the frame of the link
        turning = Rotation.from_rotvec(-arm.AXES[i] * q[i]).apply(turning) + arm.AXES[i] * qd[i]
        kinetic += 0.5 * arm.INERTIA[i] @ turning**2
    return kinetic + arm.GRAVITY * arm.MASS @ centres(q)[:, 2]


def test_torques_do_the_work_that_changes_the_energy():
    for _ in range(20):
        q, qd, qdd = RNG.normal(size=(3, 7))
        h = 1e-4
        before, after = (energy(q + t * qd + t**2 / 2 * qdd, qd + t * qdd) for t in (-h, h))
        [torques] = arm.inverse_dynamics(q[None], qd[None], qdd[None])
        assert torques @ qd == pytest.approx((after - before) / (2 * h), abs=1e-3)


def test_an_upright_arm_at_rest_holds_only_what_is_off_its_axis():
    zero = np.zeros((1, 7))
    off_axis = np.cumsum((arm.MASS * arm.CENTRE[:, 0])[::-1])[::-1]
    np.testing.assert_allclose(
        arm.inverse_dynamics(zero, zero, zero)[0], np.where(arm.AXES[:, 1], -arm.GRAVITY * off_axis, 0), atol=1e-12
    )


def test_torques_are_those_of_mujoco():
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: the extra `mujoco`")
    words = lambda v: " ".join(map(str, v))
    links = "".join(
        f'<body pos="0 0 {reach}"><joint axis="{words(axis)}"/>'
        f'<inertial pos="{words(centre)}" mass="{mass}" diaginertia="{words(inertia)}"/>'
        for reach, axis, centre, mass, inertia in zip(arm.REACH, arm.AXES, arm.CENTRE, arm.MASS, arm.INERTIA)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option gravity="0 0 -{arm.GRAVITY}"/><worldbody>{links}{"</body>" * 7}</worldbody></mujoco>'
    )
    data, states = mujoco.MjData(model), RNG.normal(size=(50, 3, 7))
    for q, qd, qdd in states:
        data.qpos[:], data.qvel[:], data.qacc[:] = q, qd, qdd
        mujoco.mj_inverse(model, data)
        [torques] = arm.inverse_dynamics(q[None], qd[None], qdd[None])
        np.testing.assert_allclose(torques, data.qfrc_inverse, atol=1e-10)


def test_motions_stay_within_limits_and_their_rates_are_those_of_their_positions():
    raw = arm.kuka_sim(np.random.default_rng(3), 2 * arm.STEPS + 100)
    assert np.bincount(raw.groups).tolist() == [arm.STEPS, arm.STEPS, 100]
    q, qd, qdd = np.split(raw.X, 3, axis=1)
    assert (np.abs(q) <= arm.LIMIT).all() and (np.abs(qd) <= arm.TOP_SPEED + 1e-4).all()
    inside = np.flatnonzero(np.diff(raw.groups, n=2) == 0)[: arm.STEPS - 2] + 1
    for values, rates in ((q, qd), (qd, qdd)):
        slopes = (values[inside + 1] - values[inside - 1]) * arm.RATE / 2
        np.testing.assert_allclose(slopes, rates[inside], atol=0.05)


def test_what_inverse_dynamics_and_friction_leave_is_the_noise():
    raw = arm.kuka_sim(np.random.default_rng(4), 4000)
    q, qd, qdd = np.split(raw.X, 3, axis=1)
    clean = arm.inverse_dynamics(q, qd, qdd) / arm.TORQUE_UNITS + arm.VISCOUS * qd + arm.COULOMB * np.sign(qd)
    assert (raw.target - clean).std(axis=0) == pytest.approx([arm.NOISE] * 7, rel=0.05)
