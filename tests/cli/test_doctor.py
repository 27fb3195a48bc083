"""`gpbench doctor` says what is broken, and how to mend it."""

import json

import pytest

from gpbench.cli import doctor, main


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("STORE", "RESULTS", "CACHE"):
        monkeypatch.setenv(f"GPBENCH_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv("GPBENCH_MIRROR", raising=False)


def told(capsys, *argv):
    code = main(["doctor", *map(str, argv), "--json"])
    return code, {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setattr(doctor, "_devices", lambda: iter([doctor.Finding("devices", "ok", "none asked")]))


def test_a_usable_machine_has_exit_code_0_and_tells_all(capsys):
    code, found = told(capsys)
    assert code == 0
    assert set(found) == {
        "versions", "commit", "devices", "precision", "XLA_FLAGS", "results", "data store", "compile cache", "mirror",
        "data sets",
    }  # fmt: skip
    assert "cpu" in found["devices"]["found"] or "gpu" in found["devices"]["found"]


def test_it_makes_no_folders(capsys, tmp_path, without_jax):
    told(capsys)
    assert list(tmp_path.iterdir()) == []


def test_data_sets_that_are_not_here_are_named_and_are_no_fault(capsys, without_jax):
    code, found = told(capsys)
    assert code == 0 and found["data sets"]["state"] == "note"
    assert "pima" in found["data sets"]["found"] and "wdbc" not in found["data sets"]["found"]


def test_a_file_in_the_mirror_is_here(capsys, tmp_path, without_jax):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "pima.npz").write_bytes(b"")
    assert "pima" not in told(capsys, "--mirror", tmp_path / "mirror")[1]["data sets"]["found"]


def test_what_is_broken_gives_exit_code_1_and_how_to_mend_it(capsys, tmp_path, without_jax, monkeypatch):
    code, found = told(capsys, "--mirror", tmp_path / "none")
    assert code == 1 and found["mirror"]["state"] == "broken" and "--mirror" in found["mirror"]["mend"]
    (tmp_path / "file").write_text("")
    code, found = told(capsys, "--results", tmp_path / "file")
    assert code == 1 and found["results"]["state"] == "broken" and "GPBENCH_RESULTS" in found["results"]["mend"]


def test_a_jax_that_does_not_start_is_one_finding(capsys, monkeypatch):
    monkeypatch.setattr("gpbench.runtime.configure", lambda: (_ for _ in ()).throw(RuntimeError("no\nbackend")))
    code, found = told(capsys)
    assert code == 1 and found["devices"]["found"] == "no backend" and "JAX_PLATFORMS" in found["devices"]["mend"]
