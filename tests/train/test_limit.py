"""A limit of CPU seconds: a run beyond it, or too large, is recorded as lost, and made again under a larger one."""

import os
import threading
import time

import numpy as np
import pytest
from toys import Greedy, job

from gpbench.errors import ConfigError, Stopped
from gpbench.records.store import Store
from gpbench.train import context, limit
from gpbench.train import job as train_job

RUN = ["dataset=moons", "method=walk", "method.steps=5", "split=0"]


def work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        np.linalg.norm(np.ones((200, 200)))


def test_the_clock_counts_all_threads_and_no_compilation_and_the_end_is_noticed_while_one_works(monkeypatch):
    start = limit.spent()
    threads = [threading.Thread(target=work, args=(0.1,)) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert limit.spent() - start >= 0.2
    spent, ended = [5.0], threading.Event()
    monkeypatch.setattr(limit, "spent", lambda: spent[0])
    with limit.enforced(10.0, ended.set):
        spent[0] = 15.0
        assert not ended.wait(0.3)
        spent[0] = 15.1
        assert ended.wait(2.0)
    with limit.enforced(None, ended.clear):
        spent[0] = 1e9
    assert ended.is_set()


def test_a_run_within_its_limit_is_the_same_run_as_one_without(tmp_path):
    (record,) = job(tmp_path, *RUN, "run.cpu_limit=1e6")
    assert record.status == "done" and record.steps == 5 and record.setting == "steps=5" and record.cpu_limit is None
    (plain,) = job(tmp_path / "plain", *RUN)
    assert (record.id, record.metrics) == (plain.id, plain.metrics)
    assert record.machine_rate > 0.0 and plain.machine_rate is None


def test_a_run_over_its_limit_is_recorded_as_lost_and_made_again_without_or_with_a_larger(tmp_path, monkeypatch, capfd):
    ended, codes = threading.Event(), []
    monkeypatch.setattr(os, "_exit", lambda code: (codes.append(code), ended.set()))

    def never(*_args, **_fields):
        work(0.1)
        assert ended.wait(5.0)
        raise Stopped("the process would have ended")

    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(train_job, "fit", never)
        job(tmp_path, *RUN, "run.cpu_limit=0.05")
    (record,) = Store(tmp_path).all()
    assert codes == [4] and record.status == "failed" and set(record.undefined.values()) == {"over time"}
    assert record.metrics["nll"] is None and record.cpu_limit == 0.05
    line = "gpbench: split 0 failed (no predictions within 0.05 CPU seconds: a larger run.cpu_limit makes it again)"
    assert line in capfd.readouterr().err
    assert job(tmp_path, *RUN, "run.cpu_limit=0.04")[0].status == "failed"
    assert job(tmp_path, *RUN, "run.cpu_limit=100")[0].status == Store(tmp_path).all()[0].status == "done"
    with monkeypatch.context() as patched, pytest.raises(Stopped):
        patched.setattr(train_job, "fit", never)
        ended.clear()
        job(tmp_path, *RUN[:-1], "split=[0,1]", "run.cpu_limit=0.05", "run.again=true")
    assert Store(tmp_path).all()[0].status == "done"  # what there was is kept
    assert "the record that there was is kept" in (err := capfd.readouterr().err) and "runs left: 1" in err


def test_a_run_without_memory_is_recorded_as_lost_only_where_it_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(context, "build_method", lambda node: Greedy(name="greedy", steps=1))
    (record,) = job(tmp_path, *RUN, "run.cpu_limit=1e6")
    assert record.status == "failed" and set(record.undefined.values()) == {"out of memory"}
    assert "GB of memory are free" in record.message
    # known once the program is compiled, which runs with no time wasted, nor another process killed
    with pytest.raises(ConfigError, match=r"one step's work on . x 900 rows need .* GB of memory are free: try fewer"):
        job(tmp_path, *RUN)
    with pytest.raises(ConfigError, match=r"run.cpu_limit is of one process: leave out run.processes"):
        job(tmp_path, *RUN, "run.processes=2", "run.cpu_limit=10")
