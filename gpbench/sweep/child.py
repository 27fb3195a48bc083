"""One job of a sweep: a `gpbench run` in a process of its own, that does not outlive its parent."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import IO

from gpbench.records.plan import RunPlan
from gpbench.sweep.outcome import Ended, Outcome

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Child:
    """A running job.  `words` are the command line after `gpbench run`, `overrides` what names the job to the user.

    `environment` is added to ours; `slot` is its number among the jobs that run at a time.  With a `plan` the job
    does not compose its configuration again.
    """

    def __init__(
        self,
        overrides: list[str],
        words: Sequence[str],
        environment: Mapping[str, str],
        slot: int = 0,
        plan: RunPlan | None = None,
    ):
        self.overrides, self.slot = overrides, slot
        self.last_line = ""
        self._started = time.monotonic()
        with plan_file(plan) as stdin:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpbench", "run", "--json", *["--plan"] * bool(plan), *words],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={**os.environ, **environment},
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
        """What became of an ended job; `stopping` as of `Ended.judged`."""
        return self.how_it_ended().judged(self.overrides, stopping)

    def how_it_ended(self) -> Ended:
        """How the process ended; waits for it."""
        code = self._process.wait()
        for reader in self._readers:
            reader.join(timeout=1)  # a grandchild may hold the pipe
        printed = self._output[-1] if self._output else ""
        return Ended(code, self.last_line, printed, time.monotonic() - self._started)

    def _remember(self, line: str) -> None:
        self.last_line = line.strip() or self.last_line


def plan_file(plan: RunPlan | None) -> IO[bytes]:
    """What `gpbench run --plan` reads from stdin; an empty file for None."""
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(plan.to_json().encode() if plan else b"")
    file.seek(0)
    return file


def _drain(stream: Iterable[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line)


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
