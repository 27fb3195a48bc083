"""Jobs of a sweep in processes of this machine, `run.jobs` at a time, with a GPU for each where there are several."""

import os
import subprocess
from collections.abc import Iterable, Sequence
from typing import Any

from gpbench.sweep.child import Child
from gpbench.sweep.job import Job
from gpbench.train.stop import StopRequest


class Local:
    """Starts jobs as children of this process.  `run` is the sweep's section, `flags` come before every job's words."""

    parting = ""
    resubmit = 0

    def __init__(self, flags: Sequence[str], run: dict[str, Any], stop: StopRequest):
        self.flags, self.stop, self.at_a_time = flags, stop, run["jobs"]
        self.gpus = visible_gpus() if run["jobs"] > 1 and run["device"] != "cpu" else []
        self.shared = run["memory_fraction"] is None and "XLA_PYTHON_CLIENT_MEM_FRACTION" not in os.environ

    def room(self, running: Sequence[Child]) -> int:
        """How many jobs may be started beside those running."""
        return self.at_a_time - len(running)

    def start(self, jobs: Sequence[Job], running: Sequence[Child]) -> list[Child]:
        """Start these jobs."""
        children: list[Child] = []
        for job in jobs:
            remaining = self.stop.seconds_left()
            limited = job if remaining is None else job.limited(max(remaining, 0.001))
            slot = min(set(range(self.at_a_time)) - {child.slot for child in (*running, *children)})
            words, environment = [*self.flags, *limited.overrides], self.environment(slot, job.overrides)
            children.append(Child(job.overrides, words, environment, slot, limited.plan))
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

    def close(self) -> None:
        """Nothing to clear away."""

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
