"""The lines of a sweep: its jobs as `--dry-run` lists them, and the progress of those that run."""

import datetime
import re
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from gpbench.analysis.printing import counted
from gpbench.errors import ConfigError, GpbenchError, SweepError, require
from gpbench.experiments.plan import plans
from gpbench.records import locks
from gpbench.records.collection import open_store
from gpbench.records.plan import RunPlan
from gpbench.sweep.classes import check_classes
from gpbench.sweep.job import Outcome, Running


def make(jobs: Sequence[Sequence[str]], work: Mapping[tuple[str, ...], float]) -> "Lines":
    """The display that suits stdout, for jobs given as lists of overrides and their work; a context manager."""
    return _Terminal(jobs, work) if sys.stdout.isatty() else Lines(jobs)


class Lines(AbstractContextManager):
    """Plain lines: first the overrides that all jobs share, then for each job those it does not."""

    def __init__(self, jobs: Sequence[Sequence[str]]):
        self.total, self.count = len(jobs), 0
        self.shared = set.intersection(*map(set, jobs)) if len(jobs) > 1 else set()
        if self.shared:
            print(f"{self.total} jobs: {' '.join(word for word in jobs[0] if word in self.shared)}", flush=True)

    def label(self, overrides: Sequence[str]) -> str:
        """Words of a job that the others do not share."""
        return " ".join(word for word in overrides if word not in self.shared)

    def __exit__(self, *_: object) -> None:
        pass

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


class _Terminal(Lines):
    """Plain lines with a bar of all jobs and the time left, and below the running jobs with the last line of each."""

    def __init__(self, jobs: Sequence[Sequence[str]], work: Mapping[tuple[str, ...], float]):
        from rich.live import Live

        super().__init__(jobs)
        self.work, self.remaining_work = work, sum(work.get(tuple(job), 1.0) for job in jobs)
        self.finished_work, self.partial_work, self.began = 0.0, 0.0, time.monotonic()
        self.live = Live(refresh_per_second=4, transient=True)

    def __enter__(self) -> "_Terminal":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def ended(self, outcome: Outcome) -> None:
        super().ended(outcome)
        work = self.work.get(tuple(outcome.overrides), 1.0)
        self.remaining_work -= work
        if outcome.status != "already":  # one recorded before says nothing of the time that the others take
            self.finished_work += work

    def running(self, children: Sequence[Running]) -> None:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        shares = ((self.work.get(tuple(child.overrides), 1.0), _fraction(child.last_line)) for child in children)
        self.partial_work = sum(work * share for work, share in shares)
        bar = Table.grid(padding=(0, 1))
        bar.add_row(ProgressBar(total=self.total, completed=self.count, width=24), self.summary())
        lines = [f"> {self.label(child.overrides)}  {child.last_line}" for child in children]
        self.live.update(Group(bar, *(Text(line, no_wrap=True, overflow="ellipsis") for line in lines)))

    def summary(self) -> str:
        """Number of jobs that are over, and the time left: jobs count by their work, running ones by their steps."""
        text = f"{self.count}/{self.total} jobs"
        if not (ready := self.finished_work + self.partial_work):
            return text
        remaining = (self.remaining_work - self.partial_work) * (time.monotonic() - self.began) / ready
        return f"{text}  {datetime.timedelta(seconds=round(remaining))} left"

    def print(self, line: str) -> None:
        self.live.console.print(line, markup=False, highlight=False, soft_wrap=True)


def _fraction(line: str) -> float:
    """Share of a job that is done, from the last line of its progress: "step 10/200  ... (3/20 done)"."""
    step, splits = re.search(r"step (\d+)/(\d+)", line), re.search(r"\((\d+)/(\d+) done\)", line)
    of_split = int(step[1]) / int(step[2]) if step else 0.0
    return (int(splits[1]) + of_split) / int(splits[2]) if splits else of_split


def preview(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path]) -> int:
    """Prints a line for each job (a list of overrides) and how many runs are to train; trains and writes nothing."""
    view, failed = Lines(jobs), 0
    train: set[str] = set()
    planned = [*map(_checked, plans(jobs, config_dirs))]
    check_classes(jobs, planned, config_dirs)
    for words, plan in zip(jobs, planned, strict=True):
        if isinstance(plan, RunPlan):
            missing = [run.id for run in plan.missing(open_store(plan.results))]
            held = sum(bool(locks.holder(plan.results, id)) for id in missing)
            runs, busy = counted(len(plan.runs), "run"), f", {held} by another process" if held else ""
            text = f"to train  {len(missing)} of {runs}{busy}" if missing else f"recorded  {runs}"
            train.update(missing)
        else:
            failed, text = failed + 1, f"fails: {one_line(plan)}"
        view.print(f"{text}  {view.label(words) if len(jobs) > 1 else ' '.join(words)}".rstrip())
    print(f"{counted(len(jobs), 'job')}; {counted(len(train), 'run')} to train")
    require(not failed, f"{failed} of {len(jobs)} jobs would fail, as listed above", SweepError)
    return 0


def one_line(error: GpbenchError) -> str:
    """An error in one line."""
    return " ".join((error.printed or str(error)).split())


def _checked(plan: RunPlan | GpbenchError) -> RunPlan | GpbenchError:
    """The plan, or the error that its training would begin with, where its card tells the rows."""
    from gpbench.config import cards, declared
    from gpbench.data import splits

    if isinstance(plan, RunPlan):
        try:
            if sizes := splits.sizes(cards.resolved(plan.cfg["dataset"])):
                declared.check_inducing(plan.cfg["method"], sizes[0])
        except ConfigError as error:
            return error
    return plan
