"""`run.processes=P`: a run in P processes of this machine, of which GPBENCH_PEERS says which one each is."""

import math
import os
import signal
import socket
import time
from collections.abc import Sequence
from typing import Any

from gpbench import runtime
from gpbench.config.values import Run
from gpbench.errors import ConfigError, PeerError, Stopped, require
from gpbench.records.plan import RunPlan
from gpbench.sweep.local import Child, core_numbers, start_run
from gpbench.train.stop import StopRequest

_POLL_S = 0.05
_GRACE_S = 5.0  # seconds that the others may take to end by themselves after one has


def needed(run: Run) -> bool:
    """True if a `run` section asks this process to start workers, and it is not one itself."""
    return run["processes"] not in (1, "cluster") and "GPBENCH_PEERS" not in os.environ


def run(plan: RunPlan, *, json: bool) -> int:
    """Starts the processes of a plan and waits for them; the exit code of the first."""
    count = plan.cfg["run"]["processes"]
    devices = plan.cfg["run"]["devices"] or count
    fault = f"run.devices={devices} cannot be shared equally by run.processes={count}"
    require(devices % count == 0, fault, ConfigError)
    runtime.require_cores(plan.cfg["run"]["cores"])
    words = [f"--config-dir={folder}" for folder in plan.cfg["config_dirs"]]
    plan = plan.with_run(devices=devices)
    address, each = f"127.0.0.1:{_free_port()}", devices // count
    cores = plan.cfg["run"]["cores"] or max(1, len(runtime.available_cores()) // count)

    def environment(index: int) -> dict[str, str]:
        local = range(index * each, (index + 1) * each)
        facts = {"GPBENCH_PEERS": f"{address},{index},{count}", "JAX_LOCAL_DEVICE_IDS": ",".join(map(str, local))}
        return {**facts, "GPBENCH_CORES": core_numbers(index, cores)}

    with StopRequest() as stop:
        first = start_run(plan.to_json().encode(), ["--plan", *words, *(["--json"] if json else [])], environment(0))
        others = [Child([], words, environment(i), plan=plan) for i in range(1, count)]
        processes = [first, *(child.process for child in others)]
        try:
            return _watch(processes, others, stop)
        finally:
            for process in processes:
                process.send_signal(signal.SIGKILL)
                process.wait()


def _watch(processes: Sequence[Any], others: Sequence[Child], stop: StopRequest) -> int:
    """The exit code of the first process, whose output is ours; what the others say is for the error of one of them."""
    signalled = False
    while not (ended := [process for process in processes if process.poll() is not None]):
        if not signalled and stop.reason:
            signalled = True
            for process in processes:
                process.send_signal(signal.SIGTERM)
        time.sleep(_POLL_S)
    stopped = all(process.returncode == Stopped.exit_code for process in ended)
    limit = time.monotonic() + (math.inf if stopped else _GRACE_S)  # the first one writes a checkpoint
    killed = [process for process in ended if process.returncode < 0]
    while not killed and any(process.poll() is None for process in processes) and time.monotonic() < limit:
        time.sleep(_POLL_S)
    code = processes[0].poll()
    for process in killed or [process for process in processes[1:] if process.poll()]:
        if code and not killed:  # it has said why
            break
        index, of_all = processes.index(process), f"of {len(processes)}"
        if process.returncode < 0:
            reason = f"was killed by {signal.Signals(-process.returncode).name}"
        else:
            reason = f"failed: {others[index - 1].outcome().text}"
        raise PeerError(f"process {index} {of_all} {reason}; run the same command to resume from the last checkpoint")
    if code is None or code < 0:
        raise PeerError(f"process 0 of {len(processes)} hangs after the others ended; run the same command to resume")
    return code


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
