"""The jobs of a sweep: selects those that lack records, starts them in turn, and reports their outcomes."""

import dataclasses
import shlex
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from gpbench import paths, targets
from gpbench.analysis.printing import counted
from gpbench.config.values import check_values
from gpbench.errors import ConfigError, DivergedError, Stopped, SweepError, nearest
from gpbench.experiments.plan import plans
from gpbench.records.plan import RunPlan
from gpbench.records.unions import SHIPPED, open_one
from gpbench.sweep import display
from gpbench.sweep.classes import check_classes
from gpbench.sweep.job import RECORDED, STATUSES, Job, Outcome, prepare_data, separate
from gpbench.sweep.local import Local
from gpbench.sweep.order import longest_first
from gpbench.train.stop import StopRequest

_POLL_S = 0.05
_CLAIMED_S = 1.0
"""Seconds for which a job that another process trains is left alone before it is looked at again."""


@runtime_checkable
class Running(display.Running, Protocol):
    """A job that has been started, as one watches it."""

    def ended(self) -> bool:
        """True if it is over."""

    def outcome(self, stopping: bool) -> Outcome:
        """Its outcome, once it is over."""


@runtime_checkable
class Executor(Protocol):
    """Place where the jobs run: this machine or a cluster.

    `parting` is what is said of the running jobs when the sweep stops; `resubmit`, how often a job is started again
    that was stopped, though not by us.
    """

    parting: str
    resubmit: int

    def room(self, running: Sequence[Any]) -> int:
        """Number of jobs that may be started beside those running."""

    def start(self, jobs: Sequence[Job], running: Sequence[Any]) -> Sequence[Running]:
        """Start these jobs."""

    def cancel(self, running: Sequence[Any]) -> None:
        """Ask the running jobs to stop at a checkpoint."""

    def close(self) -> None:
        """Clear away what the sweep needed."""


def _executor(launcher: str, settings: Any, flags: Sequence[str], run: dict[str, Any], stop: StopRequest) -> Executor:
    if launcher == "basic":
        return Local(flags, run, stop)
    if launcher not in (known := ("slurm", "local")):
        raise ConfigError(f"hydra/launcher={launcher}: {nearest(launcher, known)}, or leave it out")
    from gpbench.sweep.cluster import Cluster

    return Cluster(launcher, settings, flags, run)


class Jobs:
    """The jobs of one sweep.  `run` is the `run` section of its configuration; its time limit counts from here.

    `launcher` and `settings`: the choice of Hydra's group of that name, and what it says.  Raises ConfigError.
    """

    def __init__(self, config_dirs: Sequence[Path], run: dict[str, Any], launcher: str = "basic", settings: Any = None):
        check_values({"run": run})
        self.config_dirs = config_dirs
        # A job has its plan, and needs folders for their code alone: not that of a table (dataset=PATH).
        flags = [f"--config-dir={folder}" for folder in config_dirs if targets.is_given(folder)]
        self.stop = StopRequest(run["time_limit"])
        self.executor = _executor(launcher, settings, flags, run, self.stop)
        self.outcomes: list[Outcome] = []

    def launch(self, jobs: Sequence[Sequence[str]]) -> None:
        """Run these jobs (each a list of overrides), whatever becomes of any; those that have their records do not run.

        Raises ConfigError before anything starts where any job cannot be composed.
        """
        planned = plans(jobs, self.config_dirs)
        check_classes(jobs, planned, self.config_dirs)
        pairs = [pair for words, plan in zip(jobs, planned, strict=True) for pair in separate(words, plan)]
        jobs, planned = [words for words, _ in pairs], [plan for _, plan in pairs]
        all_jobs = [Job(words, plan if isinstance(plan, RunPlan) else None) for words, plan in pairs]
        prepare_data([job.plan for job in all_jobs if job.plan])
        if 1 < self.executor.room(()) < len(jobs) and paths.shipped_files():
            all_jobs = longest_first(all_jobs, open_one(SHIPPED))
        waiting = deque(all_jobs)
        running: list[tuple[Job, Running]] = []
        reason: str | None = None
        patient = False
        with self.stop, display.make(jobs, planned) as view:
            try:
                while waiting or running:
                    children = [child for _, child in running]
                    if reason is None and (reason := self.stop.reason):
                        self._stop(reason, waiting, children, view)
                    if ready := self._ready(waiting, self.executor.room(children), view):
                        new = self.executor.start(ready, children)
                        running += zip(ready, new, strict=True)
                    for pair in [pair for pair in running if pair[1].ended()]:
                        running.remove(pair)
                        self._take(*pair, reason is not None, waiting, view)
                    if waiting and not running and not patient and all(job.not_before for job in waiting):
                        patient = True
                        view.print(f"waiting for {counted(len(waiting), 'job')} that other processes train")
                    view.running([child for _, child in running])
                    time.sleep(_POLL_S)
            except BaseException:  # as of a full disk that its lines go to
                self.executor.cancel(children := [child for _, child in running])
                while not all(child.ended() for child in children):  # else they would be killed as they write
                    time.sleep(_POLL_S)
                raise
            finally:
                self.executor.close()

    def _stop(self, reason: str, waiting: deque[Job], running: Sequence[Running], view: display.Lines) -> None:
        self.executor.cancel(running)
        if running and self.executor.parting:
            view.print(f"{reason}: {self.executor.parting}")
        self.outcomes += [Outcome(job.overrides, "stopped", "not started") for job in waiting]
        waiting.clear()

    def _ready(self, waiting: deque[Job], room: int, view: display.Lines) -> list[Job]:
        """Take from those waiting at most `room` that may start now; one that needs not run is over."""
        ready: list[Job] = []
        for job in list(waiting) if room > 0 else ():
            if len(ready) == room:
                break
            if time.monotonic() < job.not_before:
                continue
            if outcome := job.finished():
                waiting.remove(job)
                self._report(outcome, view)
            elif job.claimed():
                job.not_before = time.monotonic() + _CLAIMED_S
            else:
                waiting.remove(job)
                ready.append(job)
        return ready

    def _take(self, job: Job, child: Running, stopping: bool, waiting: deque[Job], view: display.Lines) -> None:
        """Takes the outcome of a job that is over.  Claimed by another process, or stopped by one, it waits again."""
        ended = child.outcome(stopping)
        job.stops += ended.status == "stopped"
        if stopping or ended.status not in ("claimed", "stopped") or job.stops > self.executor.resubmit:
            self._report(dataclasses.replace(ended, status="stopped") if ended.status == "claimed" else ended, view)
        else:
            job.not_before = time.monotonic() + _CLAIMED_S if ended.status == "claimed" else 0.0
            waiting.append(job)

    def _report(self, ended: Outcome, view: display.Lines) -> None:
        self.outcomes.append(ended)
        view.ended(ended)

    def conclude(self) -> int:
        """Print how many jobs ended how, and the failed ones; 0 if all are done.

        Otherwise raises Stopped, SweepError or DivergedError, the first of them that any job calls for.
        """
        counts = Counter(outcome.status for outcome in self.outcomes)
        print(f"{counted(len(self.outcomes), 'job')}: " + ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s]))
        for status in (*RECORDED, "failed"):
            for ended in self.outcomes:
                if ended.status == status:
                    flags = [f"--config-dir={folder}" for folder in self.config_dirs]
                    command = shlex.join(["gpbench", "run", *flags, *ended.overrides])
                    print(f"{status}: {ended.text}\n  {command}")
        if counts["stopped"]:
            reason = self.stop.reason or "a job was stopped"
            raise Stopped(f"{reason}; jobs left: {counts['stopped']}; run the same command to resume")
        if counts["failed"]:
            raise SweepError(f"{counts['failed']} of {len(self.outcomes)} jobs failed, as listed above")
        if parts := [f"{counts[status]} {words}" for status, words in RECORDED.items() if counts[status]]:
            raise DivergedError(f"of {counted(len(self.outcomes), 'job')} {' and '.join(parts)}, as listed above")
        return 0
