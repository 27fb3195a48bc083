"""`python -m gpbench.sweep.child PARENT WORDS`: the command `gpbench WORDS`, which dies with its parent process by
itself.  Signals that ask to stop are blocked until training waits for them."""

import atexit
import contextlib
import ctypes
import os
import runpy
import signal
import sys
from collections.abc import Iterator

from gpbench.train.stop import SIGNALS

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@contextlib.contextmanager
def signals_blocked() -> Iterator[None]:
    """Blocks the signals that ask to stop, here and in processes that are started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def outlive_signals() -> None:
    """Lets signals that ask to stop do nothing but what a `StopRequest` makes of them."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
            atexit.register(signal.signal, number, signal.SIG_IGN)  # Python's end gives them back their own effect


def die_with(parent: int) -> None:
    """Lets Linux kill this process when its parent ends."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # the parent died first
        os._exit(1)


if __name__ == "__main__":
    die_with(int(sys.argv[1]))
    outlive_signals()
    sys.argv[1:] = sys.argv[2:]
    runpy.run_module("gpbench", run_name="__main__")
