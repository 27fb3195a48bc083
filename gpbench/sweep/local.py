"""Jobs in processes of this machine, `run.jobs` at a time, with a GPU for each where there are several.

No process outlives its parent.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpbench import runtime
from gpbench.records.plan import RunPlan
from gpbench.sweep.child import signals_blocked
from gpbench.sweep.forks import Forks
from gpbench.sweep.job import Ended, Job, Outcome
from gpbench.train.stop import StopRequest


class Child:
    """A running job.  `words` are the command line after `gpbench run`, `overrides` what names the job to the user.

    `environment` is added to ours; `slot` is its number among the jobs that run at a time.  With a `plan` the job
    does not compose its configuration again, and with `forks` it need not import JAX.
    """

    def __init__(
        self,
        overrides: list[str],
        words: Sequence[str],
        environment: Mapping[str, str],
        slot: int = 0,
        plan: RunPlan | None = None,
        forks: Forks | None = None,
    ):
        self.overrides, self.slot = overrides, slot
        self.last_line = ""
        self._started = time.monotonic()
        words = ["--json", *["--plan"] * bool(plan), *words]
        self._process = (forks and forks.start(plan, words, environment)) or start_run(
            plan, words, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
        )
        self._output: list[str] = []
        streams = ((self._process.stdout, self._output.append), (self._process.stderr, self._remember))
        self._readers = [threading.Thread(target=_drain, args=pair, daemon=True) for pair in streams]
        for reader in self._readers:
            reader.start()

    def ended(self) -> bool:
        """True if the process is over."""
        return self._process.poll() is not None

    def terminate(self) -> None:
        """Ask it to stop at a checkpoint."""
        self._process.send_signal(signal.SIGTERM)

    def outcome(self, stopping: bool) -> Outcome:
        """Outcome of an ended job, `stopping` or not."""
        return self.how_it_ended().judged(self.overrides)

    def how_it_ended(self) -> Ended:
        """Waits for the process, and describes its end."""
        code = self._process.wait()
        for reader in self._readers:
            reader.join(timeout=1)  # a grandchild may hold the pipe
        printed = self._output[-1] if self._output else ""
        return Ended(code, self.last_line, printed, time.monotonic() - self._started)

    def _remember(self, line: str) -> None:
        self.last_line = line.strip() or self.last_line


def start_run(
    plan: RunPlan | None,
    words: Sequence[str],
    environment: Mapping[str, str],
    cores: set[int] | None = None,
    **streams: Any,
) -> subprocess.Popen:
    """Starts `gpbench run WORDS` as a process that dies with this one."""
    limits = [str(os.getpid()), ",".join(map(str, sorted(cores or ())))]
    with tempfile.TemporaryFile() as stdin, signals_blocked():
        stdin.write(plan.to_json().encode() if plan else b"")
        stdin.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", "gpbench.sweep.child", *limits, "run", *words],
            stdin=stdin,
            env={**os.environ, **environment},
            start_new_session=True,  # a Ctrl-C on the terminal reaches the parent alone, which passes it on once
            **streams,
        )


def _drain(stream: Iterable[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line)


class Local:
    """Starts jobs as children of this process.  `run` is the sweep's section, `flags` come before every job's words."""

    parting = ""
    resubmit = 0

    def __init__(self, flags: Sequence[str], run: dict[str, Any], stop: StopRequest):
        self.flags, self.stop, self.at_a_time, self.forks = flags, stop, run["jobs"], Forks()
        self.gpus = visible_gpus() if run["jobs"] > 1 and run["device"] != "cpu" else []
        self.shared = run["memory_fraction"] is None and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ

    def room(self, running: Sequence[Child]) -> int:
        """Number of jobs that may be started beside those running."""
        return self.at_a_time - len(running)

    def start(self, jobs: Sequence[Job], running: Sequence[Child]) -> list[Child]:
        """Start these jobs."""
        children: list[Child] = []
        for job in jobs:
            remaining = self.stop.seconds_left()
            limited = job if remaining is None else job.limited(max(remaining, 0.001))
            slot = min(set(range(self.at_a_time)) - {child.slot for child in (*running, *children)})
            words, environment = [*self.flags, *limited.overrides], self.environment(slot, job.overrides)
            environment |= self.cores(slot, job.plan)
            children.append(Child(job.overrides, words, environment, slot, limited.plan, self.forks))
        return children

    def environment(self, slot: int, overrides: Iterable[str]) -> dict[str, str]:
        """The environment of the job in this slot: its GPU, and its share of it where jobs share one.

        A job that asks for several devices or processes keeps all GPUs.
        """
        environment, gpus = {}, self.gpus
        if any(word.startswith(("run.devices=", "run.processes=")) for word in overrides):
            gpus = []
        if gpus:
            environment["CUDA_VISIBLE_DEVICES"] = gpus[slot % len(gpus)]
        sharing = -(-self.at_a_time // max(1, len(gpus)))
        if self.shared and sharing > 1:
            environment["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / sharing:.3f}"
        return environment

    def cores(self, slot: int, plan: RunPlan | None) -> dict[str, str]:
        """The variable with the cores of the job in this slot, where it asks for some: other slots have others.

        Slots share cores where there are too few.  The processes of a job with several divide its cores themselves.
        Raises ConfigError where there are too few for one job.
        """
        if plan is None or not (count := plan.cfg["run"]["cores"]) or plan.cfg["run"]["processes"] != 1:
            return {}
        runtime.require_cores(count)
        available = runtime.available_cores()
        numbers = {available[(slot * count + i) % len(available)] for i in range(count)} if available else set()
        return {"GPBENCH_CORES": ",".join(map(str, sorted(numbers)))} if numbers else {}

    def close(self) -> None:
        """Lets the processes end that the jobs were forked from."""
        self.forks.close()

    def cancel(self, running: Sequence[Child]) -> None:
        """Ask the running jobs to stop at a checkpoint."""
        for child in running:
            child.terminate()


def visible_gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; asks nvidia-smi where it is not set."""
    if (value := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in value.split(",") if name.strip() not in ("", "-1", "NoDevFiles")]
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(i) for i, _ in enumerate(line for line in listed.stdout.splitlines() if line.startswith("GPU "))]
