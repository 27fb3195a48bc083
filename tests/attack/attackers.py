"""Calls as a user makes them, in this process, and what every answer must be: a result, or one line and a code."""

import contextlib
import hashlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from gpbench import cli

FULL = os.environ.get("GPBENCH_ATTACK") == "full"
"""Whether the attack is the weekly one; `python tests/attack --full` sets the variable."""

LONGEST = 2000
"""Characters of a line that still says one thing."""


class TooSlow(BaseException):
    """A call that did not end; not an Exception, which the called might handle."""


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TooSlow where the block takes longer."""

    def late(*_):
        raise TooSlow(f"no end within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def call(*words: object, seconds: int = 120) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command in this process, whose path and environment stay as they were."""
    path, environment = list(sys.path), dict(os.environ)
    try:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), within(seconds):
            code = cli.main([str(word) for word in words])
    finally:
        sys.path[:] = path
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
    return code, out.getvalue(), err.getvalue()


def fault(code: int, err: str) -> str:
    """What is wrong with an answer; "" where it is a result without a word on stderr, or one line and a code.

    The line about a file that was saved is no such word.
    """
    if code == 0:
        lines = [line for line in err.splitlines() if not line.startswith("gpbench: saved in ")]
        return f"done, and says {lines}" if lines else ""
    if not err.startswith("gpbench: ") or err.count("\n") != 1 or not err[:-1].isprintable():
        return f"code {code} with {err[:LONGEST]!r}"
    return f"{len(err)} characters" if len(err) > LONGEST else ""


def contents(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
