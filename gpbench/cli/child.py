"""One job of a sweep: a `gpbench run` in a process of its own, that does not outlive its parent."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from gpbench.errors import DivergedError, Stopped

_PR_SET_PDEATHSIG = 1  # linux/prctl.h

STATUSES = ("done", "already", "diverged", "failed", "stopped")


@dataclass(frozen=True)
class Outcome:
    """What became of a job.  Of the statuses, "already" means that all its records were there before."""

    overrides: list[str]
    status: str
    text: str
    seconds: float = 0.0


class Child:
    """A running job.  `words` are the command line after `gpbench run`, `overrides` what names the job to the user."""

    def __init__(self, overrides: list[str], words: Sequence[str], environment: Mapping[str, str]):
        self.overrides = overrides
        self.last_line = ""
        self._started = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpbench", "run", "--json", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**environment, **os.environ},
            start_new_session=True,  # a Ctrl-C on the terminal reaches the parent alone, which passes it on once
            preexec_fn=before_start(),
        )
        self._output: list[str] = []
        streams = ((self._process.stdout, self._output.append), (self._process.stderr, self._remember))
        self._readers = [threading.Thread(target=_drain, args=pair, daemon=True) for pair in streams]
        for reader in self._readers:
            reader.start()

    def ended(self) -> bool:
        """Whether the process is over."""
        return self._process.poll() is not None

    def terminate(self) -> None:
        """Ask it to stop at a checkpoint."""
        self._process.send_signal(signal.SIGTERM)

    def outcome(self, stopping: bool) -> Outcome:
        """What became of an ended job.  While `stopping`, a SIGTERM too early for a checkpoint counts as a stop."""
        for reader in self._readers:
            reader.join(timeout=1)  # a grandchild may hold the pipe
        status, text = self._judge(self._process.returncode, stopping)
        return Outcome(self.overrides, status, text, time.monotonic() - self._started)

    def _judge(self, code: int, stopping: bool) -> tuple[str, str]:
        last = self.last_line.removeprefix("gpbench: ")
        if code == Stopped.exit_code or (stopping and code == -signal.SIGTERM):
            return "stopped", last or "before it began"
        if code == DivergedError.exit_code:
            return "diverged", last
        if code < 0:
            name = signal.Signals(-code).name
            return "failed", f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
        if code > 0:
            return "failed", last or f"exit code {code}"
        result = json.loads(self._output[-1])
        return "already" if result["already"] == len(result["records"]) else "done", _scores(result["records"])

    def _remember(self, line: str) -> None:
        self.last_line = line.strip() or self.last_line


def _drain(stream: IO[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line)


def _scores(records: list[dict]) -> str:
    """Each metric's mean over the job's splits."""
    means = []
    for metric in records[0]["metrics"]:
        values = [record["metrics"][metric] for record in records]
        means.append(f"{metric} " + ("not finite" if None in values else f"{sum(values) / len(values):.4g}"))
    return "  ".join(means)


def before_start(cores: set[int] | None = None) -> Callable[[], None] | None:
    """For a child to call before it starts its program: when the parent is killed, Linux kills the child too.

    `cores` are all that the child may use.
    """
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()  # found before the fork: a child may not load libraries

    def arrange() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent died first
            os._exit(1)
        if cores:
            os.sched_setaffinity(0, cores)

    return arrange
