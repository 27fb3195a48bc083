"""What gpbench says on stderr: the logger `gpbench` of the standard library, to which a program adds its handlers."""

import contextlib
import functools
import logging
import os
import sys

from gpbench.errors import printable, require_known

log = logging.getLogger("gpbench")
_LEVELS = ("debug", "info", "warning", "error")


class _Stderr(logging.Handler):
    """Prints a line for each message on the stderr of the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # a full disk, say: what cannot be told must not end a run
            print(f"gpbench: {self.format(record)}", file=sys.stderr, flush=True)


def _make_printable(record: logging.LogRecord) -> bool:
    """Takes out of a message what no handler should have: line ends, control characters, halves of letters."""
    record.msg, record.args = printable(record.getMessage()), None
    return True


def set_level(level: str | None = None) -> None:
    """Drops what is below a level; by default that of the environment, or info.  Raises ConfigError: it names none."""
    name = (level or os.environ.get("GPBENCH_LOG") or "info").lower()
    require_known(name, _LEVELS, f"GPBENCH_LOG={name}: no such level")
    log.setLevel(name.upper())


def is_quiet() -> bool:
    """Whether only what went wrong is said."""
    return not log.isEnabledFor(logging.INFO)


def warn(text: str) -> None:
    """Says a warning in one line."""
    log.warning("warning: %s", text)


warn_once = functools.cache(warn)
"""The same, once in a process."""


log.addHandler(_Stderr())
log.addFilter(_make_printable)
log.propagate = False  # else a program with a handler of its own would have each line twice
log.setLevel(name.upper() if (name := os.environ.get("GPBENCH_LOG", "").lower()) in _LEVELS else logging.INFO)
