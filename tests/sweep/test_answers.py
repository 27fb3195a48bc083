"""The outcome of a job, judged from how its process ended."""

import errno

import pytest
from samples import sample

from gpbench.config.compose import compose as composed
from gpbench.sweep.job import _recorded_before, judge
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
    sweep = Jobs([], composed([f"run.results={tmp_path}"], [])["run"])
    sweep.executor = Executor()
    with pytest.raises(OSError, match="No space left"):
        sweep.launch([["dataset=sinc", "method=linear", f"split={k}"] for k in range(2)])
    assert closed == [0]


def test_a_split_that_is_not_finite_is_left_out_of_the_mean():
    records = [sample(str(k), split=k, metrics={"nll": k or None}) for k in range(3)]
    assert _recorded_before([], records).text == "nll 1.5, 1 run not finite"
    assert _recorded_before([], records[:1]).text == "nll 1 run not finite"
