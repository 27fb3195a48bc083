"""Sweeps: Hydra's sweeper says which jobs there are, and each runs in a fresh process `python -m gpbench run`.

A fresh process keeps XLA's flags, caches and memory of one job away from the next.  Records that exist are not made
again, so the same command goes on where a sweep stopped.
"""

import collections
import shlex
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig, OmegaConf

from gpbench.cli import compose, display
from gpbench.cli.child import STATUSES, Child, Outcome
from gpbench.cli.values import check_values
from gpbench.errors import ConfigError, DivergedError, Stopped, SweepError
from gpbench.train.stop import StopRequest

_POLL_S = 0.05


def sweep(overrides: Sequence[str], config_dirs: Sequence[Path]) -> int:
    """Run all jobs of a sweep; 0 if every one is done.

    Raises ConfigError before anything starts where any job cannot be composed; afterwards Stopped if jobs were stopped
    or not started, else SweepError if any failed, else DivergedError if any diverged.
    """
    jobs = Jobs(config_dirs)
    with compose.hydra(config_dirs) as searchpath, tempfile.TemporaryDirectory() as folder:
        core = GlobalHydra.instance().hydra
        assert core is not None
        # Hydra's sweeper insists on writing a multirun.yaml somewhere
        words = [*searchpath, f"hydra.sweep.dir='{folder}'", *overrides]
        cfg = core.compose_config("config", words, run_mode=RunMode.MULTIRUN)
        if (chosen := cfg.hydra.runtime.choices["hydra/launcher"]) != "basic":
            raise ConfigError(f"hydra/launcher={chosen}: sweeps run in processes on this machine; leave it out")
        context = HydraContext(config_loader=core.config_loader, callbacks=Callbacks(cfg))
        sweeper = Plugins.instance().instantiate_sweeper(config=cfg, hydra_context=context, task_function=jobs)
        # By hand: Hydra instantiates launchers from the package hydra_plugins only, and whatever is in there is
        # imported by every other Hydra program of the same environment.
        sweeper.launcher = ProcessLauncher()
        sweeper.launcher.setup(hydra_context=context, task_function=jobs, config=cfg)
        sweeper.sweep(list(cfg.hydra.overrides.task))
    return jobs.conclude()


class Jobs:
    """The jobs of one sweep, and what became of them."""

    def __init__(self, config_dirs: Sequence[Path]):
        self.flags = [f"--config-dir={folder}" for folder in config_dirs]
        self.outcomes: list[Outcome] = []

    def prepare(self, run: dict[str, Any]) -> None:
        """Take the `run` section of the configuration; the time limit counts from here."""
        check_values({"run": run})
        self.at_a_time = run["jobs"]
        self.stop = StopRequest(run["time_limit"])
        self.environment = {}
        if run["jobs"] > 1 and run["memory_fraction"] is None:  # the jobs may share a GPU
            self.environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / run['jobs']:.3f}"

    def launch(self, jobs: Sequence[Sequence[str]]) -> None:
        """Run these jobs (each a list of overrides), `run.jobs` at a time, whatever becomes of any of them."""
        waiting, running = collections.deque(jobs), list[Child]()
        told: str | None = None
        with self.stop, display.make(jobs) as shown:
            while waiting or running:
                if told is None and (told := self.stop.reason):
                    for child in running:
                        child.terminate()
                    self.outcomes += [Outcome(list(job), "stopped", "not started") for job in waiting]
                    waiting.clear()
                while waiting and len(running) < self.at_a_time:
                    running.append(self._start(waiting.popleft()))
                for child in [child for child in running if child.ended()]:
                    running.remove(child)
                    self.outcomes.append(child.outcome(stopping=told is not None))
                    shown.ended(self.outcomes[-1])
                shown.running(running)
                time.sleep(_POLL_S)

    def __call__(self, cfg: DictConfig) -> None:
        """Hydra hands a sweep to its launcher as a function to call; ours starts processes instead."""
        raise NotImplementedError

    def conclude(self) -> int:
        """Print how many jobs ended how, and the failed ones; 0 if all are done, else raise as `sweep` says."""
        counts = collections.Counter(outcome.status for outcome in self.outcomes)
        print(f"{len(self.outcomes)} jobs: " + ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s]))
        for status in ("diverged", "failed"):
            for outcome in self.outcomes:
                if outcome.status == status:
                    command = shlex.join(["gpbench", "run", *self.flags, *outcome.overrides])
                    print(f"{status}: {outcome.text}\n  {command}")
        if counts["stopped"]:
            why = self.stop.reason or "a job was stopped"
            raise Stopped(f"{why}; jobs left: {counts['stopped']}; the same command goes on")
        if counts["failed"]:
            raise SweepError(f"{counts['failed']} of {len(self.outcomes)} jobs failed, as listed above")
        if counts["diverged"]:
            raise DivergedError(f"{counts['diverged']} of {len(self.outcomes)} jobs diverged, as listed above")
        return 0

    def _start(self, job: Sequence[str]) -> Child:
        overrides, words = list(job), list(job)
        if (left := self.stop.seconds_left()) is not None:
            words = [word for word in words if not word.startswith("run.time_limit=")]
            words.append(f"run.time_limit={max(left, 0.001):.3f}")
        return Child(overrides, [*self.flags, *words], self.environment)


class ProcessLauncher(Launcher):
    """Hydra's launcher interface to `Jobs`."""

    def setup(self, *, hydra_context: Any, task_function: Any, config: DictConfig) -> None:
        """Keep the sweep's `Jobs`, which come as the task function, and give them the `run` section."""
        self.jobs = task_function
        self.jobs.prepare(OmegaConf.to_container(config.run, resolve=True))

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run the jobs.  Their failures are told at the end of the sweep, and do not reach Hydra."""
        self.jobs.launch(job_overrides)
        return [JobReturn(overrides=job, status=JobStatus.COMPLETED) for job in job_overrides]
