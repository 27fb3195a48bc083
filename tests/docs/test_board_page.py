"""The committed runs of the boards are of frozen defaults, and docs/results/leaderboard.md says what they show."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpbench.analysis.leaderboard import DIVISIONS
from gpbench.analysis.leaderboard_sheet import sheet
from gpbench.api.comparisons import board_of

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "results" / "leaderboard" / "records.parquet"
PAGE = " ".join((ROOT / "docs" / "results" / "leaderboard.md").read_text(encoding="utf-8").split())
FREEZE = "dd38ebae7b4fb06778522d2bf069025df55d0851"
"""The commit with the defaults, the data sets and the rules, from before any run of a board."""


def is_after(commit: str, other: str) -> bool:
    words = ["git", "-C", ROOT, "merge-base", "--is-ancestor", other, commit]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not (shutil.which("git") and is_after("HEAD", FREEZE)), reason="no history of commits here")
@pytest.mark.parametrize("division", DIVISIONS)
def test_every_run_is_of_a_commit_from_the_freeze_on_and_of_its_plan(division):
    runs = board_of(division, False, RECORDS)
    own = [record for record in runs.runs.values() if not record.imported]
    assert own and not any(record.dirty for record in own)
    assert all(is_after(commit, FREEZE) for commit in {record.commit for record in own})
    assert not is_after(f"{FREEZE}~1", FREEZE)  # the control
    assert {*runs.methods} <= {job["method"] for job in runs.division.jobs()} | {r.method for r in runs.runs.values()}


@pytest.mark.parametrize("division", DIVISIONS)
def test_the_page_has_what_the_board_shows(division):
    runs = board_of(division, False, RECORDS)
    assert sheet(runs).title in PAGE
    first = runs.methods[runs.board.order[0]]  # by these two docs/how-to/report.md recommends
    behind = {name for name, may_be in zip(runs.methods, runs.board.may_be_best) if not may_be}
    assert first == "dgp" if division == "regression" else behind == {"logistic"}
