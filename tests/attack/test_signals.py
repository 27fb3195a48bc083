"""Sweeps of which every process gets a signal at a random moment: at most the steps since the last chunk are lost."""

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attackers import FULL
from test_kills import ROOT, processes

from gpbench.errors import Stopped
from gpbench.records.store import Store
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.stop import SIGNALS

STEPS, EVERY = 100_000 if FULL else 20_000, 20
WALK = ["dataset=moons", "method=walk", "method.batch_size=64", f"method.steps={STEPS}", f"run.trace_every={EVERY}"]
SWEEP = ["-m", "--config-dir", str(ROOT / "tests" / "train"), *WALK, "split=0,1,2", "run.jobs=2"]
ROUNDS = 40 if FULL else 3
LATEST_S = 12.0
"""Seconds between the first line of a sweep and the signal, at most."""


def start(results: Path) -> subprocess.Popen[str]:
    """Starts the sweep, and returns when it has begun: before, a signal ends it, and there is nothing to lose."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": str(results)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "gpbench", "run", *SWEEP], env=environment, **pipes)
    while not re.match(r"\d+ jobs: ", process.stdout.readline()):
        assert process.poll() is None, process.communicate()
    return process


def steps(results: Path) -> dict[str, int]:
    """The steps of all checkpoints, by their names."""
    paths = (results / "checkpoints").glob("*.npz")
    return {path.stem: Checkpoint(path.parent, path.stem).facts()["step"] for path in paths}


def numbers(results: Path) -> dict:
    return {record.id: (record.steps, record.objective, record.metrics) for record in Store(results).all(whole=True)}


@pytest.mark.parametrize("number", SIGNALS, ids=[number.name for number in SIGNALS])
def test_signals_to_all_processes_lose_no_chunk(tmp_path, number):
    rng, results, stops = random.Random(number), tmp_path / "results", 0
    while stops < ROUNDS:
        before = steps(results)
        sweep, wait = start(results), rng.uniform(0.0, LATEST_S)
        time.sleep(wait)
        alive = processes(results)
        for process in rng.sample(alive, len(alive)):
            try:
                os.kill(process, number)
            except ProcessLookupError:
                continue
        out, err = sweep.communicate(timeout=600)
        if sweep.returncode == 0:  # it was done before: another one
            results = tmp_path / f"results after {stops}"
            continue
        stops += 1
        assert sweep.returncode == Stopped.exit_code, (out, err)
        line = rf"gpbench: {number.name}; jobs left: \d; run the same command to resume\n"
        assert re.fullmatch(f"(stopping at .*\n)?{line}", err), err
        stopped = [int(step) for step in re.findall(rf"stopped by {number.name} at step (\d+) of {STEPS}", out)]
        print(f"{number.name} after {wait:.1f} s: steps {stopped}, {len(alive)} processes")
        after = steps(results)
        assert {*stopped} <= {*after.values()} and all(after[name] >= before[name] for name in before.keys() & after)
        left = [path.name for path in results.rglob("*") if path.parent.name == "claims" or path.suffix == ".tmp"]
        assert not left and not processes(results)
    assert start(results).communicate(timeout=1800)[1] == ""
    assert start(calm := tmp_path / "calm").communicate(timeout=1800)[1] == ""
    assert numbers(results) == numbers(calm) and len(numbers(calm)) == 3 and not steps(results)
