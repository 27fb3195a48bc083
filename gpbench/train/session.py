"""Training of a job in this process: JAX is configured, then imported, then what needs it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from gpbench import runtime
from gpbench.config.values import Run
from gpbench.errors import PeerError
from gpbench.records.locks import claim
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train.stop import StopRequest


def configure(run: Run) -> None:
    """Sets JAX up as the `run` section says; call it before anything imports JAX or NumPy."""
    peers = runtime.peers()
    memory, cores = run["memory_fraction"], run["cores"]
    devices = (run["devices"] or 1) // (peers[2] if peers else 1)
    runtime.configure(device=run["device"], memory_fraction=memory, devices=devices, cores=cores)


def train(plan: RunPlan, *, store: Store, stop: StopRequest) -> tuple[list[Record], int]:
    """Trains and records the runs of a plan that are not recorded: all records of the plan, [] in a process for which
    another one speaks, and how many existed before.  Raises ClaimedError, and PeerError where a peer is gone."""
    run = plan.cfg["run"]
    joins = bool(runtime.peers()) or run["processes"] == "cluster"
    if not joins and len(known := plan.recorded(store)) == len(plan.runs):  # without JAX, whose import takes seconds
        return list(known.values()), len(known)
    rank, count = runtime.start(run["device"], joins=joins)

    from gpbench.core.memory import release_programs
    from gpbench.train import progress
    from gpbench.train.job import run_job

    leads = rank == 0
    display = progress.make(run["progress"] and leads)
    try:
        # Processes that join are claimed for by the one that started them; a cluster's start at once.
        own = nullcontext() if joins else claim(plan.results, [run.id for run in plan.missing(store)])
        with _stdout_to_stderr() if count > 1 else nullcontext(), own:
            recorded = len(plan.recorded(store))  # while the claim is held: another process may just have ended
            records = run_job(plan, store=store, progress=display, stop=stop)
        release_programs()
    except RuntimeError as error:
        if count == 1 or not runtime.is_of_jax(error):
            raise
        # What else fails in a run of several processes fails in each of them, and in some of them first.
        reason, mend = str(error).partition("\n")[0][:200], "run the same command to resume from the last checkpoint"
        raise PeerError(f"the processes of this run lost contact ({reason}); {mend}") from error
    return (records, recorded) if leads else ([], 0)


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Sends what libraries in C print (Gloo: its connections) to stderr."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
