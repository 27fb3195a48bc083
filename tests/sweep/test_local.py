"""Jobs of a sweep on this machine: a GPU for each where there are several, and shares of one otherwise."""

import os
import subprocess
import sys

import pytest

from gpbench import runtime
from gpbench.errors import ConfigError
from gpbench.experiments.plan import plans
from gpbench.sweep.jobs import Local, _visible_gpus
from gpbench.train.stop import StopRequest

RUN = {"jobs": 8, "device": None, "memory_fraction": None}


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
    here = Local([], {**RUN, **run}, StopRequest())
    return [here.environment(slot, overrides) for slot in range(here.at_a_time)]


def test_eight_jobs_on_eight_gpus_have_one_each_and_more_jobs_than_gpus_share_them(gpus):
    gpus(8)
    assert environments() == [{"CUDA_VISIBLE_DEVICES": str(i)} for i in range(8)]
    gpus(2)
    variables = environments(jobs=4)
    assert [env["CUDA_VISIBLE_DEVICES"] for env in variables] == ["0", "1", "0", "1"]
    assert {env["XLA_PYTHON_CLIENT_MEM_FRACTION"] for env in variables} == {"0.450"}


def test_the_gpus_that_the_user_leaves_visible_are_those_dealt_out(gpus, monkeypatch):
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
    here = Local([], {**RUN, "jobs": jobs}, StopRequest())
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
