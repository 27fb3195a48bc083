"""The jobs of a sweep: selects those that lack records, starts them in turn, and reports their outcomes."""

import dataclasses
import os
import shlex
import subprocess
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, runtime, targets
from gpbench.analysis.printing import counted
from gpbench.config.values import Run, check_values
from gpbench.errors import ConfigError, DivergedError, GpbenchError, Stopped, SweepError, nearest, require
from gpbench.experiments.plan import plans
from gpbench.records.unions import SHIPPED, open_one
from gpbench.sweep import display
from gpbench.sweep.classes import check_classes
from gpbench.sweep.display import one_line
from gpbench.sweep.job import RECORDED, STATUSES, Job, Outcome, Running, longest_first
from gpbench.sweep.local import Child, Forks, core_numbers
from gpbench.train.stop import StopRequest

_POLL_S = 0.05
_CLAIMED_S = 1.0  # seconds for which a job that another process trains is left alone before it is looked at again


class Local:
    """Starts jobs as children of this process, `run.jobs` at a time, with a GPU for each where there are several."""

    parting = ""
    resubmit = 0

    def __init__(self, flags: Sequence[str], run: Run, stop: StopRequest):
        self.flags, self.stop, self.at_a_time, self.forks = flags, stop, run["jobs"], Forks()
        self.least = 1  # the fewest that are started at once where more wait
        self.gpus = _visible_gpus() if run["jobs"] > 1 and run["device"] != "cpu" else []
        self.shared = run["memory_fraction"] is None and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ

    def start(self, jobs: Sequence[Job], running: Sequence[Child]) -> list[Child]:
        children: list[Child] = []
        for job in jobs:
            remaining = self.stop.seconds_left()
            limited = job if remaining is None else job.limited(max(remaining, 0.001))
            slot = min(set(range(self.at_a_time)) - {child.slot for child in (*running, *children)})
            words, environment = [*self.flags, *limited.overrides], self.environment(slot, job.overrides)
            environment |= self.cores(slot, job.plan.cfg["run"])
            children.append(Child(job.overrides, words, environment, slot, plan=limited.plan, forks=self.forks))
        return children

    def environment(self, slot: int, overrides: Iterable[str]) -> dict[str, str]:
        """The environment of the job in this slot: its GPU, and its share of it where jobs share one.  A job that asks
        for several devices or processes keeps all GPUs."""
        keeps_all = any(word.startswith(("run.devices=", "run.processes=")) for word in overrides)
        gpus = [] if keeps_all else self.gpus
        environment = {"CUDA_VISIBLE_DEVICES": gpus[slot % len(gpus)]} if gpus else {}
        sharing = -(-self.at_a_time // max(1, len(gpus)))
        if self.shared and sharing > 1:
            environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / sharing:.3f}"
        return environment

    def cores(self, slot: int, run: Run) -> dict[str, str]:
        """The variable with the cores of the job in this slot, where its `run` section asks for some."""
        if not (count := run["cores"]) or run["processes"] != 1:
            return {}
        runtime.require_cores(count)
        return {"GPBENCH_CORES": numbers} if (numbers := core_numbers(slot, count)) else {}

    def close(self) -> None:
        self.forks.close()

    def cancel(self, running: Sequence[Child]) -> None:
        for child in running:
            child.terminate()


def _visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; asks nvidia-smi where it is not set."""
    if (value := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in value.split(",") if name.strip() not in ("", "-1", "NoDevFiles")]
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(i) for i, _ in enumerate(line for line in listed.stdout.splitlines() if line.startswith("GPU "))]


class Jobs:
    """The jobs of one sweep with this `run` section; `launcher` and `settings` are the choice of Hydra's group."""

    def __init__(self, config_dirs: Sequence[Path], run: Run, launcher: str = "basic", settings: Any = None):
        check_values({"run": run})
        self.config_dirs = config_dirs
        # A job has its plan, and needs folders for their code alone: not that of a table (dataset=PATH).
        flags = [f"--config-dir={folder}" for folder in config_dirs if targets.is_given(folder)]
        self.stop = StopRequest(run["time_limit"])
        self.executor: Any = Local(flags, run, self.stop) if launcher == "basic" else None
        if not self.executor:
            known = ("slurm", "local")
            hint = f"hydra/launcher={launcher}: {nearest(launcher, known)}, or leave it out"
            require(launcher in known, hint, ConfigError)
            from gpbench.sweep.cluster import Cluster

            self.executor = Cluster(launcher, settings, flags, run)
        self.outcomes: list[Outcome] = []
        self._waiting: deque[Job] = deque()
        self._running: list[tuple[Job, Running]] = []

    def launch(self, jobs: Sequence[Sequence[str]]) -> None:
        """Run these jobs (each a list of overrides), whatever becomes of any, unless they have their records."""
        planned = plans(jobs, self.config_dirs)
        check_classes(jobs, planned, self.config_dirs)
        failed, all_jobs = list[Outcome](), list[Job]()
        for words, plan in zip(jobs, planned, strict=True):
            if isinstance(plan, GpbenchError):
                failed.append(Outcome(list(words), "failed", one_line(plan)))
            else:
                all_jobs.append(Job(list(words), plan))
        work = {tuple(job.overrides): job.work() for job in all_jobs}
        lines = [*(outcome.overrides for outcome in failed), *(job.overrides for job in all_jobs)]
        if 1 < self.executor.at_a_time < len(all_jobs) and paths.shipped_files():
            all_jobs = longest_first(all_jobs, open_one(SHIPPED))
        self._waiting.extend(all_jobs)
        with self.stop, display.make(lines, work) as self._view:
            try:
                for outcome in failed:
                    self._report(outcome)
                self._run()
            except BaseException:  # as of a full disk that its lines go to
                self.executor.cancel(children := [child for _, child in self._running])
                while not all(child.ended() for child in children):  # else they would be killed as they write
                    time.sleep(_POLL_S)
                raise
            finally:
                self.executor.close()

    def _run(self) -> None:
        reason, patient = None, False
        while self._waiting or self._running:
            began = time.monotonic()
            children = [child for _, child in self._running]
            if reason is None and (reason := self.stop.reason):
                self._stop(reason, children)
            room = self.executor.at_a_time - len(children)
            if ready := self._ready(room if room >= min(self.executor.least, len(self._waiting)) else 0):
                new = self.executor.start(ready, children)
                self._running += zip(ready, new, strict=True)
            for job, child in [pair for pair in self._running if pair[1].ended()]:
                self._running.remove((job, child))
                self._take(job, child, reason is not None)
            if self._waiting and not self._running and not patient and all(job.not_before for job in self._waiting):
                patient = True
                self._view.print(f"waiting for {counted(len(self._waiting), 'job')} that other processes train")
            self._view.running([child for _, child in self._running])
            # Ten thousand jobs take a while to look at.
            time.sleep(min(1.0, max(_POLL_S, 20 * (time.monotonic() - began))))

    def _stop(self, reason: str, running: Sequence[Running]) -> None:
        self.executor.cancel(running)
        if running and self.executor.parting:
            self._view.print(f"{reason}: {self.executor.parting}")
        self.outcomes += [Outcome(job.overrides, "stopped", "not started") for job in self._waiting]
        self._waiting.clear()

    def _ready(self, room: int) -> list[Job]:
        """Take from those waiting at most `room` that may start now; one that needs not run is over."""
        ready: list[Job] = []
        for job in list(self._waiting) if room > 0 else ():
            if len(ready) == room:
                break
            if time.monotonic() < job.not_before:
                continue
            outcome = job.finished()
            if not outcome and job.claimed():
                job.not_before = time.monotonic() + _CLAIMED_S
                continue
            self._waiting.remove(job)
            if outcome:
                self._report(outcome)
            else:
                ready.append(job)
        return ready

    def _take(self, job: Job, child: Running, stopping: bool) -> None:
        """Takes the outcome of a job that is over.  Claimed by another process, or stopped by one, it waits again."""
        ended = child.outcome(stopping)
        job.stops += ended.status == "stopped"
        if stopping or ended.status not in ("claimed", "stopped") or job.stops > self.executor.resubmit:
            self._report(dataclasses.replace(ended, status="stopped") if ended.status == "claimed" else ended)
        else:
            job.not_before = time.monotonic() + _CLAIMED_S if ended.status == "claimed" else 0.0
            self._waiting.append(job)

    def _report(self, ended: Outcome) -> None:
        self.outcomes.append(ended)
        self._view.ended(ended)

    def conclude(self) -> int:
        """Prints how many jobs ended how, and the failed ones; 0 if all are done, else raises what they call for."""
        counts = Counter(outcome.status for outcome in self.outcomes)
        print(f"{counted(len(self.outcomes), 'job')}: " + ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s]))
        for status in (*RECORDED, "failed"):
            for ended in (outcome for outcome in self.outcomes if outcome.status == status):
                flags = [f"--config-dir={folder}" for folder in self.config_dirs]
                print(f"{status}: {ended.text}\n  {shlex.join(['gpbench', 'run', *flags, *ended.overrides])}")
        rest = f"jobs left: {counts['stopped']}; run the same command to resume"
        require(not counts["stopped"], f"{self.stop.reason or 'a job was stopped'}; {rest}", Stopped)
        failed = f"{counts['failed']} of {len(self.outcomes)} jobs failed, as listed above"
        require(not counts["failed"], failed, SweepError)
        parts = [f"{counts[status]} {words}" for status, words in RECORDED.items() if counts[status]]
        lost = f"of {counted(len(self.outcomes), 'job')} {' and '.join(parts)}, as listed above"
        require(not parts, lost, DivergedError)
        return 0
