"""Runs in two real processes joined on loopback: the numbers of one, and a clear end where one is killed."""

import json
import os
import signal
from pathlib import Path

import pytest
from test_resume import OFTEN, await_step, finish, start
from toys import job

from gpbench.errors import PeerError, Stopped
from gpbench.records.record import Record
from gpbench.records.store import Store

MOONS = ["dataset=moons", "protocol=hl2016"]
ROWS = [*MOONS, "method.inducing=8"]
ALL = [*ROWS, "method=sep", "protocol.steps=8", "run.trace_every=4"]
LOGISTIC = [*MOONS, "method=logistic", "method.steps=8", "run.trace_every=4"]
BATCHES = [*ROWS, "method=sep_minibatch", "method.batch_size=64", "method.steps=32", "run.trace_every=1"]
TWO = "run.processes=2"


def record(results: Path, *words: str) -> Record:
    code, err = finish(start(results, *words))
    assert code == 0, err
    (made,) = Store(results).all()
    return made


def workers(parent: int) -> list[int]:
    """The processes that `parent` started, in order."""
    return sorted(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))


@pytest.mark.parametrize("words", [LOGISTIC, ALL], ids=["logistic", "sep"])
def test_two_processes_give_the_numbers_of_one_and_only_the_first_speaks(tmp_path, words):
    (one,) = job(tmp_path / "one", *words)
    out, _ = start(tmp_path / "two", *words, TWO, "--json").communicate(timeout=120)
    (two,) = json.loads(out)["records"]
    agree(Record.from_json(two), one)


def agree(two: Record, one: Record) -> None:
    """Assert that a run of two processes is one of these, with the numbers of the same run in one."""
    assert (two.devices, two.processes, one.devices) == (2, 2, 1)
    assert two.id == one.id
    assert two.objective == pytest.approx(one.objective, rel=1e-8)
    assert two.metrics == pytest.approx(one.metrics, rel=1e-6)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of child processes")
def test_a_killed_process_ends_the_run_in_a_line_and_the_same_command_goes_on(tmp_path):
    for victim in (0, 1):
        process = start(tmp_path / "killed", *BATCHES, TWO, OFTEN, "run.progress=false")
        await_step(tmp_path / "killed", (4, 16)[victim])
        os.kill(workers(process.pid)[victim], signal.SIGKILL)
        code, err = finish(process)
        assert code == PeerError.exit_code
        assert f"process {victim} of 2 was killed by SIGKILL; run the same command to resume" in err
        assert "Traceback" not in err
    code, err = finish(start(tmp_path / "killed", *BATCHES, TWO))
    assert code == 0 and "going on from the checkpoint" in err
    (two,) = Store(tmp_path / "killed").all()
    agree(two, record(tmp_path / "undisturbed", *BATCHES))  # two processes share minibatches, too


def test_sigterm_stops_both_at_one_checkpoint(tmp_path):
    process = start(tmp_path, *BATCHES, TWO, OFTEN)
    await_step(tmp_path, 4)
    process.terminate()
    code, err = finish(process)
    assert code == Stopped.exit_code, err
    assert "stopped by SIGTERM at step" in err


def test_devices_that_cannot_be_shared_are_one_line(tmp_path):
    code, err = finish(start(tmp_path, *ALL, TWO, "run.devices=3"))
    assert (code, err) == (2, "gpbench: run.devices=3 cannot be shared equally by run.processes=2\n")
