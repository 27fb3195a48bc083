"""The commits that committed records name: each is in the history of this checkout, or the record says it is dirty."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).resolve().parents[2]


def _git(*words: str) -> str:
    """The output of a git command here; skips the test where there is no whole history."""
    ended = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    if ended.returncode:
        pytest.skip("no git, or no checkout: the history is not known")
    return ended.stdout


def test_every_record_names_a_commit_of_this_history_or_says_that_it_is_dirty():
    if _git("rev-parse", "--is-shallow-repository").strip() == "true":
        pytest.skip("a shallow clone: the history is not known")
    history = set(_git("rev-list", "HEAD").split())
    texts = [text for path in ROOT.glob("results/*/records.parquet") for text in _records(path)]
    records = [json.loads(text) for text in texts]
    assert len(records) > 6000
    unknown = Counter(r["commit"] for r in records if r["commit"] and r["commit"] not in history and not r["dirty"])
    assert not unknown


def _records(path: Path) -> list[str]:
    return pq.read_table(path, columns=["record"])["record"].to_pylist()
