"""Jobs of a sweep as jobs of a Slurm cluster, through submitit: `hydra/launcher=slurm`, and `local` to try it out.

Each runs the same `gpbench run` as a job of this machine does.  Slurm's SIGTERM before the time limit stops it at a
checkpoint, and it is submitted again.  Slurm is asked by squeue, because sacct needs an accounting that not all have.
"""

import contextlib
import dataclasses
import io
import json
import math
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError
from gpbench.records.plan import RunPlan
from gpbench.sweep import private
from gpbench.sweep.job import Ended, Job, Outcome
from gpbench.sweep.local import Child

_ASK_S = 5.0
"""Seconds between two looks at Slurm's queue; after two more a shared disk shows a result if there is one."""
_SHARED = ("timeout_min", "gpus_per_node", "cpus_per_task", "mem_gb")
_OF_SLURM = ("partition", "account", "array_parallelism", "setup")


class Cluster:
    """Submits jobs.  `kind` is slurm or local, `settings` those of conf/hydra/launcher, `run` the sweep's section.

    Raises ConfigError where submitit or Slurm is not there, or a setting is not one of theirs.
    """

    parting = "the submitted jobs are cancelled; those that run write a checkpoint"

    def __init__(self, kind: str, settings: Mapping[str, Any], flags: Sequence[str], run: Mapping[str, Any]):
        try:
            import submitit
        except ImportError as error:
            install = "pip install -c constraints.txt -e '.[cluster]' in the checkout"
            raise ConfigError(f"hydra/launcher={kind} needs submitit: {install}") from error
        if kind == "slurm" and not all(map(shutil.which, ("sbatch", "squeue", "scancel"))):
            raise ConfigError(
                "hydra/launcher=slurm: no sbatch, squeue and scancel here; start the sweep where Slurm's"
                " commands are, or leave it out to use this machine"
            )
        self.flags, self.resubmit = flags, settings["resubmit"]
        self.at_a_time = run["jobs"] if kind == "local" else sys.maxsize
        self.queue = _Slurm() if kind == "slurm" else _Local()
        results = Path(run["results"] or paths.results_dir())
        sweep = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        self.folder = results.resolve() / "sweeps" / sweep
        parameters = {key: settings[key] for key in _SHARED if key in settings}
        if kind == "slurm":
            # Not submitit's SIGUSR2: it would kill gpbench, which stops at a SIGTERM.
            more = {**settings["additional"], "signal": f"TERM@{settings['checkpoint_s']}"}
            parameters |= {f"slurm_{key}": settings[key] for key in _OF_SLURM} | {"slurm_additional_parameters": more}
        private.make_folder(self.folder)
        try:
            self.executor = submitit.AutoExecutor(self.folder, cluster=kind)
            self.executor.update_parameters(name="gpbench", **parameters)
        except (AssertionError, NameError, TypeError, ValueError) as error:
            self.close()
            raise ConfigError(f"hydra.launcher: {error}") from error

    def room(self, running: Sequence["Submitted"]) -> int:
        """Number of further jobs that may be submitted."""
        return self.at_a_time - len(running)

    def start(self, jobs: Sequence[Job], running: Sequence["Submitted"]) -> list["Submitted"]:
        """Submits jobs at once.  Returns the submitted jobs.  Raises ConfigError: slurm refuses them."""
        from submitit.core.utils import FailedJobError

        # The time limit is the sweep's, which cancels the jobs then; nobody knows when Slurm starts them.
        unlimited = [job.limited(None) for job in jobs]
        try:
            # submitit prints what it raises, too
            with contextlib.redirect_stderr(io.StringIO()), self.executor.batch():
                submitted = [self.executor.submit(Task([*self.flags, *job.overrides], job.plan)) for job in unlimited]
        except FailedJobError as error:
            raise ConfigError(f"Slurm does not take the jobs: {' '.join(str(error).split())}") from error
        return [Submitted(job.overrides, handle, self.queue) for job, handle in zip(jobs, submitted)]

    def cancel(self, running: Sequence["Submitted"]) -> None:
        """Take back what waits, and let what runs stop at a checkpoint."""
        self.queue.cancel([submitted.id for submitted in running])

    def close(self) -> None:
        """Remove the folder of the sweep if it has no log left to tell of a failure."""
        if not any(self.folder.glob("*_log.*")):
            shutil.rmtree(self.folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # other sweeps have theirs in it
                self.folder.parent.rmdir()


class Task:
    """The work of a submitted job: `gpbench run --json WORDS`, with the signals passed on."""

    def __init__(self, words: list[str], plan: RunPlan | None):
        self.words, self.plan = words, plan

    def __call__(self) -> str:
        """Run it to its end; returns the fields of an `Ended` in JSON."""
        child = Child([], self.words, {}, plan=self.plan)
        for number in (signal.SIGTERM, signal.SIGUSR2):  # of Slurm, and of submitit's local executor
            signal.signal(number, lambda *_: child.terminate())
        return json.dumps(dataclasses.asdict(child.how_it_ended()))


class Submitted:
    """A submitted job.  Its `last_line` says how it stands in the queue."""

    def __init__(self, overrides: list[str], job: Any, queue: "_Slurm | _Local"):
        self.overrides, self.queue, self.id = overrides, queue, job.job_id
        self.result, self.log = job.paths.result_pickle, job.paths.stderr
        self.last_line = "submitted"
        self._since = time.monotonic()
        queue.watch(job)

    def ended(self) -> bool:
        """True if its result is there, or it has left the queue without one."""
        if self.result.exists():
            return True
        state = self.queue.state(self.id, self._since)
        self.last_line = (state or "ended").lower()
        return state is None

    def outcome(self, stopping: bool) -> Outcome:
        """Its outcome; the files of one that went well are deleted."""
        seconds = time.monotonic() - self._since
        if not self.result.exists():
            if stopping:
                return Outcome(self.overrides, "stopped", "cancelled", seconds)
            reason = f"job {self.id} ended without a result (killed, or out of memory or time?); its log is {self.log}"
            return Outcome(self.overrides, "failed", reason, seconds)
        try:
            status, result = private.read_result(self.result)
            ended = None if status == "error" else Ended(**json.loads(result))
        except (TypeError, ValueError) as error:
            reason = f"the result of job {self.id} cannot be read ({error}); its log is {self.log}"
            return Outcome(self.overrides, "failed", reason, seconds)
        if ended is None:
            last = str(result).strip().rpartition("\n")[2]
            return Outcome(self.overrides, "failed", f"{last}; the log of job {self.id} is {self.log}", seconds)
        judged = ended.judged(self.overrides)
        if judged.status != "failed":
            for path in self.result.parent.glob(f"{self.id}_*"):
                path.unlink(missing_ok=True)
        return judged


class _Slurm:
    """Slurm's queue, asked for all jobs of this user at once."""

    def __init__(self) -> None:
        self.last_query = -_ASK_S
        self.states: dict[str, str] = {}
        self.last_states: dict[str, tuple[float, str]] = {}
        self.cancelled = False

    def watch(self, job: Any) -> None:
        """Nothing to keep: squeue knows all jobs."""

    def state(self, id: str, since: float) -> str | None:
        """PENDING, RUNNING, ... of a job submitted at `since`; None when it has left the queue, and for a while."""
        now = time.monotonic()
        if now - self.last_query >= _ASK_S:
            self._ask(now)
        if id in self.states:
            self.last_states[id] = now, self.states[id]
            return self.states[id]
        last_time, last = self.last_states.setdefault(id, (since, ""))
        no_result = self.cancelled and last == "PENDING"
        return None if no_result or now - last_time > 2 * _ASK_S else "ending"

    def cancel(self, ids: Sequence[str]) -> None:
        """Signal the jobs to end, which Slurm does with SIGTERM first."""
        if ids:
            subprocess.run(["scancel", *ids], capture_output=True)
        self.last_query, self.cancelled = -_ASK_S, True

    def _ask(self, now: float) -> None:
        self.last_query = now
        command = ["squeue", "--me", "--noheader", "--array", "--format=%i %T"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode == 0:
            self.states = dict(line.split() for line in answer.stdout.splitlines())
        else:  # it does not answer just now: all are where they were
            self.last_states = {id: (now, last) for id, (_, last) in self.last_states.items()}


class _Local:
    """The processes of submitit's local executor."""

    def __init__(self) -> None:
        self.jobs: dict[str, Any] = {}
        self.signalled_at: dict[str, float] = {}

    def watch(self, job: Any) -> None:
        """Keep the job, which knows its process."""
        self.jobs[job.job_id] = job

    def state(self, id: str, since: float) -> str | None:
        """ "RUNNING", or None."""
        if self.jobs[id].done():
            return None
        if time.monotonic() - self.signalled_at.get(id, math.inf) > 1:  # the first may have come too early
            self.cancel([id])
        return "RUNNING"

    def cancel(self, ids: Sequence[str]) -> None:
        """Signal the processes to end."""
        for id in ids:
            self.signalled_at[id] = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(id), signal.SIGTERM)
