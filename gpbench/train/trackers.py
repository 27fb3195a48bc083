"""Experiment trackers that follow runs (`run.log`): ours, and those of entry points of `gpbench.loggers`.  Called with
the id of a run, its label, its settings by dotted key and the results folder, each follows that
run: `update(step, objective, metrics)` gets the points of its trace and then its results, `end` its status."""

import fcntl
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpbench import plugins
from gpbench.errors import Stopped, as_word
from gpbench.log import warn
from gpbench.records.record import Record


class Trackers:
    """The trackers of runs under way.  One that fails is left out from then on, which is said: training goes on."""

    def __init__(self, names: Any):
        self._names = [*dict.fromkeys(names if isinstance(names, list) else filter(None, [names]))]
        self._open: dict[tuple[str, str], Any] = {}  # by id of a run, and name

    def begin(self, id: str, label: str, settings: Mapping[str, Any], results: Path) -> None:
        """Opens the trackers of a run that starts or resumes."""
        for name in [*self._names]:
            if tracker := self._answer(name, _make, name, id, label, dict(settings), results):
                self._open[id, name] = tracker

    def update(self, ids: Sequence[str], step: int, objective: Any, metrics: Mapping[str, Any]) -> None:
        """Passes on a point of the trace of these runs."""
        for (id, name), tracker in self._open.items():
            k = ids.index(id)
            numbers = {key: float(values[k]) for key, values in metrics.items()}
            self._answer(name, methodcaller("update", step, float(objective[k]), numbers), tracker)

    def end(self, record: Record) -> None:
        """Gives the trackers of a run its record, and closes them."""
        for id, name in [key for key in self._open if key[0] == record.id]:
            tracker, seconds = self._open.pop((id, name)), sum(filter(None, record.seconds.values()))
            objective = math.nan if record.objective is None else record.objective
            numbers = {**record.metrics, "seconds": seconds, "steps": record.steps}
            results = {key: value for key, value in numbers.items() if value is not None}
            self._answer(name, methodcaller("update", record.steps or 0, objective, results), tracker)
            self._answer(name, methodcaller("end", record.status), tracker)

    def __enter__(self) -> "Trackers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        """Closes the trackers of runs without a record, as stopped or failed."""
        status = "stopped" if kind and issubclass(kind, Stopped | KeyboardInterrupt) else "failed"
        for (_id, name), tracker in self._open.items():
            self._answer(name, methodcaller("end", status), tracker)

    def _answer(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments) if name in self._names else None
        except (Exception, SystemExit) as error:  # another package can raise anything
            self._names.remove(name)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            reason = re.sub(r"//[^/@\s]*@", "//", reason)[:300]  # an address may have a password
            warn(f"run.log={name}: {reason}; training goes on without it")


def _make(name: str, *facts: Any) -> Any:
    others = (point for point in plugins.points(plugins.LOGGERS) if point.name == name)
    return (_OURS.get(name) or next(others).load())(*facts)


def _tracker(log: Callable[[int, dict[str, float]], Any], end: Callable[[str], None]) -> Any:
    """What follows a run by a function that logs numbers of a step."""
    return SimpleNamespace(update=lambda step, value, rest: log(step, {**rest, "objective": value}), end=end)


def _mlflow(id: str, label: str, settings: Mapping[str, Any], results: Path) -> Any:
    """A run of the experiment MLFLOW_EXPERIMENT_NAME, or gpbench."""
    for name, value in {"MAX_RETRIES": "2", "TIMEOUT": "10"}.items():  # else it waits minutes for a lost server
        os.environ.setdefault(f"MLFLOW_HTTP_REQUEST_{name}", value)
    import mlflow

    results.mkdir(parents=True, exist_ok=True)
    with open(results / "mlflow.lock", "w") as lock:  # two jobs that make one database spoil it
        fcntl.flock(lock, fcntl.LOCK_EX)
        experiment = mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", "gpbench")).experiment_id
    client, tag = mlflow.MlflowClient(), "gpbench.id"
    known = client.search_runs([experiment], f"tags.`{tag}` = '{id}'")
    run = (known or [client.create_run(experiment, tags={tag: id}, run_name=label)])[0].info.run_id
    client.update_run(run, status="RUNNING")
    if not known:
        mlflow.log_params(settings, run_id=run)

    def end(status: str) -> None:
        client.set_tag(run, "gpbench.status", status)
        client.set_terminated(run, {"done": "FINISHED", "stopped": "KILLED"}.get(status, "FAILED"))

    return _tracker(lambda step, numbers: mlflow.log_metrics(numbers, step, run_id=run), end)


def _wandb(id: str, label: str, settings: Mapping[str, Any], results: Path) -> Any:
    """A run of the project WANDB_PROJECT, or gpbench."""
    import wandb

    options = {"resume": "allow", "reinit": "create_new", "settings": {"console": "off"}}  # which takes what is printed
    project = os.environ.get("WANDB_PROJECT", "gpbench")
    run = wandb.init(project=project, id=id, name=label, config=settings, **options)

    def end(status: str) -> None:
        run.summary["status"] = status
        run.finish(exit_code=int(status != "done"))

    return _tracker(lambda step, numbers: run.log(numbers, step=step), end)


def _tensorboard(id: str, label: str, settings: Mapping[str, Any], results: Path) -> Any:
    """A folder of RESULTS/tensorboard.  tensorboardX's own writer has a queue, which blocks once the disk is full."""
    from tensorboardX import event_file_writer, proto, summary

    folder = results / "tensorboard" / re.sub(r"[^\w.,=-]+", "_", f"{id} {label}"[:200])
    folder.mkdir(parents=True, exist_ok=True)
    writer = event_file_writer.EventsWriter(str(folder / "events"), f".{os.getpid()}")

    def write(step: int, values: Mapping[str, float | str]) -> None:
        for name, value in values.items():
            content = (summary.text if isinstance(value, str) else summary.scalar)(name, value)
            writer.write_event(proto.event_pb2.Event(wall_time=time.time(), step=step, summary=content))
        writer.flush()

    write(0, {"settings": "  \n".join(f"{key}={as_word(value)}" for key, value in settings.items())})
    return _tracker(write, lambda status: write(0, {"status": status}))


_OURS: Mapping[str, Callable[..., Any]] = {"mlflow": _mlflow, "tensorboard": _tensorboard, "wandb": _wandb}
