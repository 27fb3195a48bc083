"""What a sweep shows while it runs: one line per job as it ends and, on a terminal, one per running job below."""

import datetime
import sys
import time
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from gpbench.sweep.outcome import Outcome


@runtime_checkable
class Running(Protocol):
    """A job that has been started, with the last line that it said."""

    overrides: list[str]
    last_line: str


def make(jobs: Sequence[Sequence[str]]) -> "Lines":
    """The display that suits stdout, for jobs given as lists of overrides; a context manager."""
    return Terminal(jobs) if sys.stdout.isatty() else Lines(jobs)


class Lines:
    """Plain lines: first the overrides that all jobs share, then for each job those it does not."""

    def __init__(self, jobs: Sequence[Sequence[str]]):
        self.total, self.count = len(jobs), 0
        self.shared = set.intersection(*map(set, jobs)) if len(jobs) > 1 else set()
        if self.shared:
            print(f"{self.total} jobs: {' '.join(word for word in jobs[0] if word in self.shared)}", flush=True)

    def label(self, overrides: Sequence[str]) -> str:
        """What sets a job apart from the others."""
        return " ".join(word for word in overrides if word not in self.shared)

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to clear away."""

    def ended(self, outcome: Outcome) -> None:
        """One line for a job that is over."""
        self.count += 1
        width = len(str(self.total))
        prefix = f"[{self.count:>{width}}/{self.total}] {outcome.status:<8}"
        self.print(f"{prefix} {self.label(outcome.overrides)}  {outcome.text}  ({outcome.seconds:.1f} s)")

    def running(self, children: Sequence[Running]) -> None:
        """What is under way; logs need not know."""

    def print(self, line: str) -> None:
        """Print one line."""
        print(line, flush=True)


class Terminal(Lines):
    """The same with a bar of all jobs and the time left, and below it the running jobs with the last line of each."""

    def __init__(self, jobs: Sequence[Sequence[str]]):
        from rich.live import Live

        super().__init__(jobs)
        self.trained, self.began = 0, time.monotonic()
        self.live = Live(refresh_per_second=4, transient=True)

    def __enter__(self) -> "Terminal":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def ended(self, outcome: Outcome) -> None:
        """One line for a job that is over; those recorded before say nothing of the time that the others take."""
        super().ended(outcome)
        self.trained += outcome.status != "already"

    def running(self, children: Sequence[Running]) -> None:
        """The bar, and a line for each running job, cut at the terminal's width."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=self.total, completed=self.count, width=24), self.summary())
        lines = [f"> {self.label(child.overrides)}  {child.last_line}" for child in children]
        self.live.update(Group(bar, *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines)))

    def summary(self) -> str:
        """How many jobs are over, and the time left at the mean rate of those that trained."""
        text = f"{self.count}/{self.total} jobs"
        if not self.trained:
            return text
        remaining = (self.total - self.count) * (time.monotonic() - self.began) / self.trained
        return f"{text}  {datetime.timedelta(seconds=round(remaining))} left"

    def print(self, line: str) -> None:
        """Print one line above the running jobs."""
        self.live.console.print(line, markup=False, highlight=False, soft_wrap=True)
