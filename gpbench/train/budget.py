"""A budget of CPU seconds for one run, and how many steps still fit into it.  They are the sum over all threads, user
and system, from the start of the process to the predictions of the test rows: another process on the same cores hardly
changes them, and a method gains nothing by keeping more cores busy."""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import jax

from gpbench.errors import ConfigError, require
from gpbench.records.absences import is_late

_SEARCH = 0.3  # share of the seconds left for training that its searches may take
_CHUNK = 0.5  # share of the seconds left that the next chunk of steps may take, at the highest cost of a step so far
_POLL_S = 0.1


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Budget:
    """A budget of CPU seconds of this process."""

    def __init__(self, seconds: float, clock: Callable[[], float] = cpu_seconds):
        device = jax.default_backend()
        fault = f"run.budget counts CPU seconds, and JAX computes on a {device}: add run.device=cpu"
        require(device == "cpu", fault, ConfigError)
        self.seconds, self.clock = seconds, clock

    @property
    def seconds_left(self) -> float:
        """CPU seconds left, negative when they are over."""
        return self.seconds - self.clock()

    @property
    def is_over(self) -> bool:
        """True where predictions would be too late to count."""
        return is_late(self.clock(), self.seconds)

    @contextmanager
    def enforced(self, end: Callable[[], None]) -> Iterator[None]:
        """Calls `end` in a thread as soon as the budget is over, even while a compiled call holds the main thread."""
        over = threading.Event()

        def watch() -> None:
            while not self.is_over:  # asked before the first wait: a short run may be over before its second
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


class Pace:
    """Numbers of steps that still fit into a budget beside the predictions of the test rows, which cost `reserve`
    seconds."""

    def __init__(self, budget: Budget, reserve: float):
        self._budget, self._reserve = budget, reserve
        self._cost, self._last = 0.0, 0

    @property
    def _seconds_left(self) -> float:
        return self._budget.seconds_left - self._reserve

    def affordable(self, most: int) -> int:
        """Number of steps of the next chunk, at most twice the last one's; 0 where none fits."""
        if self._cost > self._seconds_left:
            return 0
        fitting = int(_CHUNK * self._seconds_left / self._cost) if self._cost else 1
        return min(max(1, fitting), 2 * self._last or 1, most)

    def trial_steps(self, candidates: int, most: int) -> int:
        """Number of steps of each trial of a search, with the share of the seconds that it may take."""
        return max(1, min(most, int(_SEARCH * self._seconds_left / (self._cost * max(1, candidates)))))

    @contextmanager
    def measured(self, steps: int) -> Iterator[None]:
        """Takes what happens inside for the cost of this many steps."""
        start = self._budget.clock()
        yield
        self._cost, self._last = max(self._cost, (self._budget.clock() - start) / steps), steps
