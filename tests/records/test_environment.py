"""A record says on what it was made."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import gpbench
from gpbench.records import environment


def test_facts_are_json_and_hold_what_the_caller_hands_in():
    facts = environment.facts(device="cpu", precision="float64")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["device"] == "cpu" and facts["precision"] == "float64"
    assert facts["versions"]["gpbench"] == gpbench.__version__ and facts["versions"]["numpy"]
    assert facts["host"]["cores"] >= 1 and facts["host"]["memory_gib"] > 0 and facts["host"]["cpu"]
    assert facts["created"].endswith("+00:00")


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "_ROOT", tmp_path)

    def git(*args):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *args], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "gpbench").mkdir()
    (tmp_path / "gpbench" / "a.py").write_text("1")
    git("add", ".")
    git("commit", "-m", "a")
    return tmp_path


def test_changed_code_makes_a_checkout_dirty_and_a_package_in_another_has_no_commit(checkout, monkeypatch):
    (checkout / "table.csv").write_text("a result")
    assert len(environment.commit()["commit"]) == 40 and environment.commit()["dirty"] is False
    (checkout / "gpbench" / "new.py").write_text("2")
    assert environment.commit()["dirty"] is True
    monkeypatch.setattr(environment, "_ROOT", checkout / "gpbench")
    assert environment.commit() == {"commit": None, "dirty": None}


def test_a_copy_of_the_code_without_its_history_takes_the_commit_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "_ROOT", tmp_path)
    monkeypatch.setenv("GPBENCH_COMMIT", "a" * 40)
    assert environment.commit() == {"commit": "a" * 40, "dirty": None}


ROOT = Path(__file__).resolve().parents[2]


def git(*words: str) -> str:
    """The output of a git command here; skips the test where there is no whole history."""
    ended = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip("no git, or no checkout: the history is not known")
    return ended.stdout


def test_every_committed_record_names_a_commit_of_this_history_or_says_that_it_is_dirty():
    if git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a shallow clone: the history is not known")
    history = set(git("rev-list", "HEAD").split())
    tables = [pq.read_table(path, columns=["record"]) for path in ROOT.glob("results/*/records.parquet")]
    records = [json.loads(text) for table in tables for text in table["record"].to_pylist()]
    assert len(records) > 6000
    assert not Counter(r["commit"] for r in records if r["commit"] and r["commit"] not in history and not r["dirty"])
