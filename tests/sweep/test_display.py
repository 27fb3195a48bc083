"""What a sweep shows: one bar with the time left on a terminal."""

import io
from types import SimpleNamespace

from rich.console import Console

from gpbench.sweep import display
from gpbench.sweep.job import Outcome

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
        view.running(
            [SimpleNamespace(overrides=["dataset=b"], last_line=f"b  sep  step {step}/100  split 0 (0/1 done)")]
        )
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
