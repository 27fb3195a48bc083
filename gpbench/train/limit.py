"""A limit on the CPU seconds of a training, beyond which its runs are recorded as lost.  They are the sum over all
threads, user and system, without compilation: neither another process on the same cores nor a cold cache costs a run.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

from gpbench.errors import ConfigError, require
from gpbench.train.group import compiled_seconds

_POLL_S = 0.1


def spent() -> float:
    """CPU seconds of this process so far, without those of compilation."""
    return time.process_time() - compiled_seconds()


@contextmanager
def enforced(seconds: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Calls `end` in a thread once so many seconds are spent inside, even while a compiled call holds the main thread;
    without a limit never.  Raises ConfigError where JAX does not compute on a CPU."""
    if seconds is None:
        yield
        return
    device = jax.default_backend()
    fault = f"run.cpu_limit counts CPU seconds, and JAX computes on a {device}: add run.device=cpu"
    require(device == "cpu", fault, ConfigError)
    over, last = threading.Event(), spent() + seconds

    def watch() -> None:
        while spent() <= last:
            if over.wait(_POLL_S):
                return
        end()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
