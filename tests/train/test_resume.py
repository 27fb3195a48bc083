"""Jobs that were stopped, killed, recorded before or diverged lose and repeat nothing, in real processes too."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from toys import HERE, WALK, StopAfter, close, job, numbers

from gpbench import cli
from gpbench.errors import Stopped, StorageError
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train import job as job_module
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.stop import StopRequest

ROOT = Path(__file__).resolve().parents[2]
# A second or two of training, in chunks of a few milliseconds, each with a checkpoint.
LONG_WALK = ["dataset=moons", "method=walk", "method.batch_size=64", "method.steps=200", "run.trace_every=1"]
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


@pytest.mark.parametrize("words", [[*LONG_WALK, "split=[0,1,2]", "run.together=true"], SEP], ids=["walk", "sep"])
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


class Broken(Store):
    """Its process is killed before the n-th record is written."""

    def __init__(self, results, n):
        super().__init__(results)
        self.left = n

    def write(self, *args, **kwargs):
        self.left -= 1
        if self.left < 0:
            raise InterruptedError
        return super().write(*args, **kwargs)


class Signalled(Store):
    """Its process gets a SIGTERM with the first record."""

    def write(self, *args, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.1)
        return super().write(*args, **kwargs)


@pytest.fixture
def trained(monkeypatch) -> list[list[int]]:
    """The groups that are trained from here on, a list of splits each."""
    groups = []
    real = job_module.fit

    def fit(programs, group, **rest):
        groups.append([member.split for member in group.members])
        return real(programs, group, **rest)

    monkeypatch.setattr(job_module, "fit", fit)
    return groups


def test_a_finished_run_is_not_run_again_unless_asked(tmp_path, trained):
    first = job(tmp_path, *WALK, "split=[0,1]")
    assert job(tmp_path, *WALK, "split=[1,0]") == first[::-1]
    assert trained == [[0, 1]]
    again = job(tmp_path, *WALK, "split=[0,1]", "run.again=true")
    assert trained == [[0, 1], [0, 1]] and numbers(again) == numbers(first)
    assert sorted(r.created for r in Store(tmp_path).all()) == [r.created for r in again] != first[0].created


def test_records_from_another_folder_count(tmp_path, trained):
    there = job(tmp_path / "there", *WALK, "split=[0,1]")
    (tmp_path / "here").mkdir()
    (tmp_path / "there" / "runs").rename(tmp_path / "here" / "runs")
    records = job(tmp_path / "here", *WALK, "split=[0,1,2]")
    assert trained == [[0, 1], [2]] and records[:2] == there


def test_a_kill_between_two_records_costs_no_number_and_again_goes_on_from_its_own_checkpoint(tmp_path):
    whole = job(tmp_path / "whole", *WALK, "split=[0,1,2]")
    with pytest.raises(InterruptedError):
        job(tmp_path / "killed", *WALK, "split=[0,1,2]", store=Broken(tmp_path / "killed", 1))
    notes = io.StringIO()
    assert numbers(job(tmp_path / "killed", *WALK, "split=[0,1,2]", stream=notes)) == numbers(whole)
    assert notes.getvalue() == "going on from the checkpoint at step 40\n"
    assert not list((tmp_path / "killed" / "checkpoints").iterdir())
    with pytest.raises(Stopped, match="at step 10"):
        job(tmp_path, *WALK, stop=StopAfter(0))
    with pytest.raises(Stopped, match="at step 20"):
        job(tmp_path, *WALK, "run.again=true", stop=StopAfter(1))
    notes = io.StringIO()
    job(tmp_path, *WALK, "run.again=true", stream=notes)
    assert notes.getvalue() == "going on from the checkpoint at step 20\n"
    assert not list((tmp_path / "checkpoints").iterdir())


def test_a_stopped_job_finds_its_group_again(tmp_path, trained):
    whole = job(tmp_path / "whole", *WALK, "split=[0,1,2]")
    job(tmp_path / "stopped", *WALK, "split=1")
    with pytest.raises(Stopped):
        job(tmp_path / "stopped", *WALK, "split=[0,1,2]", stop=StopAfter(1))
    records = job(tmp_path / "stopped", *WALK, "split=[2,0,1]")
    assert trained[1:] == [[1], [0, 2], [0, 2]] and close(records, [whole[2], whole[0], whole[1]])


def test_between_groups_a_stop_is_heeded_before_the_next_is_begun(tmp_path, trained):
    stop = StopRequest()
    with pytest.raises(Stopped, match="stopped by SIGTERM with runs left"), stop:
        store = Signalled(tmp_path)
        job(tmp_path, *WALK[:-1], "split=[0,1]", "run.together=1", store=store, stop=stop)
    assert trained == [[0]] and len(store.all()) == 1


def test_a_diverged_split_is_recorded_as_such_and_the_others_are_done(tmp_path, printed, refused):
    words = ["dataset=moons", "method=fragile", "split=[0,1,2,3,4,5]", f"run.results={tmp_path}"]
    said = refused("run", "--config-dir", HERE, *words, code=4)
    assert "diverged (at step 20 of 40: the objective is not finite)" in said
    records = {status: [r for r in Store(tmp_path).all() if r.status == status] for status in ("done", "diverged")}
    assert len(records["done"]) + len(records["diverged"]) == 6 and records["done"] and records["diverged"]
    for record in records["diverged"]:
        assert record.metrics == dict.fromkeys(records["done"][0].metrics) and record.objective is None
        assert Store(tmp_path).predictions(record.id) == {}
    mean = np.mean([record.metrics["error"] for record in records["done"]])
    table = printed("table", "--results", tmp_path, "--metric", "error", "--format", "csv")
    head, row = (line.split(",") for line in table.splitlines())
    cell = dict(zip(head, row))
    assert float(cell["mean"]) == pytest.approx(mean) and int(cell["n_splits"]) == len(records["done"])


def test_a_full_disk_stops_a_job_in_one_line_and_keeps_the_earlier_records(tmp_path, refused):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        words = ["run", "--config-dir", str(HERE), *WALK, f"run.results={disk}", "run.checkpoint_every=0.0001"]
        assert cli.main(words) == 0
        earlier = Store(disk).all()
        with contextlib.suppress(OSError):
            (disk / "filler").write_bytes(bytes(2**20))
        err = refused(*words, "split=1", code=StorageError.exit_code)
        assert "cannot use the results folder" in err and "No space left" in err and err.count("\n") == 1
        assert Store(disk).all() == earlier
        (disk / "filler").unlink()
        assert cli.main([*words, "split=1"]) == 0
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
