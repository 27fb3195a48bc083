"""Jobs that were stopped, killed, recorded before or diverged lose nothing and repeat nothing."""

import contextlib
import io
import os
import signal
import subprocess
import time

import numpy as np
import pytest
from toys import HERE, WALK, StopAfter, close, job, numbers

from gpbench import cli
from gpbench.errors import Stopped, StorageError
from gpbench.records.store import Store
from gpbench.train import job as job_module
from gpbench.train.stop import StopRequest


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


def test_a_kill_between_two_records_of_a_group_costs_no_number(tmp_path):
    whole = job(tmp_path / "whole", *WALK, "split=[0,1,2]")
    with pytest.raises(InterruptedError):
        job(tmp_path / "killed", *WALK, "split=[0,1,2]", store=Broken(tmp_path / "killed", 1))
    notes = io.StringIO()
    assert numbers(job(tmp_path / "killed", *WALK, "split=[0,1,2]", stream=notes)) == numbers(whole)
    assert notes.getvalue() == "going on from the checkpoint at step 40\n"
    assert not list((tmp_path / "killed" / "checkpoints").iterdir())


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


def test_again_goes_on_from_its_own_checkpoint_only(tmp_path):
    with pytest.raises(Stopped, match="at step 10"):
        job(tmp_path, *WALK, stop=StopAfter(0))
    with pytest.raises(Stopped, match="at step 20"):
        job(tmp_path, *WALK, "run.again=true", stop=StopAfter(1))
    notes = io.StringIO()
    job(tmp_path, *WALK, "run.again=true", stream=notes)
    assert notes.getvalue() == "going on from the checkpoint at step 20\n"
    assert not list((tmp_path / "checkpoints").iterdir())


def test_a_diverged_split_is_recorded_as_such_and_the_others_are_done(tmp_path, capsys):
    words = ["dataset=moons", "method=fragile", "split=[0,1,2,3,4,5]", f"run.results={tmp_path}"]
    assert cli.main(["run", "--config-dir", str(HERE), *words]) == 4
    assert "diverged (at step 20 of 40: the objective is not finite)" in capsys.readouterr().err
    records = {status: [r for r in Store(tmp_path).all() if r.status == status] for status in ("done", "diverged")}
    assert len(records["done"]) + len(records["diverged"]) == 6 and records["done"] and records["diverged"]
    for record in records["diverged"]:
        assert record.metrics == dict.fromkeys(records["done"][0].metrics) and record.objective is None
        assert Store(tmp_path).predictions(record.id) == {}
    mean = np.mean([record.metrics["error"] for record in records["done"]])
    assert cli.main(["table", "--results", str(tmp_path), "--metric", "error", "--format", "csv"]) == 0
    head, row = (line.split(",") for line in capsys.readouterr().out.splitlines())
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
