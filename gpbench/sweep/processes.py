"""`run.processes=P`: a run in P processes of this machine, which JAX's distributed runtime joins on loopback.

Each is a `gpbench run` of the same plan, and GPBENCH_PEERS says which one it is.  The first speaks for all of them.
"""

import math
import os
import signal
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from gpbench import runtime
from gpbench.errors import ConfigError, PeerError, Stopped
from gpbench.records.plan import RunPlan
from gpbench.sweep.local import start_run
from gpbench.train.stop import StopRequest

_POLL_S = 0.05
_GRACE_S = 5.0
"""Seconds that the others may take to end by themselves after one has."""


def needed(run: Mapping[str, Any]) -> bool:
    """True if a `run` section asks this process to start workers, and it is not one itself."""
    return run["processes"] not in (1, "cluster") and "GPBENCH_PEERS" not in os.environ


def run(plan: RunPlan, *, json: bool) -> int:
    """Starts the workers of a plan and waits for them.  Returns the exit code of the first worker.  Raises ConfigError:
    the devices cannot be shared equally, or there are too few cores; PeerError: a worker was killed or hangs; the
    others are killed then too; Stopped: a signal asked to stop.
    """
    count = plan.cfg["run"]["processes"]
    devices = plan.cfg["run"]["devices"] or count
    if devices % count:
        raise ConfigError(f"run.devices={devices} cannot be shared equally by run.processes={count}")
    runtime.require_cores(plan.cfg["run"]["cores"])
    words = [f"--config-dir={folder}" for folder in plan.cfg["config_dirs"]] + ["--json"] * json
    plan = plan.with_run(devices=devices)
    address = f"127.0.0.1:{_free_port()}"
    with StopRequest() as stop, tempfile.TemporaryDirectory() as folder:
        workers = [_Worker(i, count, devices // count, address, words, plan, folder) for i in range(count)]
        try:
            return _watch(workers, stop)
        finally:
            for worker in workers:
                worker.kill()


class _Worker:
    """One of the processes.  What all but the first print goes to a log, for the error of one that fails alone."""

    def __init__(
        self, index: int, count: int, devices: int, address: str, words: Sequence[str], plan: RunPlan, folder: str
    ):
        self.index, self.log = index, Path(folder) / str(index)
        local = range(index * devices, (index + 1) * devices)
        environment = {"GPBENCH_PEERS": f"{address},{index},{count}", "JAX_LOCAL_DEVICE_IDS": ",".join(map(str, local))}
        output: IO[bytes] | None = self.log.open("wb") if index else None
        cores = _share(index, count, plan.cfg["run"]["cores"])
        self.process = start_run(plan, ["--plan", *words], environment, cores, stdout=output, stderr=output)
        if output:
            output.close()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def last_words(self) -> str:
        """The last line that it printed."""
        lines = self.log.read_text(errors="replace").split("\n") if self.index else []
        return next((line.removeprefix("gpbench: ") for line in reversed(lines) if line.strip()), "")


def _watch(workers: Sequence[_Worker], stop: StopRequest) -> int:
    signalled = False
    while not (ended := [worker for worker in workers if worker.process.poll() is not None]):
        if not signalled and stop.reason:
            signalled = True
            for worker in workers:
                worker.process.send_signal(signal.SIGTERM)
        time.sleep(_POLL_S)
    stopped = all(worker.process.returncode == Stopped.exit_code for worker in ended)
    limit = time.monotonic() + (math.inf if stopped else _GRACE_S)  # the first one writes a checkpoint
    killed = [worker for worker in ended if worker.process.returncode < 0]
    while not killed and any(worker.process.poll() is None for worker in workers) and time.monotonic() < limit:
        time.sleep(_POLL_S)
    first, *others = workers
    for worker in killed or [worker for worker in others if worker.process.poll()]:
        if first.process.poll() and not killed:  # it has said why
            break
        code = worker.process.returncode
        reason = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"failed: {worker.last_words()}"
        raise PeerError(
            f"process {worker.index} of {len(workers)} {reason};"
            " run the same command to resume from the last checkpoint"
        )
    code = first.process.poll()
    if code is None or code < 0:
        raise PeerError(f"process 0 of {len(workers)} hangs after the others ended; run the same command to resume")
    return code


def _share(index: int, count: int, cores: int | None) -> set[int] | None:
    """The cores of one worker: its own, as long as there are enough."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    all_cores = sorted(os.sched_getaffinity(0))
    each = min(cores or max(1, len(all_cores) // count), len(all_cores))
    return {all_cores[(index * each + i) % len(all_cores)] for i in range(each)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
