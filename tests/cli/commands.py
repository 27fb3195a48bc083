"""Starts the command as a user would, with the training job replaced by `fakes/fake_job.py`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import forked

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).parent / "fakes"
RUN = ["run", "--config-dir", str(FAKES / "conf"), "dataset=toy", "method=fake", "protocol=plain"]


def environment(folder: Path, fake: bool = True, **more: str) -> dict[str, str]:
    path = [str(ROOT), *([str(FAKES), str(FAKES / "libraries")] if fake else [])]
    own = {"GPBENCH_RESULTS": str(folder / "results"), "GPBENCH_CACHE": str(folder / "cache")}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **own, **more}


ON_NODE2 = ("unshare", "--uts", "sh", "-c", 'hostname node2 && exec "$@"', "sh")  # as if on another machine; as root


def start(folder: Path, *words: str, fake: bool = True, before: tuple = (), **more: str) -> subprocess.Popen[str]:
    command = [*before, sys.executable, "-m", "gpbench", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment(folder, fake, **more), **pipes)


def gpbench(folder: Path, *words: str, fake: bool = True, timeout: float = 60, **more: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of `gpbench WORDS` in `folder`."""
    if not any(name.startswith("PYTHON") for name in more):  # which Python reads when it starts
        return forked.run(words, folder, environment(folder, fake, **more), timeout)
    process = start(folder, *words, fake=fake, **more)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def first_line(number: signal.Signals) -> str:
    """What stderr says at once of a signal: that of Ctrl-C alone is sent by somebody who waits."""
    said = "stopping at the next checkpoint; Ctrl-C again to end at once\n"
    return said if number == signal.SIGINT else ""


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until `condition` is true; fail after `seconds`, far more than it takes on a machine with other work."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
