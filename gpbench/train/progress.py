"""Progress of a run on stderr: a bar on a terminal, a plain line every few seconds elsewhere."""

import sys
import time
from collections.abc import Mapping
from typing import Any

PLAIN_EVERY_S = 5.0
STAGES = {"init": "initial state", "search": "choice of settings", "compile": "compilation"}
"""The parts of a run (`gpbench.train.group.PARTS`) that take long without a step, and what they are called."""


class Progress:
    """Reports of the training loop, independent of their display; this class shows nothing."""

    def begin(self, title: str, total_steps: int, members: str) -> None:
        """`total_steps` steps start now, on `members`, a short description of the runs that train together."""

    def stage(self, phase: str) -> None:
        """Report that this one of `PARTS` begins."""

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        """`step` steps are done; objective and metrics are the last computed."""

    def note(self, text: str) -> None:
        """One line that stays on the screen (a resumed checkpoint)."""

    def end(self) -> None:
        """The steps have ended, whether all were done or not."""


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
        self.stream, self.every = stream, every

    def begin(self, title: str, total_steps: int, members: str) -> None:
        self.title, self.total, self.members = title, total_steps, members
        self.started = self.last = time.monotonic()
        self.first: int | None = None

    def stage(self, phase: str) -> None:
        if phase in STAGES and (now := time.monotonic()) - self.last >= self.every:
            self.last = now
            self.note(f"{self.title}  {self.members}  {STAGES[phase]}")

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        now = time.monotonic()
        if self.first is None:  # a resumed run starts late, and the first chunk holds the compilation
            self.first, self.started = step, now
        if now - self.last < self.every:
            return
        self.last = now
        remaining = ""
        if step > self.first:
            remaining = f"  {(self.total - step) * (now - self.started) / (step - self.first):.0f} s left"
        self.note(f"{self.title}  step {step}/{self.total}  {describe(self.members, objective, metrics)}{remaining}")

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Bar(Progress):
    """A bar on a terminal, gone when the run is over; notes stay.  It fits into 60 columns."""

    def __init__(self, stream: Any):
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress
        from rich.table import Column

        def cut(ratio: int) -> Column:  # texts give way to the numbers
            return Column(no_wrap=True, overflow="ellipsis", ratio=ratio)

        columns = [TextColumn("{task.description}", table_column=cut(1)), BarColumn(bar_width=8), MofNCompleteColumn()]
        columns += [TimeRemainingColumn(compact=True), TextColumn("{task.fields[phrase]}", table_column=cut(2))]
        self.bar = RichProgress(*columns, console=Console(file=stream), transient=True, expand=True)

    def begin(self, title: str, total_steps: int, members: str) -> None:
        self.title, self.members = title, members
        for task in self.bar.task_ids:
            self.bar.remove_task(task)
        self.task = self.bar.add_task(title, total=total_steps, phrase=members)
        self.bar.start()

    def stage(self, phase: str) -> None:
        self.bar.update(self.task, description=STAGES.get(phase, self.title))

    def update(self, step: int, objective: float | None, metrics: Mapping[str, float]) -> None:
        # one metric: nll or rmse
        metric_name = next((name for name in ("nll", "rmse") if name in metrics), None)
        score_text = f"{metric_name} {metrics[metric_name]:.4g}  " if metric_name else ""
        self.bar.update(self.task, completed=step, phrase=score_text + self.members)

    def note(self, text: str) -> None:
        self.bar.console.print(text, markup=False, highlight=False)

    def end(self) -> None:
        self.bar.stop()
