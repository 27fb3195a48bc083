"""Jobs of a sweep on this machine: a GPU for each where there are several, and shares of one otherwise."""

import pytest

from gpbench.sweep.local import Local, visible_gpus
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


def test_eight_jobs_on_eight_gpus_have_one_each(gpus):
    gpus(8)
    assert environments() == [{"CUDA_VISIBLE_DEVICES": str(i)} for i in range(8)]


def test_more_jobs_than_gpus_share_them_and_their_memory(gpus):
    gpus(2)
    variables = environments(jobs=4)
    assert [env["CUDA_VISIBLE_DEVICES"] for env in variables] == ["0", "1", "0", "1"]
    assert {env["XLA_PYTHON_CLIENT_MEM_FRACTION"] for env in variables} == {"0.450"}


def test_the_gpus_that_the_user_leaves_visible_are_those_dealt_out(gpus, monkeypatch):
    gpus(8)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7")
    assert [env["CUDA_VISIBLE_DEVICES"] for env in environments(jobs=2)] == ["5", "GPU-7"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []


@pytest.mark.parametrize("run, overrides", [({"jobs": 1}, ()), ({"device": "cpu"}, ()), ({}, ["run.devices=4"])])
def test_one_job_and_one_on_several_devices_and_one_on_the_cpu_keep_all_gpus(gpus, run, overrides):
    gpus(4)
    assert not any("CUDA_VISIBLE_DEVICES" in env for env in environments(overrides, **run))
