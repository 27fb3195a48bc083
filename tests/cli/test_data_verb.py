"""`gpbench data`: what it prints, in text and in JSON; `gpbench doctor`: what is broken, and how to repair it."""

import json

import pytest

from gpbench.cli import doctor, main
from gpbench.data import cards, load
from gpbench.errors import DataError, StorageError


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch):
    for name in ("STORE", "RESULTS", "CACHE"):
        monkeypatch.setenv(f"GPBENCH_{name}", str(tmp_path / name.lower()))
    return tmp_path / "store"


def test_ls_lists_every_card_once_and_info_says_what_is_known_of_one(printed, refused):
    assert [line.split()[0] for line in printed("data", "ls").splitlines()] == cards.names()
    rows = {row["name"]: row for row in json.loads(printed("data", "ls", "--json"))}
    assert (rows["pima"]["rows"], rows["pima"]["splits"], rows["pima"]["stored"]) == (768, {"random90": 20}, None)
    text = printed("data", "info", "heart")
    known = ["binary", "270", "licence", "statlog/heart/heart.dat", "nominal", "1: 150, 2: 120", "mirror heart.npz"]
    known += ["random90: 20, raetsch: 10", "stored    no", cards.read("heart")["checksum"]]
    assert not [part for part in known if part not in text]
    assert "did you mean heart" in refused("data", "info", "hart")


def test_fetch_puts_data_into_the_store_info_says_where_and_verify_finds_damage_there(printed, store, streams):
    [row] = json.loads(printed("data", "fetch", "moons", "--json"))
    assert row["checksum"] == cards.read("moons")["checksum"]
    assert f"stored    {row['stored']}" in printed("data", "info", "moons")
    assert f"checksum: {load(cards.read('moons')).checksum}" in printed("data", "verify", "moons")
    next(store.rglob("*.npz")).write_bytes(b"damaged")
    [row] = json.loads(streams("data", "verify", "moons", "--json", code=DataError.exit_code).out)
    assert row["bad"] == [f"store {store}"] and row["places"]["generated moons"] == "right"


def test_fetch_survives_an_unavailable_data_set_and_fails_where_the_store_cannot_be_written(tmp_path, refused, streams):
    printed = streams("data", "fetch", "pima", "moons", "--offline", code=DataError.exit_code)
    assert "moons" in printed.out and "pima is unavailable" in printed.err
    assert "pima is unavailable" in refused("data", "fetch", "pima", "--offline", code=DataError.exit_code)
    (tmp_path / "other").write_text("a file, where a folder should be")
    err = refused("data", "fetch", "moons", "--store", tmp_path / "other", code=StorageError.exit_code)
    assert "is not kept in" in err and "cannot store moons" in err


def diagnosis(capsys, *argv):
    code = main(["doctor", *map(str, argv), "--json"])
    return code, {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setattr(doctor, "_devices", lambda: iter([doctor.Finding("devices", "ok", "none asked")]))


def test_a_usable_machine_has_all_findings_and_an_unfit_setting_is_one_with_its_remedy(capsys, monkeypatch):
    code, findings = diagnosis(capsys)
    names = {"versions", "commit", "devices", "precision", "XLA_FLAGS", "results", "mirror"}
    assert code == 0 and set(findings) == names | {"data store", "compile cache", "data sets"}
    assert "cpu" in findings["devices"]["value"] or "gpu" in findings["devices"]["value"]
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    code, findings = diagnosis(capsys)
    assert code == 1 and findings["devices"]["value"].startswith("NVIDIA_TF32_OVERRIDE is set: ")
    assert findings["devices"]["mend"] == "leave it out"
    monkeypatch.setattr("gpbench.runtime.configure", lambda: (_ for _ in ()).throw(RuntimeError("no\nbackend")))
    code, findings = diagnosis(capsys)
    assert code == 1 and findings["devices"]["value"] == "no backend" and "JAX_PLATFORMS" in findings["devices"]["mend"]


def test_it_makes_no_folders_and_broken_ones_are_faults_with_a_remedy(capsys, tmp_path, without_jax, monkeypatch):
    diagnosis(capsys)
    assert list(tmp_path.iterdir()) == []
    code, findings = diagnosis(capsys)
    assert code == 0 and findings["data sets"]["state"] == "note"
    assert "pima" in findings["data sets"]["value"] and "wdbc" not in findings["data sets"]["value"]
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "pima.npz").write_bytes(b"")
    assert "pima" not in diagnosis(capsys, "--mirror", tmp_path / "mirror")[1]["data sets"]["value"]
    code, findings = diagnosis(capsys, "--mirror", tmp_path / "none")
    assert code == 1 and findings["mirror"]["state"] == "broken" and "--mirror" in findings["mirror"]["mend"]
    (tmp_path / "file").write_text("")
    code, findings = diagnosis(capsys, "--results", tmp_path / "file")
    assert code == 1 and findings["results"]["state"] == "broken" and "GPBENCH_RESULTS" in findings["results"]["mend"]
