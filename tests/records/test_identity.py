"""A run's identity is what determines its numbers."""

import subprocess
import sys

import pytest

from gpbench.records.identity import cell_id, of, run_id

BASE = {
    "method": {"name": "sep", "m": "15%", "rate": 1.0, "hidden": [3, 2]},
    "protocol": {"name": "clean", "jitter": 1e-6},
    "data": {"name": "wdbc"},
    "data_checksum": "ab12",
    "split": 0,
    "seed": 0,
}


def without(*keys):
    return {key: value for key, value in BASE.items() if key not in keys}


def test_id_is_16_hex_digits():
    assert len(run_id(**BASE)) == 16
    int(run_id(**BASE), 16)


def test_order_of_keys_does_not_matter():
    assert run_id(**{**BASE, "method": dict(reversed(BASE["method"].items()))}) == run_id(**BASE)


def test_equal_numbers_and_sequences_have_equal_ids():
    assert run_id(**{**BASE, "method": {**BASE["method"], "rate": 1, "hidden": (3, 2)}}) == run_id(**BASE)


@pytest.mark.parametrize(
    "change",
    [
        {"split": 1}, {"seed": 1}, {"data_checksum": "ab13"}, {"data": {"name": "pima"}},
        {"method": {**BASE["method"], "rate": 1.5}}, {"protocol": {**BASE["protocol"], "jitter": 1e-5}},
        {"method": {**BASE["method"], "rate": True, "m": None}},
    ],
)  # fmt: skip
def test_every_part_of_the_identity_changes_the_id(change):
    assert run_id(**{**BASE, **change}) != run_id(**BASE)


def test_cell_is_the_identity_without_split_and_seed():
    assert cell_id(**without("split", "seed")) == cell_id(**without("split", "seed"))
    assert cell_id(**without("split", "seed", "data"), data={"name": "pima"}) != cell_id(**without("split", "seed"))


def test_a_key_that_came_later_leaves_the_runs_before_it_as_they_are():
    card = {"name": "wdbc", "task": "regression", "splits": {"set": "random90", "sets": {"random90": 5}}}
    told = {"_target_": "gpbench.methods.vi.svi.SVI", "inducing": 20}

    def identity(**more):
        return of({"method": told | more, "protocol": {}, "dataset": card, "run": {"timing": False}}, "ab12")

    assert identity(likelihood="gaussian") == identity() != identity(likelihood="laplace")
    assert identity(_target_="mine.Own", likelihood="gaussian") != identity(_target_="mine.Own")


def test_nan_in_a_configuration_is_refused():
    with pytest.raises(ValueError):
        run_id(**{**BASE, "protocol": {"jitter": float("nan")}})


def test_id_is_the_same_in_another_process():
    code = f"from gpbench.records.identity import run_id; print(run_id(**{BASE!r}))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == run_id(**BASE)


def test_records_import_neither_jax_nor_numpy():
    code = (
        "import sys, gpbench.records.identity, gpbench.records.store, gpbench.records.environment as e; "
        "e.facts(); assert not {'jax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
