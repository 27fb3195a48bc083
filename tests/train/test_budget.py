"""A budget of CPU seconds: training ends so that its predictions fit, and a run that is late or too large says so."""

import os
import threading
import time
from functools import partial

import jax
import numpy as np
import pytest
from test_halving import race
from toys import Greedy, StopAfter, Walk, group, job

from gpbench.cli import main
from gpbench.errors import ConfigError, Stopped
from gpbench.records.absences import GRACE
from gpbench.records.store import Store
from gpbench.train import context
from gpbench.train.budget import Budget, cpu_seconds
from gpbench.train.loop import Cadence, fit
from gpbench.train.programs import Programs

WALK = partial(Walk, name="walk", batch_size=7)
RUN = ["dataset=moons", "method=walk", "method.steps=5", "split=0"]


class Priced(Programs):
    """Programs whose steps and predictions cost stated seconds of a clock of their own."""

    def __init__(self, method, step: float, prediction: float, start: float = 0.0):
        super().__init__(method)
        self.step, self.prediction, self.spent = step, prediction, start

    def advance(self, group, run, steps):
        self.spent += steps * self.step
        return super().advance(group, run, steps)

    def predict(self, group, run):
        self.spent += self.prediction
        super().predict(group, run)

    def fit(self, seconds: float, members=None, stop=None):
        budget = Budget(seconds, lambda: self.spent)
        return fit(self, members or group((0,)), cadence=Cadence(), stop=stop, budget=budget)


@pytest.mark.parametrize(
    ("step", "prediction", "start"), [(0.01, 0.0, 4.0), (0.3, 2.0, 1.0), (1.5, 0.2, 0.0), (3, 2, 1)]
)
def test_training_ends_when_only_the_predictions_fit(step, prediction, start):
    programs = Priced(WALK(steps=10_000), step, prediction, start)
    run = programs.fit(10.0)
    assert run.cpu_seconds == pytest.approx(start + 2 * prediction + run.step * step)
    assert 10.0 - step - 1e-9 < run.cpu_seconds <= 10.0 + 1e-9  # not one step more would have fit
    assert np.isfinite(run.predictions["log_prob"]).all() and not run.over


def test_with_seconds_to_spare_training_is_that_without_a_budget():
    within = Priced(WALK(steps=40), 0.01, 0.1).fit(100.0)
    alone = fit(Programs(WALK(steps=40)), group((0,)), cadence=Cadence(10, None))
    assert within.step == 40 and within.over
    assert all(map(np.array_equal, jax.tree.leaves(within.state), jax.tree.leaves(alone.state)))
    assert np.array_equal(within.predictions["log_prob"], alone.predictions["log_prob"])


@pytest.mark.parametrize(("step", "start", "seconds"), [(0.01, 10.0, 10.21), (30.0, 0.0, 30.2)])
def test_a_run_whose_compilation_or_first_step_takes_the_budget_takes_one_step(step, start, seconds):
    run = Priced(WALK(steps=10_000), step, 0.1, start=start).fit(10.0)
    assert run.step == 1 and run.cpu_seconds == pytest.approx(seconds) and np.isfinite(run.trace["objective"]).all()
    assert (run.cpu_seconds > (1 + GRACE) * 10.0) == (step > 1)  # which is late


def test_a_search_takes_a_share_of_the_seconds_and_a_run_that_is_stopped_has_no_budget_to_resume_with():
    rates = (1e-6, 0.3, 1e-4, 0.01)
    run = Priced(race(rates=rates, steps=2000, trial_steps=1000), 0.05, 0.5).fit(20.0)
    assert run.cpu_seconds <= 20.0 and run.step > 100  # four trials of 1000 steps alone would take 200 seconds
    assert run.seconds["search"] > 0.0
    with pytest.raises(Stopped, match="run the same command to start anew"):
        Priced(WALK(steps=10_000), 0.01, 0.1).fit(10.0, stop=StopAfter(2))


def test_the_clock_counts_all_threads_and_the_end_of_a_budget_is_noticed_while_one_works():
    def work():
        end = time.thread_time() + 0.1
        while time.thread_time() < end:
            np.linalg.norm(np.ones((200, 200)))

    start = cpu_seconds()
    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    time.sleep(0.2)
    assert cpu_seconds() - start >= 0.2
    spent, ended = [0.0], threading.Event()
    budget = Budget(10.0, lambda: spent[0])
    with budget.enforced(ended.set):
        spent[0] = (1 + GRACE) * 10.0
        assert not ended.wait(0.3)  # the grace
        spent[0] += 0.1
        assert ended.wait(2.0)


def test_a_run_within_its_budget_says_what_it_took(tmp_path):
    (record,) = job(tmp_path, *RUN, "run.budget=1e6", "run.checkpoint_every=0.001")
    assert record.status == "done" and record.steps == 5 and record.setting == "steps=5, budget=1000000"
    assert record.budget == 1e6 and 0.0 < record.cpu_seconds <= cpu_seconds()


def test_a_run_over_its_budget_is_recorded_as_such_and_ends_the_process(tmp_path, monkeypatch, capfd):
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    job(tmp_path, *RUN, "run.budget=0.001")  # this process has taken more before
    (record,) = Store(tmp_path).all()
    assert codes == [4] and record.status == "failed" and set(record.undefined.values()) == {"over time"}
    assert record.metrics["nll"] is None and record.cpu_seconds > record.budget == 0.001
    assert "gpbench: split 0 failed (no predictions after " in capfd.readouterr().err


def test_a_run_without_memory_is_recorded_as_such_only_where_it_has_a_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(context, "build_method", lambda node: Greedy(name="greedy", steps=1))
    (record,) = job(tmp_path, *RUN, "run.budget=1e6")
    assert record.status == "failed" and set(record.undefined.values()) == {"out of memory"}
    assert "GB of memory are free" in record.message
    # known once the program is compiled, which runs with no time wasted, nor another process killed
    with pytest.raises(ConfigError, match=r"one step's work on . x 900 rows need .* GB of memory are free: try fewer"):
        job(tmp_path, *RUN)


def test_a_budget_is_of_one_run_a_dry_run_says_so_and_a_sweep_has_a_process_for_each(tmp_path, capsys):
    with pytest.raises(ConfigError, match=r"run.budget is of one run, and this job has 2"):
        job(tmp_path, *RUN[:-1], "split=[0,1]", "run.budget=10")
    with pytest.raises(ConfigError, match=r"run.budget is of one process"):
        job(tmp_path, *RUN, "run.processes=2", "run.budget=10")
    words = ["--dry-run", "dataset=moons", "method=logistic", "split=[0,1]", "run.budget=10"]
    assert main(["run", *words]) == 6
    assert "fails: run.budget is of one run, and this job has 2: add -m" in capsys.readouterr().out
    assert main(["run", "-m", *words]) == 0
