"""Processes of this machine that run jobs, forked or started from nothing, and those of a run with `run.processes=P`,
of which GPBENCH_PEERS says which one each is; none outlives its parent."""

import contextlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from gpbench import runtime
from gpbench.config.values import Run
from gpbench.errors import ConfigError, PeerError, Stopped, require
from gpbench.log import warn_once
from gpbench.records.plan import RunPlan
from gpbench.sweep.child import signals_blocked
from gpbench.sweep.job import Outcome, judge
from gpbench.train.stop import StopRequest

_SHARED = ("device", "memory_fraction", "devices", "cores")
"""Settings of a `run` section that are made before the import of JAX."""
_LOST = "gpbench: warning: run.log="
"""The beginning of a job's line about a tracker that it goes on without, which jobs of one sweep have in common."""


class Child:
    """A running job; `overrides` name it to the user, `slot` is its number among those that run at a time."""

    def __init__(
        self,
        overrides: list[str],
        words: Sequence[str],
        environment: Mapping[str, str],
        slot: int = 0,
        *,
        plan: RunPlan,
        forks: "Forks | None" = None,
    ):
        self.overrides, self.slot, self.last_line, self._printed = overrides, slot, "", ""
        self._started = time.monotonic()
        words, content = ["--json", "--plan", *words], plan.to_json().encode()
        forked = forks.start(plan.cfg["run"], content, words, environment) if forks else None
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "errors": "replace"}
        self.process = forked or _start_run(content, words, environment, **pipes)
        streams = ((self.process.stdout, "_printed"), (self.process.stderr, "last_line"))
        self._readers = [threading.Thread(target=self._drain, args=pair, daemon=True) for pair in streams]
        for reader in self._readers:
            reader.start()

    def ended(self) -> bool:
        return self.process.poll() is not None

    def terminate(self) -> None:
        """Ask it to stop at a checkpoint."""
        self.process.send_signal(signal.SIGTERM)

    def outcome(self, stopping: bool = False) -> Outcome:
        """Waits for the process; its outcome, which already says whether it was stopped."""
        code = self.process.wait()
        for reader in self._readers:
            reader.join(timeout=1)  # a grandchild may hold the pipe
        seconds = time.monotonic() - self._started
        return Outcome(self.overrides, *judge(code, self.last_line, self._printed), seconds)

    def _drain(self, stream: Iterable[str], name: str) -> None:
        for line in stream:
            pass_on(line)
            setattr(self, name, line.strip() or getattr(self, name))


def pass_on(line: str) -> None:
    """Says once what several jobs of a sweep say of a tracker."""
    if line.startswith(_LOST):
        warn_once(line.partition("warning: ")[2].strip())


@contextlib.contextmanager
def _file_of(content: bytes) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _start_run(
    content: bytes, words: Sequence[str], environment: Mapping[str, str], **streams: Any
) -> subprocess.Popen:
    """Starts `gpbench run WORDS`, with this content as its stdin, as a process that dies with this one."""
    with _file_of(content) as stdin, signals_blocked():
        return subprocess.Popen(
            [sys.executable, "-m", "gpbench.sweep.child", str(os.getpid()), "run", *words],
            stdin=stdin,
            env={**os.environ, **environment},
            start_new_session=True,  # a Ctrl-C on the terminal reaches the parent alone, which passes it on once
            **streams,
        )


class Forks:
    """The servers (`gpbench.cli.server`) that fork jobs: one for each choice of settings before the import of JAX."""

    def __init__(self) -> None:
        self._servers: dict[str, _Server] = {}

    def start(
        self, run: Mapping[str, Any], content: bytes, words: Sequence[str], environment: Mapping[str, str]
    ) -> "_Forked | None":
        """The process of `gpbench run WORDS`, forked; None for several processes, off Linux, without a server."""
        if sys.platform != "linux" or "GPBENCH_PEERS" in os.environ or run["processes"] != 1:
            return None
        key = json.dumps({name: run[name] for name in _SHARED})
        if key not in self._servers or self._servers[key].is_gone:
            self._servers[key] = _Server(key)
        try:
            return _Forked(self._servers[key], content, words, environment)
        except OSError:
            return None

    def close(self) -> None:
        for server in self._servers.values():
            server.close()


class _Server:
    """A server for jobs with the settings in the text `run`."""

    def __init__(self, run: str):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, signals_blocked():
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpbench.cli.server", str(os.getpid()), str(theirs.fileno()), run],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # as jobs have one
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.count, self.is_gone = 0, False
        self._codes: dict[int, int] = {}

    def code(self, job: int, *, waits: bool) -> int | None:
        """The exit code of a job, negative where a signal killed it; None while it runs, unless this `waits` for it."""
        while job not in self._codes and not self.is_gone:
            if not waits and not select.select([self.socket], [], [], 0)[0]:
                return None
            answer = b""
            with contextlib.suppress(OSError):
                answer = self.socket.recv(1024)
            self._codes |= [json.loads(answer)] if answer else []
            self.is_gone = not answer
        return self._codes[job] if job in self._codes else self._process.wait()  # its jobs die with the server

    def close(self) -> None:
        """Lets it end with its last job."""
        self.socket.close()
        if self.is_gone or len(self._codes) == self.count:
            self._process.wait()
        self.is_gone = True


class _Forked:
    """A forked job, as a `subprocess.Popen` with pipes of text.  Raises OSError where the server cannot be reached."""

    def __init__(self, server: _Server, content: bytes, words: Sequence[str], environment: Mapping[str, str]):
        self._server, self._job = server, server.count
        pipes = [os.pipe(), os.pipe()]
        self.stdout, self.stderr = (os.fdopen(read_end, errors="replace") for read_end, _ in pipes)
        try:
            with _file_of(content) as stdin:
                streams = [stdin.fileno(), *(write_end for _, write_end in pipes)]
                message = json.dumps([self._job, ["run", *words], dict(environment)]).encode()
                socket.send_fds(server.socket, [message], streams)
            server.count += 1
        finally:
            for _, write_end in pipes:
                os.close(write_end)

    def poll(self) -> int | None:
        return self._server.code(self._job, waits=False)

    def wait(self) -> int:
        code = self._server.code(self._job, waits=True)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            self._server.socket.send(json.dumps([self._job, number]).encode())


def core_numbers(slot: int, count: int) -> str:
    """So many cores of a slot, as GPBENCH_CORES has them: other slots have others, as long as there are enough."""
    available = runtime.available_cores()
    numbers = {available[(slot * count + i) % len(available)] for i in range(count if available else 0)}
    return ",".join(map(str, sorted(numbers)))


_POLL_S = 0.05
_GRACE_S = 5.0  # seconds that the others may take to end by themselves after one has


def needs_several(run: Run) -> bool:
    """True if a `run` section asks this process to start workers, and it is not one itself."""
    return run["processes"] not in (1, "cluster") and "GPBENCH_PEERS" not in os.environ


def run_several(plan: RunPlan, *, json: bool) -> int:
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
        first = _start_run(plan.to_json().encode(), ["--plan", *words, *(["--json"] if json else [])], environment(0))
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
