"""Progress of a run on stderr: a bar on a terminal, a plain line every few seconds elsewhere."""

import datetime
import math
import sys
import time
from collections.abc import Mapping
from typing import Any

from gpbench.log import is_quiet

_PLAIN_EVERY_S = 5.0
_STAGES = {"init": "initial state", "search": "choice of settings", "compile": "compilation"}
"""The parts of a run (`gpbench.train.group.PARTS`) that take long without a step, and what they are called."""


class Progress:
    """Reports of the training loop, which this class does not show, and the seconds left at the mean rate of steps."""

    _began: float | None = None
    _steps = 0

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        """`total_steps` steps of the runs `members` start now; `later` trainings of as many steps follow."""
        self.title, self.total, self.members, self._later, self._last = title, total_steps, members, later, 0

    def stage(self, phase: str) -> None:
        """One of `PARTS` begins."""

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        """`step` steps are done; objective and metrics are the last computed."""

    def note(self, text: str) -> None:
        """A line stays on the screen."""

    def end(self) -> None:
        """The steps have ended, whether all were done or not."""

    def seconds_left(self, step: int) -> float | None:
        """The seconds left once `step` steps of this training are done; None where nothing is known."""
        now = time.monotonic()
        if self._began is None:  # a resumed run starts late, and the first chunk holds the compilation
            self._began, self._last = now, step
        self._steps, self._last = self._steps + step - self._last, step
        if not self._steps:
            return None
        return (self.total * (1 + self._later) - step) * (now - self._began) / self._steps


def make(visible: bool = True, stream: Any = None) -> Progress:
    """The progress that suits `stream` (a text stream, stderr by default); only notes unless `visible`, if at all."""
    if is_quiet():
        return Progress()
    stream = stream or sys.stderr
    return _Bar(stream) if visible and stream.isatty() else _Plain(stream, _PLAIN_EVERY_S if visible else math.inf)


class _Plain(Progress):
    """Lines for logs and pipes: a title, then at most one line in `every` seconds, with the seconds left."""

    def __init__(self, stream: Any, every: float):
        self.stream, self.every, self.line_time = stream, every, math.nan

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        super().begin(title, total_steps, members, later)
        self.line_time = time.monotonic() if math.isnan(self.line_time) else self.line_time

    def stage(self, phase: str) -> None:
        if phase in _STAGES:
            self._say(self.title, self.members, _STAGES[phase])

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        parts = [f"step {step}/{self.total}", self.members]
        parts += [] if objective is None else [f"objective {objective:.6g}"]
        parts += [f"{name} {value:.4g}" for name, value in metrics.items()]
        parts += [] if (seconds := self.seconds_left(step)) is None else [f"{seconds:.0f} s left"]
        self._say(self.title, *parts)

    def _say(self, *parts: str) -> None:
        if (now := time.monotonic()) - self.line_time >= self.every:
            self.line_time = now
            self.note("  ".join(parts))

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class _Bar(Progress):
    """A bar on a terminal, gone when the run is over; notes stay.  It fits into 60 columns."""

    def __init__(self, stream: Any):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        def cut(ratio: int) -> Column:  # texts give way to the numbers
            return Column(no_wrap=True, overflow="ellipsis", ratio=ratio)

        columns = [TextColumn("{task.description}", table_column=cut(1)), BarColumn(bar_width=8), MofNCompleteColumn()]
        columns += [TextColumn("{task.fields[left]}"), TextColumn("{task.fields[phrase]}", table_column=cut(2))]
        self.bar = RichProgress(*columns, console=Console(file=stream), transient=True, expand=True)

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        super().begin(title, total_steps, members, later)
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.task = self.bar.add_task(title, total=total_steps, phrase=members, left="--:--")
        self.bar.start()

    def stage(self, phase: str) -> None:
        self.bar.update(self.task, description=_STAGES.get(phase, self.title))

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        # one metric: nll or rmse
        metric_name = next((name for name in ("nll", "rmse") if name in metrics), None)
        score_text = f"{metric_name} {metrics[metric_name]:.4g}  " if metric_name else ""
        seconds = self.seconds_left(step)
        text = "--:--" if seconds is None else str(datetime.timedelta(seconds=round(seconds))).removeprefix("0:")
        self.bar.update(self.task, completed=step, phrase=score_text + self.members, left=text)

    def note(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        self.bar.stop()
