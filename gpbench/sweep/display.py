"""The lines of a sweep: its jobs as `--dry-run` lists them, and the progress of those that run."""

import datetime
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from gpbench.analysis.printing import counted
from gpbench.errors import ConfigError, GpbenchError, SweepError
from gpbench.experiments.plan import plans
from gpbench.records import locks
from gpbench.records.collection import open_store
from gpbench.records.plan import RunPlan
from gpbench.sweep.classes import check_classes
from gpbench.sweep.job import Outcome


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
        """Words of a job that the others do not share."""
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
        """Shows the jobs under way; in logs nothing."""

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
        """Number of jobs that are over, and the time left at the mean rate of those that trained."""
        text = f"{self.count}/{self.total} jobs"
        if not self.trained:
            return text
        remaining = (self.total - self.count) * (time.monotonic() - self.began) / self.trained
        return f"{text}  {datetime.timedelta(seconds=round(remaining))} left"

    def print(self, line: str) -> None:
        """Print one line above the running jobs."""
        self.live.console.print(line, markup=False, highlight=False, soft_wrap=True)


def preview(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path]) -> int:
    """Prints a line for each job (a list of overrides) and how many runs are to train; trains and writes nothing.

    Raises ConfigError where any job cannot be composed, SweepError where the runs of some are unknown.
    """
    view = Lines(jobs)
    train, failed = 0, 0
    planned = [_checked(plan) for plan in plans(jobs, config_dirs)]
    check_classes(jobs, planned, config_dirs)
    for words, plan in zip(jobs, planned, strict=True):
        if isinstance(plan, RunPlan):
            missing, text = _state(plan)
            train += missing
        else:
            failed, text = failed + 1, f"fails: {' '.join(str(plan).split())}"
        view.print(f"{text}  {view.label(words) if len(jobs) > 1 else ' '.join(words)}".rstrip())
    print(f"{counted(len(jobs), 'job')}; {counted(train, 'run')} to train")
    if failed:
        raise SweepError(f"{failed} of {len(jobs)} jobs would fail, as listed above")
    return 0


def _checked(plan: RunPlan | GpbenchError) -> RunPlan | GpbenchError:
    """The plan, or the error that its training would begin with, where its card tells the rows."""
    from gpbench.config import cards, declared
    from gpbench.data import splits

    if isinstance(plan, RunPlan) and (sizes := splits.sizes(cards.resolved(plan.cfg["dataset"]))):
        try:
            declared.check_inducing(plan.cfg["method"], sizes[0])
        except ConfigError as error:
            return error
    return plan


def _state(plan: RunPlan) -> tuple[int, str]:
    """Number of runs of a plan that are not recorded, and the same in words."""
    runs, missing = plan.runs, plan.missing(open_store(plan.results))
    if not missing:
        return 0, f"recorded  {counted(len(runs), 'run')}"
    held = sum(bool(locks.holder(plan.results, run.id)) for run in missing)
    busy = f", {held} by another process" * bool(held)
    return len(missing), f"to train  {len(missing)} of {counted(len(runs), 'run')}{busy}"
