"""Sweeps whose processes are killed or stopped at random, and many commands at once: records are whole and complete."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from attackers import FULL
from forked import alive
from samples import grid, write

from gpbench.errors import Stopped
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.stop import SIGNALS

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
    return alive(f"GPBENCH_RESULTS={results}\0")


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


STEPS, EVERY = 100_000 if FULL else 20_000, 20
WALK = ["dataset=moons", "method=walk", "method.batch_size=64", f"method.steps={STEPS}", f"run.trace_every={EVERY}"]
WALKS = ["-m", "--config-dir", str(ROOT / "tests" / "train"), *WALK, "split=0,1,2", "run.jobs=2"]
STOPS = 40 if FULL else 3
LATEST_S = 12.0
"""Seconds between the first line of a sweep and the signal, at most."""


def start_walks(results: Path) -> subprocess.Popen[str]:
    """Starts the sweep, and returns when it has begun: before, a signal ends it, and there is nothing to lose."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "GPBENCH_RESULTS": str(results)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-m", "gpbench", "run", *WALKS], env=environment, **pipes)
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
    while stops < STOPS:
        before = steps(results)
        sweep, wait = start_walks(results), rng.uniform(0.0, LATEST_S)
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
    assert start_walks(results).communicate(timeout=1800)[1] == ""
    assert start_walks(calm := tmp_path / "calm").communicate(timeout=1800)[1] == ""
    assert numbers(results) == numbers(calm) and len(numbers(calm)) == 3 and not steps(results)


CALLS = 500 if FULL else 16


def test_commands_under_load_end_as_they_should(tmp_path):
    nll = lambda dataset, method, split: {"nll": (2 * split + (method == "svi")) / 9}
    write(tmp_path / "results", grid(["pima"], ["sep", "svi"], 6, metrics=nll))
    command = [sys.executable, "-m", "gpbench", "compare", "sep", "svi", "--results", str(tmp_path / "results")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def answer(_):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        return done.returncode, done.stdout, done.stderr

    with ThreadPoolExecutor(4 * (os.cpu_count() or 1)) as pool:
        answers = set(pool.map(answer, range(CALLS)))
    ((code, out, err),) = answers
    assert (code, err) == (0, "") and "svi" in out
