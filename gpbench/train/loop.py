"""The training loop: chunks of steps, evaluation between them, checkpoints, and an end where training is stopped.  With
several processes each of them runs this loop, and all take the same turns."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpbench.core import memory
from gpbench.errors import Stopped
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices
from gpbench.train.group import Fit, Group, Predictions, initial
from gpbench.train.programs import Programs, lay_out
from gpbench.train.progress import Progress
from gpbench.train.search import Point, search
from gpbench.train.stop import StopRequest

_Score = Callable[[Predictions], dict[str, np.ndarray]]  # makes metrics of predictions, one for each member
_Follow = Callable[[int, np.ndarray, Mapping[str, np.ndarray]], None]  # takes step, objectives and metrics of a point

_KEPT = ("step", "over", "seconds", "cpu_seconds", "converged")  # what a checkpoint has of a fit beside its state
_LARGE = 0.25e9  # the bytes from which a run says what it takes, before its first step


@dataclass(frozen=True)
class Cadence:
    """Steps between evaluations, None for `_spacing`; seconds between checkpoints, None for none but at a stop."""

    trace_every: int | None = 10
    checkpoint_every: float | None = 60.0


def _spacing(steps: int, operations: tuple[float, float] | None) -> int:
    """Number of steps between two evaluations: a hundredth of all, at least 10, doubled until an evaluation takes at
    most half of the operations of the steps before it, which are as many on every machine."""
    every = max(10, steps // 100)
    step, evaluation = operations or (0.0, 0.0)
    while every < steps and every * step < 2.0 * evaluation:
        every *= 2
    return every


def fit(
    programs: Programs,
    group: Group,
    *,
    cadence: Cadence,
    score: _Score = lambda predictions: {},
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
    follow: _Follow = lambda step, objective, metrics: None,
    stop: StopRequest | None = None,
) -> Fit:
    """Trains a group to its method's last step, from its last checkpoint if there is one.  Raises Stopped."""
    method, devices = programs.method, programs.devices
    progress, stop = progress or Progress(), stop or StopRequest()
    run = _begin(programs, group, checkpoint, progress)
    on_host, group = group, lay_out(devices, group)
    if not run.over and (workspace := programs.memory(group, run) or 0) >= _LARGE:
        progress.note(f"memory: {memory.amount(workspace)} for state, data and a step's work")
    # before the first step both programs are compiled: what is wrong with predictions is said before any work
    operations = None if run.over else programs.operations(group, run)
    trace_every = cadence.trace_every or _spacing(method.steps, operations)
    saved_at, point = time.monotonic(), None
    if (method.search or method.rates) and run.step == 0 and not run.over:
        point = search(programs, on_host, group, run, method.trial_steps)
    while not run.over:
        if point is None:
            steps = min(trace_every, method.steps - run.step)
            point = *programs.advance(group, run, steps), group.total
        objective, metrics = _extend(programs, group, run, point, score)
        follow(run.step, objective, metrics)
        progress.update(run.step, float(np.mean(objective)), {k: float(np.mean(v)) for k, v in metrics.items()})
        point = None
        diverged = not np.isfinite(objective).any() and not np.isfinite(run.predictions["log_prob"]).any()
        run.over = run.step >= method.steps or diverged or (run.converged is not None and all(run.converged))
        reason = None if run.over else stop.reason
        is_late = cadence.checkpoint_every is not None and time.monotonic() - saved_at > cadence.checkpoint_every
        stopped, due = devices.any(bool(reason), is_late)
        if stopped or due:
            _save(devices, group, run, checkpoint)
            saved_at = time.monotonic()
        if stopped:
            position = f"step {run.step} of {method.steps}"
            raise Stopped(f"stopped by {reason or 'another process'} at {position}; run the same command to resume")
    if not run.predictions:
        programs.predict(group, run)
    if group.size > 1:  # a kill between two of the group's records must not lose what the others were made from
        _save(devices, group, run, checkpoint)
    return run


def _extend(programs: Programs, group: Group, run: Fit, point: Point, score: _Score) -> tuple[np.ndarray, dict]:
    """Adds a point to the trace, with metrics: numbers of the group, or of each member; its objectives and metrics."""
    objective, average, rows = point
    programs.predict(group, run)
    with run.timed("evaluate"):
        metrics = score(run.predictions)
    row = {"step": run.step, "seconds": run.seconds["train"], "objective": objective, "objective_mean": average}
    if programs.method.halving and programs.method.search:
        row["rows"] = rows
    for name, value in (row | metrics).items():
        entry = np.asarray(value)[None]
        run.trace[name] = np.concatenate([run.trace[name], entry]) if name in run.trace else entry
    return objective, metrics


def _save(devices: Devices, group: Group, run: Fit, checkpoint: Checkpoint | None) -> None:
    if checkpoint is None:
        return
    state = devices.on_host(run.state)
    if devices.leads:
        checkpoint.save(state, run.trace, {name: getattr(run, name) for name in _KEPT} | {"members": group.members})


def _begin(programs: Programs, group: Group, checkpoint: Checkpoint | None, progress: Progress) -> Fit:
    """The group as its checkpoint has it, or at its initial states.  What came after the checkpoint never counts."""
    method, lay = programs.method, partial(programs.devices.by_rows, rows=group.X.shape[1])
    if checkpoint and checkpoint.path.exists():
        if saved := checkpoint.load(lay(initial(method, group))):  # its settings are chosen already
            state, trace, facts = saved
            progress.note(f"going on from the checkpoint at step {facts['step']}")
            return Fit(lay(state), trace=trace, on_part=progress.stage, **{name: facts[name] for name in _KEPT})
        progress.note(f"the checkpoint {checkpoint.path} is damaged or does not fit: starting anew")
    run = Fit(state=None, over=method.steps == 0, on_part=progress.stage)
    run.state = lay(initial(method, group, run))
    return run
