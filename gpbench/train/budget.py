"""A budget of CPU seconds for one run, and the training that ends within it.

CPU seconds are the sum over all threads, user and system, from the start of the process: the interpreter, imports,
data, initial state, compilation, searches, steps and the predictions of the test rows.  Another process on the same
cores hardly changes them, and a method gains nothing by keeping more cores busy.
"""

import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from gpbench.errors import ConfigError, Stopped
from gpbench.records.absences import is_late
from gpbench.train.group import Fit, Group, initial
from gpbench.train.halving import search
from gpbench.train.programs import Programs, lay_out
from gpbench.train.progress import Progress
from gpbench.train.stop import StopRequest

_SEARCH = 0.3
"""Share of the seconds left for training that its searches may take."""
_CHUNK = 0.5
"""Share of the seconds left that the next chunk of steps may take, at the highest cost of a step so far."""
_POLL_S = 0.1


def cpu_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Budget:
    """A budget of CPU seconds of this process.  Raises ConfigError: JAX computes on another device, whose seconds are
    not counted.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = cpu_seconds):
        if (device := jax.default_backend()) != "cpu":
            raise ConfigError(f"run.budget counts CPU seconds, and JAX computes on a {device}: add run.device=cpu")
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


class _Pace:
    """Numbers of steps that still fit, by the highest cost of a step so far.  `reserve`: seconds of the predictions."""

    def __init__(self, budget: Budget, reserve: float):
        self._budget, self._reserve = budget, reserve
        self.cost, self._last = 0.0, 0

    @property
    def seconds_left(self) -> float:
        """CPU seconds left for steps."""
        return self._budget.seconds_left - self._reserve

    def affordable(self, most: int) -> int:
        """Number of steps of the next chunk, at most twice the last one's; 0 where none fits."""
        if self.cost > self.seconds_left:
            return 0
        fitting = int(_CHUNK * self.seconds_left / self.cost) if self.cost else 1
        return min(max(1, fitting), 2 * self._last or 1, most)

    @contextmanager
    def measured(self, steps: int) -> Iterator[None]:
        """Takes what happens inside for the cost of this many steps."""
        start = self._budget.clock()
        yield
        self.cost, self._last = max(self.cost, (self._budget.clock() - start) / steps), steps


def fit_within(
    budget: Budget, programs: Programs, group: Group, *, progress: Progress | None = None, stop: StopRequest
) -> Fit:
    """Trains a group until its method's last step, convergence, or the time when only the predictions fit.

    Test rows are predicted once before the first step, to know what that costs, and once at the end.  There are no
    checkpoints, since a run that is stopped has no budget left to resume with.  Raises Stopped: `stop` has a reason.
    """
    method, progress = programs.method, progress or Progress()
    run = Fit(state=None, over=method.steps == 0, on_part=progress.stage)
    run.state = programs.devices.by_rows(initial(method, group, run), rows=group.X.shape[1])
    on_host, group = group, lay_out(programs.devices, group)
    if not run.over:
        _train(
            _Pace(budget, _prediction_seconds(budget, programs, group, run)),
            programs,
            on_host,
            group,
            run,
            progress,
            stop,
        )
    programs.predict(group, run)
    run.cpu_seconds = budget.clock()
    return run


def _prediction_seconds(budget: Budget, programs: Programs, group: Group, run: Fit) -> float:
    """CPU seconds of the predictions, whose program is compiled before, as that of the steps is."""
    programs.operations(group, run)
    start = budget.clock()
    programs.predict(group, run)
    return budget.clock() - start


def _train(
    pace: _Pace, programs: Programs, on_host: Group, group: Group, run: Fit, progress: Progress, stop: StopRequest
) -> None:
    method = programs.method
    if method.halving and (method.search or method.rates):
        _search(pace, programs, on_host, group, run)
    # one step is taken, however late it is: without any there is no model
    while not run.over and (steps := pace.affordable(method.steps - run.step) or int(run.step == 0)):
        with pace.measured(steps):
            objective, average = programs.advance(group, run, steps)
        _extend(run, objective, average)
        progress.update(run.step, float(np.mean(objective)), {})
        run.over = run.step >= method.steps or (run.converged is not None and all(run.converged))
        if stop.reason and not run.over:
            raise Stopped(
                f"stopped by {stop.reason} at step {run.step} of {method.steps}; run the same command to start anew"
            )


def _search(pace: _Pace, programs: Programs, on_host: Group, group: Group, run: Fit) -> None:
    """The searches of `gpbench.train.halving`, with as many steps of a trial as their share of the seconds allows."""
    method = programs.method
    trial = Fit(jax.tree.map(lambda leaf: leaf.copy(), run.state))  # steps overwrite their state
    with pace.measured(1):
        programs.advance(group, trial, 1)
    candidates = len(method.rates) + int(np.prod([len(values) for _, values in method.search], dtype=int)) * bool(
        method.search
    )
    steps = int(_SEARCH * pace.seconds_left / (pace.cost * max(1, candidates)))
    winner = search(programs, on_host, group, run, trial_steps=max(1, min(method.trial_steps, steps)))
    if winner is not None:
        _extend(run, winner.objective, winner.average)


def _extend(run: Fit, objective: Any, average: Any) -> None:
    """Adds a point to the trace."""
    run.extend({"step": run.step, "seconds": run.seconds["train"], "objective": objective, "objective_mean": average})
