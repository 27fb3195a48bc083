"""Real processes, really killed: run the same command to resume and ends with the same numbers, bit by bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import HERE, numbers

from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train.checkpoint import Checkpoint

ROOT = Path(__file__).resolve().parents[2]
# A second or two of training, in chunks of a few milliseconds, each with a checkpoint.
WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "method.steps=200", "run.trace_every=1"]
SEP = ["dataset=moons", "method=sep_minibatch", "method.inducing=8", "method.batch_size=64", "method.steps=80"]
SEP += ["run.trace_every=2"]
OFTEN = "run.checkpoint_every=0.0001"


def start(results: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    """Start `gpbench run WORDS`, with this module's methods."""
    command = [sys.executable, "-m", "gpbench", "run", "--config-dir", str(HERE), *words, f"run.results={results}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and stderr."""
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def run(results: Path, *words: str, **more: str) -> list[Record]:
    """The records of a command that ends well, in order of their splits."""
    code, err = finish(start(results, *words, **more))
    assert code == 0, err
    return sorted(Store(results).all(), key=lambda record: record.split)


def await_step(results: Path, step: int) -> None:
    """Wait until a checkpoint of `step` or a later one is there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for path in (results / "checkpoints").glob("*.npz"):
            if (Checkpoint(path.parent, path.stem).facts() or {"step": 0})["step"] >= step:
                return
        time.sleep(0.01)
    raise TimeoutError(f"no checkpoint of step {step}")


@pytest.mark.parametrize("words", [[*WALK, "split=[0,1,2]", "run.together=true"], SEP], ids=["walk", "sep"])
def test_a_killed_run_ends_with_the_same_numbers_and_compiles_nothing_anew(tmp_path, words):
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "xla")}
    whole = run(tmp_path / "whole", *words, OFTEN, **cache)
    compiled = {path.name for path in (tmp_path / "xla").iterdir() if path.name.endswith("-cache")}
    assert compiled
    process = start(tmp_path / "killed", *words, OFTEN, **cache)
    await_step(tmp_path / "killed", 20)
    process.kill()
    assert finish(process)[0] == -signal.SIGKILL
    assert Store(tmp_path / "killed").all() == []
    records = run(tmp_path / "killed", *words, OFTEN, **cache)
    assert numbers(records) == numbers(whole)
    for record in whole:
        one, other = (Store(tmp_path / name).trace(record.id) for name in ("whole", "killed"))
        assert all((one[name] == other[name]).all() for name in one if name != "seconds")
    assert {path.name for path in (tmp_path / "xla").iterdir() if path.name.endswith("-cache")} == compiled


def test_a_signal_to_a_script_whose_run_trains_in_another_process_stops_at_a_checkpoint(tmp_path):
    keys = {"method": "walk", "dataset": "moons", "method.batch_size": 64, "method.steps": 10**6, "run.trace_every": 1}
    call = f"gpbench.run(**{keys}, **{{'run.checkpoint_every': 1e-4, 'run.cores': 1}}, config_dir={str(HERE)!r}"
    command = [sys.executable, "-c", f"import gpbench; {call}, results={str(tmp_path)!r})"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    await_step(tmp_path, 20)
    process.terminate()
    code, err = finish(process)
    assert code == 1 and err.splitlines()[-1].startswith("gpbench.errors.Stopped: stopped by SIGTERM at step ")
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1 and not list(tmp_path.glob("claims/*"))
