"""A limit on the CPU seconds of a training, beyond which its runs are recorded as lost, and the rate of this machine,
by which those of different machines compare.  They are the sum over all threads, user and system, without compilation:
neither another process on the same cores nor a cold cache costs a run."""

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from gpbench.errors import ConfigError, require
from gpbench.train.group import spent

_POLL_S = 0.1
_SECONDS = 0.0100  # CPU seconds of the work of `machine_rate` on the machine of the first boards, whose rate is 1


@contextmanager
def enforced(seconds: float | None, end: Callable[[], None]) -> Iterator[None]:
    """Calls `end` in a thread once so many seconds are spent inside, even while a compiled call holds the main thread.
    Raises ConfigError where JAX does not compute on a CPU."""
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


@functools.cache
def machine_rate() -> float:
    """How many seconds of the machine of rate 1 a CPU second of this one is worth, by the quickest of seven tries."""
    angles, seconds = np.cos(np.outer(np.arange(256.0), np.arange(256.0))), []
    with threadpool_limits(1):  # idle threads of BLAS spin
        for _ in range(7):
            start = time.process_time()
            for _ in range(3):
                gram = angles @ angles.T + 256.0 * np.eye(256)
                np.linalg.slogdet(np.exp(-gram / 256.0) + gram)
            seconds.append(max(time.process_time() - start, 1e-6))
    return round(_SECONDS / min(seconds), 3)
