"""Jobs in processes that `gpbench.cli.server` forks: what a sweep needs of `subprocess.Popen`."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from gpbench.records.plan import RunPlan
from gpbench.sweep.child import signals_blocked

_SHARED = ("device", "memory_fraction", "devices", "cores")
"""Settings of a `run` section that are made before the import of JAX."""


class Forks:
    """The servers of a sweep: one for each combination of the settings that are made before the import of JAX."""

    def __init__(self) -> None:
        self._servers: dict[str, _Server] = {}

    def start(self, plan: RunPlan | None, words: Sequence[str], environment: Mapping[str, str]) -> "Forked | None":
        """Starts `gpbench run WORDS`.  Returns the process; None where the job needs one that starts from nothing: off
        Linux, without a plan, with several processes or a budget, which pays for its imports, and where the server is
        gone.
        """
        if (
            sys.platform != "linux"
            or plan is None
            or plan.cfg["run"]["processes"] != 1
            or plan.cfg["run"].get("budget")
            or "GPBENCH_PEERS" in os.environ
        ):
            return None
        key = json.dumps({name: plan.cfg["run"][name] for name in _SHARED})
        if key not in self._servers or self._servers[key].is_gone:
            self._servers[key] = _Server(key)
        try:
            return Forked(self._servers[key], plan, words, environment)
        except OSError:
            return None

    def close(self) -> None:
        """Lets the servers end, each with its last job."""
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
        self.count = 0
        self.is_gone = False
        self._codes: dict[int, int] = {}

    def code(self, job: int, *, waits: bool) -> int | None:
        """The exit code of a job, negative where a signal killed it; None while it runs, unless this `waits` for it."""
        while job not in self._codes and not self.is_gone:
            if not waits and not select.select([self.socket], [], [], 0)[0]:
                return None
            try:
                answer = self.socket.recv(1024)
            except OSError:
                answer = b""
            if answer:
                ended, code = json.loads(answer)
                self._codes[ended] = code
            else:
                self.is_gone = True
        return self._codes[job] if job in self._codes else self._process.wait()  # its jobs die with the server

    def close(self) -> None:
        """Lets it end with its last job."""
        self.socket.close()
        if self.is_gone or len(self._codes) == self.count:
            self._process.wait()
        self.is_gone = True


class Forked:
    """A forked job, as a `subprocess.Popen` with pipes of text.  Raises OSError where the server cannot be reached."""

    def __init__(self, server: _Server, plan: RunPlan, words: Sequence[str], environment: Mapping[str, str]):
        self._server, self._job = server, server.count
        pipes = [os.pipe(), os.pipe()]
        self.stdout, self.stderr = (os.fdopen(read_end, errors="replace") for read_end, _ in pipes)
        try:
            with tempfile.TemporaryFile() as stdin:
                stdin.write(plan.to_json().encode())
                stdin.seek(0)
                streams = [stdin.fileno(), *(write_end for _, write_end in pipes)]
                message = json.dumps([self._job, ["run", *words], dict(environment)]).encode()
                socket.send_fds(server.socket, [message], streams)
            server.count += 1
        finally:
            for _, write_end in pipes:
                os.close(write_end)

    def poll(self) -> int | None:
        """The exit code, negative where a signal killed it; None while it runs."""
        return self._server.code(self._job, waits=False)

    def wait(self) -> int:
        """Waits for the end; returns the exit code."""
        code = self._server.code(self._job, waits=True)
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal to the process, unless it has ended."""
        if self.poll() is None:
            self._server.socket.send(json.dumps([self._job, number]).encode())
