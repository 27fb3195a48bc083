"""The jobs of a sweep: their order, outcomes and GPUs, the server that forks them, and the bar."""

import errno
import io
import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from samples import sample

from gpbench import runtime
from gpbench.config.compose import compose
from gpbench.config.compose import compose as composed
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans
from gpbench.records.collection import Collection
from gpbench.records.plan import Run, RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.sweep import display
from gpbench.sweep.job import Job, Outcome, _recorded_before, judge, longest_first
from gpbench.sweep.jobs import Jobs, Local, _visible_gpus
from gpbench.sweep.local import Child, Forks
from gpbench.train.stop import SIGNALS, StopRequest


@pytest.mark.parametrize("printed", ["", "hello", "{}", "[1]", "{'a': 1}"])
def test_a_process_without_an_answer_is_a_failed_job(printed):
    status, text = judge(0, "", printed)
    assert status == "failed" and "ended without an answer" in text


class Lasting:
    """A job that ends a while after it is asked to."""

    overrides, last_line, left = (), "", None

    def ended(self):
        if self.left:
            self.left -= 1
        return self.left == 0


class Done(Lasting):
    left = 0

    def outcome(self, stopping):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_sweep_that_cannot_go_on_lets_its_jobs_write_their_checkpoints(tmp_path):
    class Executor:
        parting, resubmit, at_a_time, least = "", 0, 2, 1
        start = staticmethod(lambda jobs, running: children)
        cancel = staticmethod(lambda running: [setattr(child, "left", 3) for child in running])
        close = staticmethod(lambda: closed.append(children[1].left))

    children, closed = [Done(), Lasting()], []
    sweep = Jobs([], compose([f"run.results={tmp_path}"], [])["run"])
    sweep.executor = Executor()
    with pytest.raises(OSError, match="No space left"):
        sweep.launch([["dataset=sinc", "method=linear", f"split={k}"] for k in range(2)])
    assert closed == [0]


def test_a_split_that_is_not_finite_is_left_out_of_the_mean_and_unknown_jobs_start_first():
    records = [sample(str(k), split=k, metrics={"nll": k or None}) for k in range(3)]
    assert _recorded_before([], records).text == "nll 1.5, 1 run not finite"
    assert _recorded_before([], records[:1]).text == "nll 1 run not finite"
    places = itertools.product((0.15, 0.5), ("crabs", "australian"), ("svi", "gfitc"))
    words = [
        ["protocol=hl2016", f"dataset={d}", f"method={m}", f"method.inducing={n}", "split=all"] for n, d, m in places
    ]
    jobs = [Job(line, RunPlan.from_config(compose(line))) for line in words]
    unknown = Job(["never run"], RunPlan({}, "", [Run("0" * 16, "", 0)]))
    ordered = [job.overrides[1:4] for job in longest_first([*jobs, unknown], Collection(SEP))]
    assert ordered[0] == []
    assert ordered[1] == ["dataset=australian", "method=gfitc", "method.inducing=0.5"]
    assert ordered[-1][0] == "dataset=crabs"


SEP = Path(__file__).parents[2] / "results" / "sep" / "records.parquet"


CHILD = SimpleNamespace(overrides=["dataset=a", "seed=3"], last_line="step 10/200  " * 20)


def test_a_terminal_shows_one_bar_with_the_time_left_and_a_line_for_each_running_job(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    view = display._Terminal([["dataset=a", f"seed={i}"] for i in range(4)], {})
    view.live.console = Console(file=io.StringIO(), width=60, force_terminal=True)
    assert view.summary() == "0/4 jobs"
    view.ended(Outcome(["dataset=a", "seed=0"], "already", "rmse 1"))
    assert view.summary() == "1/4 jobs"  # a job that was recorded before tells nothing of the time left
    now[0] = 60.0
    view.ended(Outcome(["dataset=a", "seed=1"], "done", "rmse 1", 60.0))
    view.running([CHILD, CHILD])  # each has done a twentieth: 1.1 jobs in a minute, 1.9 to go
    screen = Console(file=io.StringIO(), width=60)
    screen.print(view.live.renderable)
    lines = screen.file.getvalue().splitlines()
    assert lines[0].rstrip().endswith("2/4 jobs  0:01:44 left")
    assert lines[1].startswith("> seed=3  step 10/200") and len(lines) == 3


def test_the_time_left_is_steady_where_jobs_differ_in_size(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    jobs = [["dataset=a"], ["dataset=b"], ["dataset=c"]]
    view = display._Terminal(jobs, {})
    view.work, view.remaining_work = {("dataset=a",): 10.0, ("dataset=b",): 10.0, ("dataset=c",): 180.0}, 200.0
    view.ended(Outcome(["dataset=a"], "already", "rmse 1"))
    estimates = []
    for step in range(10, 101, 10):  # one unit of work a second: b takes 10 s, c 180 s
        now[0] = step / 10
        line = f"b  sep  step {step}/100  split 0 (0/1 done)"
        view.running([SimpleNamespace(overrides=["dataset=b"], last_line=line)])
        estimates.append(now[0] + _seconds(view.summary()))
    view.ended(Outcome(["dataset=b"], "done", "rmse 1", 10.0))
    for split in range(9):
        now[0] = 10.0 + split * 20 + 10
        line = f"c  sep  step 50/100  split {split} ({split}/9 done)"
        view.running([SimpleNamespace(overrides=["dataset=c"], last_line=line)])
        estimates.append(now[0] + _seconds(view.summary()))
    assert max(estimates) - min(estimates) <= 1.0 and abs(estimates[0] - 190.0) <= 1.0


def _seconds(summary: str) -> int:
    hours, minutes, seconds = summary.split("  ")[1].removesuffix(" left").split(":")
    return 3600 * int(hours) + 60 * int(minutes) + int(seconds)


OF_THE_PROCESS = ("created", "seconds", "cpu_seconds", "peak_memory_mb", "step_memory_mb")


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


def _command(process: int) -> bytes:
    with open(f"/proc/{process}/cmdline", "rb") as file:
        return file.read()


KEYS = {"jobs": 8, "device": None, "memory_fraction": None}


@pytest.fixture
def gpus(monkeypatch, tmp_path):
    """Makes a machine of this many GPUs, as far as nvidia-smi tells."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("XLA_PYTHON_CLIENT_MEM_FRACTION", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def make(count):
        lines = "\n".join(f"GPU {i}: NVIDIA H100 (UUID: GPU-{i})\n  MIG 1g Device" for i in range(count))
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{lines}\nEND\n")
        (tmp_path / "nvidia-smi").chmod(0o755)

    return make


def environments(overrides=(), **run):
    here = Local([], {**KEYS, **run}, StopRequest())
    return [here.environment(slot, overrides) for slot in range(here.at_a_time)]


def test_jobs_have_one_of_the_visible_gpus_each_and_more_jobs_than_gpus_share_them(gpus, monkeypatch):
    gpus(8)
    assert environments() == [{"CUDA_VISIBLE_DEVICES": str(i)} for i in range(8)]
    gpus(2)
    variables = environments(jobs=4)
    assert [env["CUDA_VISIBLE_DEVICES"] for env in variables] == ["0", "1", "0", "1"]
    assert {env["XLA_PYTHON_CLIENT_MEM_FRACTION"] for env in variables} == {"0.450"}
    gpus(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7")
    assert [env["CUDA_VISIBLE_DEVICES"] for env in environments(jobs=2)] == ["5", "GPU-7"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert _visible_gpus() == []


@pytest.mark.parametrize("run, overrides", [({"jobs": 1}, ()), ({"device": "cpu"}, ()), ({}, ["run.devices=4"])])
def test_one_job_and_one_on_several_devices_and_one_on_the_cpu_keep_all_gpus(gpus, run, overrides):
    gpus(4)
    assert not any("CUDA_VISIBLE_DEVICES" in env for env in environments(overrides, **run))


def cores(jobs, count, processes=1):
    here = Local([], {**KEYS, "jobs": jobs}, StopRequest())
    words = ["dataset=moons", "method=svi", f"run.cores={count or 'null'}", f"run.processes={processes}"]
    (plan,) = plans([words])
    return [here.cores(slot, plan.cfg["run"]).get("GPBENCH_CORES") for slot in range(jobs)]


def test_jobs_that_ask_for_cores_have_others_than_the_jobs_beside_them(monkeypatch):
    monkeypatch.setattr(runtime, "available_cores", lambda: [0, 1, 4, 5])
    assert cores(4, 1) == ["0", "1", "4", "5"] and cores(2, 2) == ["0,1", "4,5"]
    assert cores(3, 2) == ["0,1", "4,5", "0,1"] and cores(2, 3) == ["0,1,4", "0,1,5"]  # too few: some are shared
    with pytest.raises(ConfigError, match=r"run\.cores=8: this process may use 4 cores: write run\.cores=4"):
        cores(2, 8)
    assert cores(2, None) == cores(2, 1, processes=2) == [None, None]
    monkeypatch.setattr(runtime, "available_cores", lambda: [])
    assert cores(2, 1) == [None, None]


@pytest.mark.skipif(len(runtime.available_cores()) < 2, reason="needs two cores")
def test_a_job_keeps_to_the_cores_of_its_slot():
    code = "import os; from gpbench import runtime; runtime.configure(cores=1); print(sorted(os.sched_getaffinity(0)))"
    for core in runtime.available_cores()[:2]:
        environment = os.environ | {"GPBENCH_CORES": str(core)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == f"[{core}]"
