"""Jobs of a sweep that one task of a cluster runs."""

import contextlib
import types

import pytest

from gpbench.sweep.cluster import Cluster, _Slurm
from gpbench.sweep.job import Job


@pytest.mark.parametrize("pack, sizes", [(1, [1] * 5), (2, [2, 2, 1]), (9, [5])])
def test_a_task_has_so_many_jobs_and_each_job_its_own_outcome(pack, sizes, monkeypatch):
    submitted = []

    def submit(_, jobs):
        submitted.append(jobs)
        return types.SimpleNamespace(job_id=0, paths=types.SimpleNamespace(stderr=""))

    executor = types.SimpleNamespace(batch=contextlib.nullcontext, submit=submit)
    cluster = Cluster.__new__(Cluster)
    vars(cluster).update(pack=pack, flags=["-f"], executor=executor, queue=_Slurm())
    monkeypatch.setattr(Job, "limited", lambda job, _: job)
    jobs = [Job.__new__(Job) for _ in range(5)]
    for k, job in enumerate(jobs):
        vars(job).update(overrides=[f"seed={k}"], plan=k)
    made = cluster.start(jobs, [])
    assert [len(tasks) for tasks in submitted] == sizes
    assert [job for tasks in submitted for job in tasks] == [(["-f", f"seed={k}"], k) for k in range(5)]
    for k, job in enumerate(made):
        vars(job.task)["results"] = [{"status": "done", "text": f"{k // pack}.{i}"} for i in range(pack)]
    assert [job.outcome(False).text for job in made] == [f"{k // pack}.{k % pack}" for k in range(5)]
