"""Jobs of a sweep as jobs of a Slurm cluster, through submitit: `hydra/launcher=slurm`, and `local` to try it out.
Each runs the same `gpbench run` as a job of this machine does.  Slurm's SIGTERM before the time limit stops it at a
checkpoint, and it is submitted again.  Slurm is asked by squeue, because sacct needs an accounting that not all have.
"""

import contextlib
import dataclasses
import functools
import io
import json
import math
import os
import pickle
import re
import secrets
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import paths
from gpbench.errors import ConfigError, StorageError, require
from gpbench.records.plan import RunPlan
from gpbench.sweep.job import Job, Outcome
from gpbench.sweep.local import Child, Forks, pass_on

_POLL_S = 0.05  # seconds between two looks at the job of this task
_ASK_S = 5.0  # seconds between two looks at Slurm's queue; after two more a shared disk shows a result if there is one
_SHARED = ("timeout_min", "nodes", "tasks_per_node", "gpus_per_node", "cpus_per_task", "mem_gb")
_LARGEST_ARRAY = 1001  # Slurm's own MaxArraySize, for one that does not say what it has
_OF_SLURM = ("partition", "account", "array_parallelism", "setup")


class Cluster:
    """Submits jobs.  `kind` is slurm or local, `settings` those of conf/hydra/launcher, `run` the sweep's section."""

    parting = "the submitted jobs are cancelled; those that run write a checkpoint"

    def __init__(self, kind: str, settings: Mapping[str, Any], flags: Sequence[str], run: Mapping[str, Any]):
        try:
            import submitit
        except ImportError as error:
            install = "pip install -c constraints.txt -e '.[cluster]' in the checkout"
            raise ConfigError(f"hydra/launcher={kind} needs submitit: {install}") from error
        fault = "hydra/launcher=slurm: no sbatch, squeue, scancel and scontrol here"
        mend = "start the sweep where Slurm's commands are, or leave it out to use this machine"
        is_there = kind != "slurm" or all(map(shutil.which, ("sbatch", "squeue", "scancel", "scontrol")))
        require(is_there, f"{fault}; {mend}", ConfigError)
        fault = "hydra.launcher.nodes and tasks_per_node make one run of several processes: add run.processes=cluster"
        several = {settings.get("nodes"), settings.get("tasks_per_node")} - {None, 1}
        require(not several or run["processes"] == "cluster", fault, ConfigError)
        self.flags, self.resubmit, self.pack = flags, settings["resubmit"], settings["pack"]
        tasks = run["jobs"] if kind == "local" else _largest_array()
        self.at_a_time = tasks * self.pack
        self.least = self.pack if kind == "local" else max(1, tasks // 4) * self.pack
        self.queue = _Slurm() if kind == "slurm" else _Local()
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        self.folder = Path(run["results"] or paths.results_dir()).resolve() / "sweeps" / name
        parameters = {key: settings[key] for key in _SHARED if key in settings}
        if kind == "slurm":
            # Not submitit's SIGUSR2: it would kill gpbench, which stops at a SIGTERM.
            more = {**settings["additional"], "signal": f"TERM@{settings['checkpoint_s']}"}
            parameters |= {f"slurm_{key}": settings[key] for key in _OF_SLURM} | {"slurm_additional_parameters": more}
        make_folder(self.folder)
        try:
            self.executor = submitit.AutoExecutor(self.folder, cluster=kind)
            self.executor.update_parameters(name="gpbench", **parameters)
        except (AssertionError, NameError, TypeError, ValueError) as error:
            self.close()
            raise ConfigError(f"hydra.launcher: {error}") from error

    def start(self, jobs: Sequence[Job], running: Sequence["_Submitted"]) -> list["_Submitted"]:
        """Submits jobs at once.  Raises ConfigError: Slurm refuses them."""
        from submitit.core.utils import FailedJobError

        # The time limit is the sweep's, which cancels the jobs then; nobody knows when Slurm starts them.
        unlimited = [job.limited(None) for job in jobs]
        work = [([*self.flags, *job.overrides], job.plan) for job in unlimited]
        packs = [work[start : start + self.pack] for start in range(0, len(work), self.pack)]
        try:
            # submitit prints what it raises, too
            with contextlib.redirect_stderr(io.StringIO()), self.executor.batch():
                tasks = [_Task(self.executor.submit(_run_children, pack), self.queue) for pack in packs]
        except FailedJobError as error:
            raise ConfigError(f"Slurm does not take the jobs: {' '.join(str(error).split())}") from error
        return [_Submitted(job.overrides, tasks[i // self.pack], i % self.pack) for i, job in enumerate(jobs)]

    def cancel(self, running: Sequence["_Submitted"]) -> None:
        """Take back what waits, and let what runs stop at a checkpoint."""
        self.queue.cancel([*{submitted.task.job.job_id for submitted in running}])

    def close(self) -> None:
        """Remove the folder of the sweep if it has no log left to tell of a failure."""
        if not any(self.folder.glob("*_log.*")):
            shutil.rmtree(self.folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # other sweeps have theirs in it
                self.folder.parent.rmdir()


def _run_children(pack: Sequence[tuple[list[str], RunPlan]]) -> str:
    """The outcomes in JSON of one `gpbench run --json WORDS` after another, with the signals passed on: the work of a
    submitted task.  After a signal no other job begins."""
    outcomes, signals = list[Mapping[str, Any]](), list[int]()
    for number in (signal.SIGTERM, signal.SIGUSR2):  # of Slurm, and of submitit's local executor
        signal.signal(number, lambda number, _: signals.append(number))
    with contextlib.closing(Forks()) as forks:
        for words, plan in pack:
            if signals:
                outcomes.append(dataclasses.asdict(Outcome([], "stopped", "not started")))
                continue
            # A server costs the import that it spares the others.
            child, passed = Child([], words, {}, plan=plan, forks=forks if len(pack) > 1 else None), 0
            while not child.ended():
                if len(signals) > passed:
                    child.terminate()
                    passed = len(signals)
                time.sleep(_POLL_S)
            outcomes.append(dataclasses.asdict(child.outcome()))
    return json.dumps(outcomes)


class _Task:
    """A submitted task, which runs one job or more.  Its `line` says how it stands in the queue."""

    def __init__(self, job: Any, queue: "_Slurm | _Local"):
        self.job, self.queue, self.line = job, queue, "submitted"
        self.since = time.monotonic()
        self._read = False

    def ended(self) -> bool:
        if self._read or self.job.paths.result_pickle.exists():
            return True
        state = self.queue.state(self.job, self.since)
        self.line = (state or "ended").lower()
        return state is None

    @functools.cached_property
    def results(self) -> list[dict[str, Any]] | str | None:
        """The outcomes of its jobs, or why all failed; None without a result.  Its files are deleted if none failed."""
        id, path, log = self.job.job_id, self.job.paths.result_pickle, self.job.paths.stderr
        self._read = True
        if not path.exists():
            return None
        try:
            status, result = read_result(path)
            if status == "error":
                return f"{result.strip().splitlines()[-1]}; the log of job {id} is {log}"
            outcomes = [dict(item) for item in json.loads(result)]
            with contextlib.suppress(OSError), open(self.job.paths.stderr, errors="replace") as log:
                for line in log:
                    pass_on(line)
            if all(item["status"] != "failed" for item in outcomes):
                for file in path.parent.glob(f"{id}_*"):
                    file.unlink(missing_ok=True)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            return f"the result of job {id} cannot be read ({error}); its log is {log}"
        return outcomes


class _Submitted:
    """A job of a submitted task.  Its `last_line` says how that stands in the queue."""

    def __init__(self, overrides: list[str], task: _Task, number: int):
        self.overrides, self.task, self._number = overrides, task, number

    @property
    def last_line(self) -> str:
        return self.task.line

    def ended(self) -> bool:
        return self.task.ended()

    def outcome(self, stopping: bool) -> Outcome:
        results, seconds = self.task.results, time.monotonic() - self.task.since
        if results is None and stopping:
            return Outcome(self.overrides, "stopped", "cancelled", seconds)
        id, log = self.task.job.job_id, self.task.job.paths.stderr
        fault = f"job {id} ended without a result (killed, or out of memory or time?); its log is {log}"
        if not isinstance(results, list):
            return Outcome(self.overrides, "failed", results or fault, seconds)
        try:
            return Outcome(**{**results[self._number], "overrides": self.overrides})
        except (IndexError, TypeError) as error:
            text = f"the result of job {id} cannot be read ({error}); its log is {log}"
            return Outcome(self.overrides, "failed", text, seconds)


class _Slurm:
    """Slurm's queue, asked for all jobs of this user at once."""

    def __init__(self) -> None:
        self.last_query = -_ASK_S
        self.states: dict[str, str] = {}
        self.last_states: dict[str, tuple[float, str]] = {}
        self.cancelled = False

    def state(self, job: Any, since: float) -> str | None:
        """PENDING, RUNNING, ... of a job submitted at `since`; None when it has left the queue for a while."""
        now, id = time.monotonic(), job.job_id
        if now - self.last_query >= _ASK_S:
            self._ask(now)
        if id in self.states:
            self.last_states[id] = now, self.states[id]
            return self.states[id]
        last_time, last = self.last_states.setdefault(id, (since, ""))
        no_result = self.cancelled and last == "PENDING"
        return None if no_result or now - last_time > 2 * _ASK_S else "ending"

    def cancel(self, ids: Sequence[str]) -> None:
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
        self.signalled_at: dict[str, float] = {}

    def state(self, job: Any, since: float) -> str | None:
        if job.done():
            return None
        if time.monotonic() - self.signalled_at.get(job.job_id, math.inf) > 1:  # the first may have come too early
            self.cancel([job.job_id])
        return "RUNNING"

    def cancel(self, ids: Sequence[str]) -> None:
        for id in ids:
            self.signalled_at[id] = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(id), signal.SIGTERM)


def _largest_array() -> int:
    """The most tasks of an array that this cluster takes, by its own word."""
    answer = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True)
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", answer.stdout, re.MULTILINE)
    return max(1, int(match[1])) if match else _LARGEST_ARRAY


def make_folder(folder: Path) -> None:
    """Makes a folder that is the user's alone, for submitit's pickles: who can write one can run anything.  Raises
    StorageError: it cannot be made, or others could write into it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        _check_folder(folder)
    except OSError as error:
        mend = "name another results folder with run.results=DIR"
        raise StorageError(f"cannot use the folder {folder}: {error.strerror}; {mend}") from error


def _check_folder(folder: Path) -> None:
    """Raises StorageError unless a folder is the user's alone, and nobody else can put another one in its place."""
    own, user = folder.lstat(), os.geteuid()
    is_own = stat.S_ISDIR(own.st_mode) and own.st_uid == user and not own.st_mode & 0o077
    fault = f"{folder} must be a folder of yours with mode 700, since its files are programs"
    require(is_own, fault, StorageError)
    for above in folder.parents:
        state = above.stat()
        is_open = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not state.st_mode & stat.S_ISVTX
        fault = f"others can write into {above}, and so replace the jobs of a cluster"
        mend = "chmod go-w it, or name a results folder of your own with run.results=DIR"
        require(not is_open and state.st_uid in (0, user), f"{fault}: {mend}", StorageError)


def read_result(path: Path) -> tuple[str, str]:
    """The "success" or "error" of a job of submitit, with the text that it returned or the traceback, from a pickle."""
    _check_folder(path.parent)
    try:
        status, text = _Texts(io.BytesIO(path.read_bytes())).load()
    except Exception as error:  # pickle raises almost any on a damaged file
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if not (isinstance(status, str) and isinstance(text, str)):
        raise ValueError("no texts")
    return status, text


class _Texts(pickle.Unpickler):
    """Reads texts, numbers, lists and tuples.  An object needs the import of its class, which is refused."""

    def find_class(self, module: str, name: str) -> Any:
        """Raises UnpicklingError."""
        raise pickle.UnpicklingError(f"an object of {module}.{name}")
