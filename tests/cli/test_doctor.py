"""`gpbench doctor` names what is broken and how to repair it."""

import json

import pytest

from gpbench.cli import doctor, main


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    for name in ("STORE", "RESULTS", "CACHE"):
        monkeypatch.setenv(f"GPBENCH_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv("GPBENCH_MIRROR", raising=False)


def diagnosis(capsys, *argv):
    code = main(["doctor", *map(str, argv), "--json"])
    return code, {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)}


@pytest.fixture
def without_jax(monkeypatch):
    monkeypatch.setattr(doctor, "_devices", lambda: iter([doctor.Finding("devices", "ok", "none asked")]))


def test_a_usable_machine_has_exit_code_0_and_all_findings(capsys):
    code, findings = diagnosis(capsys)
    names = {"versions", "commit", "devices", "precision", "XLA_FLAGS", "results", "mirror"}
    assert code == 0 and set(findings) == names | {"data store", "compile cache", "data sets"}
    assert "cpu" in findings["devices"]["value"] or "gpu" in findings["devices"]["value"]


def test_it_makes_no_folders_and_missing_data_sets_are_named_but_no_fault(capsys, tmp_path, without_jax):
    diagnosis(capsys)
    assert list(tmp_path.iterdir()) == []
    code, findings = diagnosis(capsys)
    assert code == 0 and findings["data sets"]["state"] == "note"
    assert "pima" in findings["data sets"]["value"] and "wdbc" not in findings["data sets"]["value"]
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "pima.npz").write_bytes(b"")
    assert "pima" not in diagnosis(capsys, "--mirror", tmp_path / "mirror")[1]["data sets"]["value"]


def test_broken_folders_give_exit_code_1_and_a_remedy(capsys, tmp_path, without_jax, monkeypatch):
    code, findings = diagnosis(capsys, "--mirror", tmp_path / "none")
    assert code == 1 and findings["mirror"]["state"] == "broken" and "--mirror" in findings["mirror"]["mend"]
    (tmp_path / "file").write_text("")
    code, findings = diagnosis(capsys, "--results", tmp_path / "file")
    assert code == 1 and findings["results"]["state"] == "broken" and "GPBENCH_RESULTS" in findings["results"]["mend"]


def test_a_setting_that_no_run_takes_and_a_jax_that_does_not_start_are_findings_with_remedies(capsys, monkeypatch):
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    code, findings = diagnosis(capsys)
    assert code == 1 and findings["devices"]["value"].startswith("NVIDIA_TF32_OVERRIDE is set: ")
    assert findings["devices"]["mend"] == "leave it out"
    monkeypatch.setattr("gpbench.runtime.configure", lambda: (_ for _ in ()).throw(RuntimeError("no\nbackend")))
    code, findings = diagnosis(capsys)
    assert code == 1 and findings["devices"]["value"] == "no backend" and "JAX_PLATFORMS" in findings["devices"]["mend"]
