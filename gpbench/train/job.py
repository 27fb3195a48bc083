"""One job, from configuration to records: data -> splits -> groups of one shape -> training -> metrics -> records."""

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hydra.utils import instantiate

from gpbench import data as data_layer
from gpbench import metrics, runtime
from gpbench.data import Dataset, Prepared, splits
from gpbench.data.members import Member, members, named
from gpbench.errors import ConfigError, Stopped
from gpbench.methods.base import Method, State
from gpbench.records import environment, identity
from gpbench.records.folder import clean
from gpbench.records.identity import cell_id, run_id
from gpbench.records.store import Store
from gpbench.train import keep
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices, fill
from gpbench.train.loop import Cadence, Fit, Group, Predictions, Programs, fit
from gpbench.train.progress import Progress
from gpbench.train.stop import StopRequest


@dataclass(frozen=True)
class Job:
    """What all runs of a job share."""

    cfg: dict
    programs: Programs
    dataset: Dataset
    setting: str
    facts: dict

    @property
    def method(self) -> Method:
        return self.programs.method

    @property
    def devices(self) -> Devices:
        return self.programs.devices

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, split, output and seed apart."""
        return identity.of(self.cfg, self.dataset.checksum)

    def run_id(self, member: Member) -> str:
        return run_id(**self.identity, **member.identity, seed=self.cfg["seed"])

    def checkpoint(self, group: Sequence[Member], *, again: bool) -> Checkpoint:
        """Where these members' checkpoint lies; `run.again` never goes on from what was stopped without it."""
        words = [self.run_id(member) for member in group] + ["again"] * again
        name = hashlib.sha256("/".join(words).encode()).hexdigest()[:16]
        return Checkpoint(Path(self.cfg["run"]["results"]) / "checkpoints", name)


def run_job(cfg: dict, defaults: dict, *, store: Store, progress: Progress, stop: StopRequest) -> list[dict]:
    """Trains and records what is not recorded yet, and returns the records of all that is asked for, in order.

    `cfg` is the resolved configuration; `defaults` the same with nothing but the group choices, against which the
    setting's text is made.  `run.again` trains what is recorded too; where it is stopped, the same command goes on.
    Raises ConfigError, DataError, StorageError, and Stopped once a checkpoint is written.
    """
    if (precision := cfg["protocol"]["precision"]) not in ("float32", "float64"):
        raise ConfigError(f"protocol.precision={precision} is neither float32 nor float64")
    method = instantiate(cfg["method"])
    card, run = cfg["dataset"], cfg["run"]
    if card["task"] not in method.tasks:
        able = " or ".join(sorted(method.tasks))
        raise ConfigError(f"method {method.name} is for {able} data, and {card['name']} is {card['task']}: `gpbench ls"
                          f" datasets` and `gpbench ls methods` show what fits together")  # fmt: skip
    dataset = data_layer.configured(cfg)
    devices = Devices(run["devices"])
    facts = environment.facts(device=runtime.device_name(), precision=precision) | devices.facts()
    job = Job(cfg, Programs(method, devices), dataset, setting_text(method, cfg, defaults), facts)

    wanted = members(card, cfg["split"], cfg["output"])
    kept = {} if run["again"] else {member: store.get(job.run_id(member)) for member in wanted}
    records = {member: r for member, r in kept.items() if r and (r.get("kept") or not run["keep"])}
    already = len(records)
    # Groups are made of what is wanted and not of what is missing, so that a killed command finds its groups again.
    for group in _groups(job, wanted) if already < len(wanted) else ():
        checkpoint = job.checkpoint(group, again=run["again"])
        while missing := [member for member in group if member not in records]:
            (stopped,) = devices.any(len(records) > already and bool(stop.reason))
            if stopped:
                why = stop.reason or "another process"
                raise Stopped(f"stopped by {why} with runs left; the same command goes on with them")
            # Numbers agree across groupings to rounding only: go on with the very members of the checkpoint.
            together = [Member(*names) for names in (checkpoint.facts() or {}).get("members", missing)]
            if not set(together) & set(missing):  # killed after the last record, before it was deleted
                checkpoint.delete()
                together = missing
            devices.must_agree([run["results"], missing, together])
            for member, (record, trace) in _train(job, together, checkpoint, progress, stop).items():
                if member in missing:
                    if devices.leads:
                        store.write(record, cfg, trace, replace=run["again"] or run["keep"])
                    records[member] = clean(record)
            if devices.leads:
                checkpoint.delete()
                job.checkpoint(group, again=False).delete()  # recorded now, however that was left
            devices.meet("recorded")
    return [records[member] for member in wanted]


_TOLD = frozenset({"inducing", "mean_basis", "covariance_basis", "batch_size"})
"""Keys of which a method's own setting tells."""


def setting_text(method: Method, cfg: Mapping, defaults: Mapping) -> str:
    """The method's own setting (`m=15%`), then whatever else differs from the defaults: `m=15%, update=outer`."""
    shown = [method.setting] if method.setting else []
    for part in ("method", "protocol", "dataset"):
        old = dict(_leaves(defaults[part]))
        for key, value in _leaves(cfg[part]):
            text = f"{key.removeprefix('splits.')}={value}"
            silent = key in _TOLD or key.startswith("splits.sets.")  # how many splits there are
            if old.get(key) != value and not silent and text not in shown:
                shown.append(text)
    shown += [f"{key}={value}" for key, value in identity.timed(cfg).items() if value is not None]
    return ", ".join(shown)


def _leaves(node: Mapping, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + str(key), value


def key_of(*names: Any) -> jax.Array:
    """A random key from names, so that one split is reproducible alone and whatever ran before."""
    digest = hashlib.sha256("/".join(map(str, names)).encode()).digest()
    return jax.random.key(int.from_bytes(digest[:4], "big"))


def _groups(job: Job, wanted: list[Member]) -> Iterator[list[Member]]:
    """What is wanted in groups of one shape, each as large as `run.together` allows."""
    shapes: dict[tuple[int, int], list[Member]] = {}
    for k, of_split in itertools.groupby(sorted(wanted), key=lambda member: member.split):
        train, test = splits.indices(job.cfg["dataset"], job.dataset, k)
        shapes.setdefault((len(train), len(test)), []).extend(of_split)
    for (n, _), group in shapes.items():
        together = job.cfg["run"]["together"]
        if together == "auto":
            together = _worth_joining(job.method, n, job.dataset.X.shape[1])
        size = len(group) if together is True else max(1, together)
        yield from (group[start : start + size] for start in range(0, len(group), size))


def _worth_joining(method: Method, n: int, d: int) -> int:
    """How many members of n training rows and d inputs belong into one program.

    On a CPU one: there a member alone is as fast, or faster.  On a GPU what fills 16 GB, more being no faster: a member
    is taken to hold its data and what the method says it holds for each row, and to work on ten arrays with a number
    for each row of a step and each inducing point, M <= N/4 or 2,048 of them.
    """
    if jax.default_backend() == "cpu":
        return 1
    rows = min(method.batch_size or n, n)
    return 2**34 // (8 * (n * (d + 1 + method.row_memory(n)) + 10 * rows * (d + min(n // 4, 2048))))


def _load(job: Job, chosen: list[Member]) -> tuple[Group, list[Prepared]]:
    """The members' arrays, and each member with what scoring needs; all on the host."""
    protocol, card = job.cfg["protocol"], job.cfg["dataset"]
    scaling = {"inputs": protocol["inputs"], "targets": protocol["targets"]}
    prepared = [
        data_layer.prepare(job.dataset, *splits.indices(card, job.dataset, k), output=output, **scaling)
        for k, output in chosen
    ]
    n, d = prepared[0].X.shape
    numbers = len(chosen) * n * (d + 1 + job.method.row_memory(n))
    size = np.dtype(protocol["precision"]).itemsize
    runtime.require_memory(numbers * size, f"{len(chosen)} x {n} rows and what the method holds for each")
    names = (card["name"], job.cfg["seed"])
    init_keys = jnp.stack([key_of("init", *names, *member.identity.values()) for member in chosen])
    step_keys = jnp.stack([key_of("step", job.method.name, *names, *member.identity.values()) for member in chosen])
    rows = {"X": job.devices.padded(n), "y": job.devices.padded(n)}
    arrays = {
        field: np.stack([fill(part := getattr(p, field), rows.get(field, len(part))) for p in prepared])
        for field in ("X", "y", "X_test", "y_test")
    }
    typed: dict[str, Any] = {field: array.astype(protocol["precision"], copy=False) for field, array in arrays.items()}
    typed |= {"init_keys": init_keys, "step_keys": step_keys}
    return Group(members=chosen, rows=n, classes=prepared[0].classes, **typed), prepared


def _train(
    job: Job, chosen: list[Member], checkpoint: Checkpoint, progress: Progress, stop: StopRequest
) -> dict[Member, tuple[dict, dict[str, np.ndarray]]]:
    """Record and trace of each of these, trained together."""
    cfg, run = job.cfg, job.cfg["run"]
    group, prepared = _load(job, chosen)
    title = f"{cfg['dataset']['name']}  {job.method.name}  {job.setting}  {cfg['protocol']['name']}"
    progress.begin(title, job.method.steps, named(chosen))
    try:
        done = fit(
            job.programs,
            group,
            cadence=Cadence(run["trace_every"], run["checkpoint_every"]),
            score=lambda predictions: _traced(prepared, predictions),
            checkpoint=checkpoint,
            progress=progress,
            stop=stop,
        )
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):
            raise
        fewer = "" if group.size == 1 else f"run.together={group.size // 2}, "
        raise ConfigError(f"out of memory on {group.size} x {group.X.shape[1]} rows: try {fewer}fewer inducing points"
                          " or a smaller batch") from error  # fmt: skip
    finally:
        progress.end()
    traces = [{name: v if v.ndim == 1 else v[:, i] for name, v in done.trace.items()} for i in range(group.size)]
    if run["keep"]:
        for i, trace in enumerate(traces):
            state, precision = _state(job, done, i), cfg["protocol"]["precision"]
            trace |= keep.arrays(job.method, state, prepared[i], precision, key=group.step_keys[i])
    return {
        member: (_record(job, group, done, i, prepared[i]), trace)
        for i, (member, trace) in enumerate(zip(chosen, traces))
    }


def _state(job: Job, done: Fit, i: int) -> State:
    """The state of the i-th member of a group, on one device."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[i]), job.devices.on_host(done.state))


def _score(prepared: Prepared, predictions: Predictions, i: int) -> dict[str, float]:
    told: dict[str, Any] = {name: np.asarray(values[i], np.float64)[()] for name, values in predictions.items()}
    scored = metrics.Scored(
        y=prepared.y_test,
        y_mean=prepared.y_mean,
        y_std=prepared.y_std,
        y_train_var=float(np.var(prepared.y)),
        train_rows=len(prepared.y),
        **told,
    )
    return metrics.score(prepared.task, scored)


def _traced(prepared: list[Prepared], predictions: Predictions) -> dict[str, np.ndarray]:
    """The metrics of every member, (members,) each."""
    rows = [_score(p, predictions, i) for i, p in enumerate(prepared)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _record(job: Job, group: Group, done: Fit, i: int, prepared: Prepared) -> dict:
    """The record of the i-th member of a group; the group's seconds are shared equally."""
    objective = done.trace["objective"][-1][i] if "objective" in done.trace else np.nan
    sound = np.isfinite(done.predictions["log_prob"][i]).all() and (job.method.steps == 0 or np.isfinite(objective))
    message = None
    if not sound:
        why = job.method.diagnose(_state(job, done, i)) or "the objective or the predictions are not finite"
        message = f"{why} at step {done.step} of {job.method.steps}"
    cfg, member = job.cfg, group.members[i]
    scores = _score(prepared, done.predictions, i)
    return {
        "id": job.run_id(member),
        "cell": cell_id(**job.identity, **member.cell),
        "status": "done" if sound else "diverged",
        "message": message,
        "dataset": cfg["dataset"]["name"],
        "method": job.method.name,
        "setting": job.setting,
        "protocol": cfg["protocol"]["name"],
        "split": member.split,
        "seed": cfg["seed"],
        "output": None if member.output is None else job.dataset.outputs[member.output],
        "metrics": scores if sound else dict.fromkeys(scores),
        "seconds": {name: seconds / group.size for name, seconds in done.seconds.items()},
        "group": group.size,
        "objective": float(objective),
        "steps": done.step,
        "peak_memory_mb": runtime.jax_memory_peak_mb(),
        "data_checksum": job.dataset.checksum,
        "kept": cfg["run"]["keep"],
        "held_out": prepared.held_out,
        "scaled_by_all_rows": prepared.scaled_by_all_rows,
        "preset": cfg["run"]["preset"],
        **job.facts,
    }
