"""The robots' sets: their formats from small files, and the rows that the mirror has."""

import io

import numpy as np
import pytest
import scipy.io
from small_tables import npz

from gpbench.data import cards, load, robots, sources, splits
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


def test_the_full_walks_are_read_from_the_store_where_the_script_puts_them(store):
    card = cards.read("mujoco2_full")
    with pytest.raises(DataError, match=r"no file mujoco_walk/trajectories_1000.npz in .*make_mujoco.py"):
        load(card)
    (store / "mujoco_walk").mkdir(parents=True)
    (store / "mujoco_walk" / "trajectories_1000.npz").write_bytes(npz(**walks(5, 4)))
    clipped, raw = (load(cards.checked({**card, "variant": variant})) for variant in ("clipped", "raw"))
    assert clipped.X.shape == raw.X.shape == (7, 46) and clipped.checksum != raw.checksum


@pytest.mark.parametrize("variant", ["clipped", "raw"])
@pytest.mark.parametrize("name", ["mujoco1", "mujoco2"])
def test_the_mirror_has_the_walks_of_both_variants(name, variant, mirror):
    card = cards.checked({**cards.read(name), "variant": variant})
    dataset = sources.obtain(card, card["sources"][0], mirror=mirror)  # compares the checksum with the card's
    assert dataset.y.shape == (card["rows"], 9) and len(np.unique(dataset.groups)) == 250
    assert (np.abs(dataset.X).max() <= 10) == (variant == "clipped")
