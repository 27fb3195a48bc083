"""Progress of a run on stderr: a bar on a terminal, a plain line every few seconds elsewhere."""

import datetime
import math
import sys
import time
from collections.abc import Mapping
from typing import Any

PLAIN_EVERY_S = 5.0
STAGES = {"init": "initial state", "search": "choice of settings", "compile": "compilation"}
"""The parts of a run (`gpbench.train.group.PARTS`) that take long without a step, and what they are called."""


class Progress:
    """Reports of the training loop, independent of their display; this class shows nothing."""

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        """`total_steps` steps start now, on `members`, a short description of the runs that train together.

        `later` trainings of as many steps follow.
        """

    def stage(self, phase: str) -> None:
        """Report that this one of `PARTS` begins."""

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        """`step` steps are done; objective and metrics are the last computed."""

    def note(self, text: str) -> None:
        """One line that stays on the screen (a resumed checkpoint)."""

    def end(self) -> None:
        """The steps have ended, whether all were done or not."""


class _Clock:
    """Seconds left, at the mean rate of all steps since the first report, whichever training they belong to."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._steps, self._last = 0, 0

    def begin(self, total_steps: int, later: float) -> None:
        """A training begins."""
        self._total, self._later, self._last = total_steps, later, 0

    def seconds(self, step: int) -> float | None:
        """The seconds left once `step` steps of this training are done; None where nothing is known."""
        now = time.monotonic()
        if self._began is None:  # a resumed run starts late, and the first chunk holds the compilation
            self._began, self._last = now, step
        self._steps, self._last = self._steps + step - self._last, step
        if not self._steps:
            return None
        return (self._total * (1 + self._later) - step) * (now - self._began) / self._steps


def make(visible: bool = True, stream: Any = None) -> Progress:
    """The progress that suits `stream` (a text stream, stderr by default); only notes unless `visible`."""
    stream = stream or sys.stderr
    if visible and stream.isatty():
        return Bar(stream)
    return Plain(stream, every=PLAIN_EVERY_S if visible else float("inf"))


def describe(members: str, objective: float | None, metrics: Mapping[str, float]) -> str:
    """One phrase: "splits 0-4  objective 123.4  nll 0.47"."""
    parts = [members]
    if objective is not None:
        parts.append(f"objective {objective:.6g}")
    return "  ".join(parts + [f"{name} {value:.4g}" for name, value in metrics.items()])


class Plain(Progress):
    """Lines for logs and pipes: a title, then at most one line in `every` seconds, with the seconds left."""

    def __init__(self, stream: Any, every: float = PLAIN_EVERY_S):
        self.stream, self.every, self.clock = stream, every, _Clock()
        self.last = float("nan")

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        self.title, self.total, self.members = title, total_steps, members
        self.last = time.monotonic() if math.isnan(self.last) else self.last
        self.clock.begin(total_steps, later)

    def stage(self, phase: str) -> None:
        if phase in STAGES and (now := time.monotonic()) - self.last >= self.every:
            self.last = now
            self.note(f"{self.title}  {self.members}  {STAGES[phase]}")

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        seconds = self.clock.seconds(step)
        if (now := time.monotonic()) - self.last < self.every:
            return
        self.last = now
        remaining = "" if seconds is None else f"  {seconds:.0f} s left"
        self.note(f"{self.title}  step {step}/{self.total}  {describe(self.members, objective, metrics)}{remaining}")

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Bar(Progress):
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
        self.clock = _Clock()
        self.bar = RichProgress(*columns, console=Console(file=stream), transient=True, expand=True)

    def begin(self, title: str, total_steps: int, members: str, later: float = 0.0) -> None:
        self.title, self.members = title, members
        self.clock.begin(total_steps, later)
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.task = self.bar.add_task(title, total=total_steps, phrase=members, left="--:--")
        self.bar.start()

    def stage(self, phase: str) -> None:
        self.bar.update(self.task, description=STAGES.get(phase, self.title))

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        # one metric: nll or rmse
        metric_name = next((name for name in ("nll", "rmse") if name in metrics), None)
        score_text = f"{metric_name} {metrics[metric_name]:.4g}  " if metric_name else ""
        seconds = self.clock.seconds(step)
        text = "--:--" if seconds is None else str(datetime.timedelta(seconds=round(seconds))).removeprefix("0:")
        self.bar.update(self.task, completed=step, phrase=score_text + self.members, left=text)

    def note(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        self.bar.stop()
