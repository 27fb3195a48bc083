"""The robots' sets: formats, the mirror's rows, the simulated arm against energy, and walks made again."""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from scipy.spatial.transform import Rotation
from scipy.stats import ks_2samp
from small_tables import npz

from gpbench.data import cards, load, robots, sources, splits
from gpbench.data import robots as arm
from gpbench.data import store as local
from gpbench.data.conversion import from_raw
from gpbench.data_registry import READERS
from gpbench.errors import DataError

RNG = np.random.default_rng(0)


def text(rows: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savetxt(buffer, rows, fmt="%.8e")
    return buffer.getvalue()


def of_card(name: str, blobs: list[bytes]):
    """What a card's first source gives from these files instead of its own."""
    card = cards.read(name)
    source = card["sources"][0]
    return from_raw(card, READERS[source["reader"]].function(blobs, {"variant": card.get("variant"), **source}))


def test_kuka_is_offline_then_online_rows_with_torques_in_units_of_their_joints():
    offline, online = RNG.normal(size=(3, 28)), RNG.normal(size=(2, 28))
    dataset = of_card("kuka1", [text(offline), text(online)])
    rows = np.concatenate([offline, online])
    np.testing.assert_allclose(dataset.X, rows[:, :21], rtol=1e-7)
    np.testing.assert_allclose(dataset.y * [40, 40, 20, 20, 4, 4, 2], rows[:, 21:], rtol=1e-7)
    assert dataset.outputs[6] == "torque7" and dataset.columns[20] == "acceleration7"
    for content in (b"", b"1 2 3\n", b"oid sha256:1\nsize 2\n", text(np.ones((2, 27)))):
        with pytest.raises(DataError, match=r"^[^\n]*(not a table of numbers|not 28)[^\n]*$"):
            robots.kuka([content], {})


def test_sarcos_is_training_then_test_rows():
    rows, files = RNG.normal(size=(5, 28)), [io.BytesIO(), io.BytesIO()]
    for file, name, part in zip(files, ("sarcos_inv", "sarcos_inv_test"), (rows[:3], rows[3:])):
        scipy.io.savemat(file, {name: part})
    blobs = [file.getvalue() for file in files]
    dataset = of_card("sarcos", blobs)
    np.testing.assert_array_equal(np.hstack([dataset.X, dataset.y]), rows)
    card = cards.read("sarcos")
    card["splits"]["train_rows"] = 3
    assert splits.indices(card, dataset, 0)[1].tolist() == [3, 4]
    with pytest.raises(DataError, match="not the expected MATLAB file"):
        of_card("sarcos", blobs[::-1])


def walks(*lengths: int) -> dict[str, np.ndarray]:
    steps = sum(lengths)
    state = RNG.normal(size=(steps + len(lengths), 17)) * 8
    return {"state": state, "act": RNG.uniform(-1, 1, (steps, 6)), "length": np.array(lengths, dtype=np.int16)}


def test_a_walk_predicts_the_change_of_velocities_within_its_own_trajectory_whose_length_must_fit():
    arrays = walks(3, 2)
    dataset = of_card("mujoco1", [npz(**arrays)])
    state = np.hstack([arrays["state"][:, :8], arrays["state"][:, 8:].clip(-10, 10)])
    for row, (t, step) in enumerate([(0, 0), (1, 1), (2, 2), (4, 3), (5, 4)]):  # rows 3 and 6 end a trajectory
        np.testing.assert_array_equal(dataset.X[row], [*state[t], *arrays["act"][step]])
        np.testing.assert_array_equal(dataset.y[row], state[t + 1, 8:] - state[t, 8:])
    assert dataset.groups.tolist() == [0, 0, 0, 1, 1]
    raw = robots.mujoco_walk([npz(**arrays)], {"variant": "raw", "frames": 1})
    rows = [0, 1, 2, 4, 5]
    np.testing.assert_array_equal(raw.X[:, :17], arrays["state"][rows])
    np.testing.assert_allclose(raw.target, np.diff(arrays["state"][:, 8:], axis=0)[rows])
    assert np.abs(raw.X).max() > 10  # which are not clipped
    arrays = walks(3, 2)
    short, narrow = {**arrays, "length": np.array([3, 3])}, {**arrays, "act": arrays["act"][:, :5]}
    for wrong in (short, narrow, {"state": arrays["state"]}):
        with pytest.raises(DataError, match=r"do not fit|no array 'act'"):
            robots.mujoco_walk([npz(**wrong)], {"variant": "raw", "frames": 1})


def test_mujoco2_has_the_step_before_too_and_loses_the_first_of_each_trajectory():
    arrays = walks(3, 1, 2)
    one, two = (of_card(name, [npz(**arrays)]) for name in ("mujoco1", "mujoco2"))
    later = [1, 2, 5]
    np.testing.assert_array_equal(two.X, np.hstack([one.X[later], one.X[[0, 1, 4]]]))
    np.testing.assert_array_equal(two.y, one.y[later])
    assert two.groups.tolist() == [0, 0, 1] and two.columns[23] == "position_z_before"


def test_what_an_address_gives_without_a_checksum_is_kept_as_it_first_came(monkeypatch, store):
    asked = []

    def answer(address, name, sha256):
        asked.append(name)
        return text(RNG.normal(size=(4, 28)))

    monkeypatch.setattr(sources.files, "from_address", answer)
    card = cards.read("kuka1")
    first, second = load(card), load(card, offline=True)
    assert first.checksum == second.checksum and asked == ["kuka1_offline.txt", "kuka1_online.txt"]
    assert load(card, again=True).checksum != first.checksum  # asked anew, and kept instead
    # a card that reads the same files another way has a place of its own
    other = {**card, "sources": [{**card["sources"][0], "reader": "table", "target": -1}]}
    assert local.path(other, store) != local.path(card, store)


def test_the_full_walks_are_read_from_the_store_where_the_script_puts_them(store, new_file):
    card = cards.read("mujoco2_full")
    with pytest.raises(DataError, match=r"no file mujoco_walk/trajectories_1000.npz in .*make_mujoco.py"):
        load(card)
    new_file(store / "mujoco_walk" / "trajectories_1000.npz", npz(**walks(5, 4)))
    clipped, raw = (load(cards.checked({**card, "variant": variant})) for variant in ("clipped", "raw"))
    assert clipped.X.shape == raw.X.shape == (7, 46) and clipped.checksum != raw.checksum


@pytest.mark.parametrize("variant", ["clipped", "raw"])
@pytest.mark.parametrize("name", ["mujoco1", "mujoco2"])
def test_the_mirror_has_the_walks_of_both_variants(name, variant, mirror):
    card = cards.checked({**cards.read(name), "variant": variant})
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)  # compares the checksum with the card's
    assert dataset.y.shape == (card["rows"], 9) and len(np.unique(dataset.groups)) == 250
    assert (np.abs(dataset.X).max() <= 10) == (variant == "clipped")


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


def test_torques_do_the_work_that_changes_the_energy_and_hold_at_rest_only_what_is_off_the_axis():
    for _ in range(20):
        q, qd, qdd = RNG.normal(size=(3, 7))
        h = 1e-4
        before, after = (energy(q + t * qd + t**2 / 2 * qdd, qd + t * qdd) for t in (-h, h))
        [torques] = arm.inverse_dynamics(q[None], qd[None], qdd[None])
        assert torques @ qd == pytest.approx((after - before) / (2 * h), abs=1e-3)
    zero = np.zeros((1, 7))
    off_axis = np.cumsum((arm.MASS * arm.CENTRE[:, 0])[::-1])[::-1]
    np.testing.assert_allclose(
        arm.inverse_dynamics(zero, zero, zero)[0], np.where(arm.AXES[:, 1], -arm.GRAVITY * off_axis, 0), atol=1e-12
    )


def test_motions_stay_within_limits_and_what_inverse_dynamics_and_friction_leave_is_the_noise():
    raw = arm.kuka_sim(np.random.default_rng(3), 2 * arm.STEPS + 100)
    assert np.bincount(raw.groups).tolist() == [arm.STEPS, arm.STEPS, 100]
    q, qd, qdd = np.split(raw.X, 3, axis=1)
    assert (np.abs(q) <= arm.LIMIT).all() and (np.abs(qd) <= arm.TOP_SPEED + 1e-4).all()
    inside = np.flatnonzero(np.diff(raw.groups, n=2) == 0)[: arm.STEPS - 2] + 1
    for values, rates in ((q, qd), (qd, qdd)):
        slopes = (values[inside + 1] - values[inside - 1]) * arm.RATE / 2
        np.testing.assert_allclose(slopes, rates[inside], atol=0.05)
    raw = arm.kuka_sim(np.random.default_rng(4), 4000)
    q, qd, qdd = np.split(raw.X, 3, axis=1)
    clean = arm.inverse_dynamics(q, qd, qdd) / arm.TORQUE_UNITS + arm.VISCOUS * qd + arm.COULOMB * np.sign(qd)
    assert (raw.target - clean).std(axis=0) == pytest.approx([arm.NOISE] * 7, rel=0.05)


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    """`scripts/make_mujoco.py`, which makes walks."""
    for package in ("mujoco", "gymnasium"):
        pytest.importorskip(package, reason="not installed: the extra `mujoco`")
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


def test_the_first_steps_are_those_of_the_mirror_and_outputs_are_distributed_alike(made, stored):
    np.testing.assert_allclose(made["state"][:51], stored["state"][:51], atol=2e-5)
    np.testing.assert_allclose(made["act"][:50], stored["act"][:50], atol=2e-5)
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
