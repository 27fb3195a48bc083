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
    view = display.Terminal([["dataset=a", f"seed={i}"] for i in range(4)])
    view.live.console = Console(file=io.StringIO(), width=60, force_terminal=True)
    assert view.summary() == "0/4 jobs"
    view.ended(Outcome(["dataset=a", "seed=0"], "already", "rmse 1"))
    assert view.summary() == "1/4 jobs"  # a job that was recorded before tells nothing of the time left
    now[0] = 60.0
    view.ended(Outcome(["dataset=a", "seed=1"], "done", "rmse 1", 60.0))
    view.running([CHILD, CHILD])
    screen = Console(file=io.StringIO(), width=60)
    screen.print(view.live.renderable)
    lines = screen.file.getvalue().splitlines()
    assert lines[0].rstrip().endswith("2/4 jobs  0:02:00 left")
    assert lines[1].startswith("> seed=3  step 10/200") and len(lines) == 3
