"""The jobs of a sweep: their order, and outcomes judged from how their processes ended."""

import errno
from pathlib import Path

import pytest
from samples import sample

from gpbench.config.compose import compose
from gpbench.records.collection import Collection
from gpbench.records.plan import Run, RunPlan
from gpbench.sweep.job import Job, _recorded_before, judge, longest_first
from gpbench.sweep.jobs import Jobs


@pytest.mark.parametrize("printed", ["", "hello", "{}", "[1]", "{'a': 1}"])
def test_a_process_without_an_answer_is_a_failed_job(printed):
    status, text = judge(0, "", printed)
    assert status == "failed" and "ended without an answer" in text


class Child:
    """A job that ends a while after it is asked to."""

    overrides, last_line, left = (), "", None

    def ended(self):
        if self.left:
            self.left -= 1
        return self.left == 0


class Done(Child):
    left = 0

    def outcome(self, stopping):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_sweep_that_cannot_go_on_lets_its_jobs_write_their_checkpoints(tmp_path):
    class Executor:
        parting, resubmit, at_a_time = "", 0, 2
        start = staticmethod(lambda jobs, running: children)
        cancel = staticmethod(lambda running: [setattr(child, "left", 3) for child in running])
        close = staticmethod(lambda: closed.append(children[1].left))

    children, closed = [Done(), Child()], []
    sweep = Jobs([], compose([f"run.results={tmp_path}"], [])["run"])
    sweep.executor = Executor()
    with pytest.raises(OSError, match="No space left"):
        sweep.launch([["dataset=sinc", "method=linear", f"split={k}"] for k in range(2)])
    assert closed == [0]


def test_a_split_that_is_not_finite_is_left_out_of_the_mean():
    records = [sample(str(k), split=k, metrics={"nll": k or None}) for k in range(3)]
    assert _recorded_before([], records).text == "nll 1.5, 1 run not finite"
    assert _recorded_before([], records[:1]).text == "nll 1 run not finite"


SEP = Path(__file__).parents[2] / "results" / "sep" / "records.parquet"


def test_unknown_jobs_start_first_and_the_papers_longest_after_them():
    words = [
        ["protocol=hl2016", f"dataset={name}", f"method={method}", f"method.inducing={m}", "split=all"]
        for m in (0.15, 0.5)
        for name in ("crabs", "australian")
        for method in ("svi", "gfitc")
    ]
    jobs = [Job(line, RunPlan.from_config(compose(line))) for line in words]
    unknown = Job(["never run"], RunPlan({}, "", [Run("0" * 16, "", 0)]))
    ordered = [job.overrides[1:4] for job in longest_first([*jobs, unknown], Collection(SEP))]
    assert ordered[0] == []
    assert ordered[1] == ["dataset=australian", "method=gfitc", "method.inducing=0.5"]
    assert ordered[-1][0] == "dataset=crabs"
