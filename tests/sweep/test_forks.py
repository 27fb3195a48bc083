"""Jobs that a server forks: the records of processes that start from nothing, and no harm from one to another."""

import os
import signal
import time

import pytest

from gpbench.config.compose import compose as composed
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.sweep.local import Child, Forks
from gpbench.train.stop import SIGNALS

OF_THE_PROCESS = ("created", "seconds", "peak_memory_mb", "step_memory_mb")


def job(results, forks, *words) -> Child:
    """Starts a job of a sweep."""
    plan = RunPlan.from_config(composed(["dataset=sinc", "method=linear", f"run.results={results}", *words], []))
    return Child([], [], {}, plan=plan, forks=forks)


def content(record: Record) -> dict:
    """What a record says of its run, and not of its process."""
    return {key: value for key, value in record.to_json().items() if key not in OF_THE_PROCESS}


def children(process: int) -> list[int]:
    """The processes that another one has started."""
    with open(f"/proc/{process}/task/{process}/children") as file:
        return list(map(int, file.read().split()))


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="a server needs Linux")
def test_a_forked_job_is_one_that_starts_from_nothing_and_takes_itself_alone_when_it_is_killed(tmp_path):
    forks = Forks()
    killed = job(tmp_path / "killed", forks)
    forked = job(tmp_path / "forked", forks)
    (server,) = [process for process in children(os.getpid()) if b"cli.server" in _command(process)]
    while len(children(server)) < 2:
        time.sleep(0.01)
    os.kill(min(children(server)), signal.SIGKILL)
    assert killed.outcome(False).text == "killed by SIGKILL (out of memory?)"
    assert forked.outcome(False).status == "done"
    wrong = job(tmp_path / "forked", forks, "run.device=gpu", "run.again=true")
    assert "run.device=gpu" in wrong.outcome(False).text
    job(tmp_path / "cold", None).outcome(False)
    ours, others = (Store(tmp_path / name).all(whole=True) for name in ("forked", "cold"))
    assert list(map(content, ours)) == list(map(content, others))
    assert 0.5 < ours[0].peak_memory_mb / others[0].peak_memory_mb < 1.2  # without libraries that it has not touched
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)  # a job that is sent before it is dead dies with it
    late = job(tmp_path / "late", forks)
    assert late.outcome(False).status == "done"
    forks.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="a server needs Linux")
def test_a_server_outlives_signals_to_stop_and_what_ends_it_is_said_of_its_jobs(tmp_path):
    forks, before = Forks(), children(os.getpid())
    first = job(tmp_path, forks, "split=0")
    (server,) = {*children(os.getpid())} - {*before}
    for number in (*SIGNALS, signal.SIGSTOP):
        os.kill(server, number)
    second = job(tmp_path, forks, "split=1")
    os.kill(server, signal.SIGCONT)
    assert {child.outcome(False).status for child in (first, second)} == {"done"}
    os.kill(server, signal.SIGSTOP)
    third = job(tmp_path, forks, "split=2")
    for number in (signal.SIGUSR1, signal.SIGCONT):
        os.kill(server, number)
    assert third.outcome(False).text == "killed by SIGUSR1"
    forks.close()


def test_a_job_with_a_budget_starts_from_nothing_as_it_pays_for_its_imports(tmp_path):
    words = ["dataset=sinc", "method=linear", f"run.results={tmp_path}", "run.budget=20"]
    assert Forks().start(composed(words, [])["run"], b"", [], {}) is None


def _command(process: int) -> bytes:
    with open(f"/proc/{process}/cmdline", "rb") as file:
        return file.read()
