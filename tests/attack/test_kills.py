"""Sweeps whose processes are killed at random, two at a time: all records of an undisturbed one, each whole."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attackers import FULL

from gpbench.records.record import Record
from gpbench.records.store import Store

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ["run", "-m", "dataset=sinc", "method=constant,linear", "run.jobs=2"]
ROUNDS, SPLITS, KILLS = (10, 20, 6) if FULL else (1, 4, 2)
"""400 jobs under 60 kills; else 8 under 2."""


def start(results: Path) -> subprocess.Popen:
    """Start the sweep with its records in this folder."""
    splits = ",".join(map(str, range(SPLITS)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": str(results)}
    command = [sys.executable, "-m", "gpbench", *SWEEP, f"split={splits}"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def processes(results: Path) -> list[int]:
    """The sweeps and their children that write into this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            marked = f"GPBENCH_RESULTS={results}\0".encode() in (entry / "environ").read_bytes()
            if marked and b"gpbench" in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def kill_at_random(results: Path, rng: random.Random, kills: int, seconds: float) -> int:
    """Runs two sweeps at once until so many of their processes are killed; returns how many were."""
    done = 0
    while done < kills:
        sweeps = [start(results), start(results)]
        while done < kills and any(sweep.poll() is None for sweep in sweeps):
            time.sleep(rng.uniform(0.05, seconds))
            if alive := processes(results):
                os.kill(rng.choice(alive), signal.SIGKILL)
                done += 1
        for sweep in sweeps:
            assert "Traceback" not in sweep.communicate(timeout=1200)[1]
        if done < kills and len(Store(results).all()) == 2 * SPLITS:  # there is nothing left to kill
            break
    return done


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[list[Record], float]:
    """The records of a sweep that nobody kills, and the seconds that it took."""
    results, began = tmp_path_factory.mktemp("calm"), time.monotonic()
    assert start(results).wait(timeout=1800) == 0
    return Store(results).all(whole=True), time.monotonic() - began


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_sweeps_under_kills_have_the_records_of_an_undisturbed_one(tmp_path, undisturbed, seed):
    calm, seconds = undisturbed
    killed = kill_at_random(tmp_path / "killed", random.Random(seed), KILLS, seconds / (KILLS + 2))
    last = start(tmp_path / "killed")
    assert last.wait(timeout=1800) == 0, last.communicate()[1]
    records = Store(tmp_path / "killed").all(whole=True)
    assert killed == KILLS and len(calm) == len(records) == 2 * SPLITS
    assert {record.id: record.metrics for record in records} == {record.id: record.metrics for record in calm}
    left = list((tmp_path / "killed" / "claims").glob("*"))
    assert not left, left
