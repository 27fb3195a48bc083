"""One job, from configuration to records: data -> splits -> groups of one shape -> training -> metrics -> records."""

import hashlib
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
from gpbench.errors import ConfigError
from gpbench.methods.base import Method
from gpbench.records import environment
from gpbench.records.identity import cell_id, run_id
from gpbench.records.store import Store
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.loop import Cadence, Fit, Group, Predictions, fit
from gpbench.train.progress import Progress
from gpbench.train.stop import StopRequest

_GROUP_BYTES = {"cpu": 2**29, "gpu": 2**34}
"""How much data and state the splits of one program may hold together."""


@dataclass(frozen=True)
class Job:
    """What all runs of a job share."""

    cfg: dict
    method: Method
    dataset: Dataset
    setting: str
    facts: dict

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the numbers, split and seed apart."""
        card = {key: self.cfg["dataset"].get(key) for key in ("name", "task", "splits")}
        return dict(method=self.cfg["method"], protocol=self.cfg["protocol"], data=card,
                    data_checksum=self.dataset.checksum)  # fmt: skip

    def run_id(self, split: int) -> str:
        return run_id(**self.identity, split=split, seed=self.cfg["seed"])


def run_job(cfg: dict, defaults: dict, *, store: Store, progress: Progress, stop: StopRequest) -> list[dict]:
    """Trains and records what is not recorded yet, and returns the records of all the splits asked for, in order.

    `cfg` is the resolved configuration; `defaults` the same with nothing but the group choices, against which the
    setting's text is made.  Raises ConfigError, DataError, StorageError, and Stopped once a checkpoint is written.
    """
    method = instantiate(cfg["method"])
    card, run = cfg["dataset"], cfg["run"]
    if card["task"] not in method.tasks:
        able = " or ".join(sorted(method.tasks))
        raise ConfigError(f"method {method.name} is for {able} data, and {card['name']} is {card['task']}: `gpbench ls"
                          f" datasets` and `gpbench ls methods` show what fits together")  # fmt: skip
    where = {key: Path(value) if value else None for key, value in cfg["data"].items() if key != "offline"}
    dataset = data_layer.load(card, **where, offline=cfg["data"]["offline"])
    precision = cfg["protocol"]["precision"]
    facts = environment.facts(device=runtime.device_name(), precision=precision)
    job = Job(cfg, method, dataset, setting_text(method, cfg, defaults), facts)

    wanted = asked_splits(cfg["split"], splits.count(card, dataset), card["name"])
    records = {} if run["again"] else {k: r for k in wanted if (r := store.get(job.run_id(k)))}
    missing = [k for k in wanted if k not in records]
    for group, prepared in _groups(job, missing):
        for k, record in zip(group.splits, _train(job, group, prepared, store, progress, stop), strict=True):
            records[k] = record
    return [records[k] for k in wanted]


def asked_splits(split: int | str | Sequence[int], count: int, name: str) -> list[int]:
    """`all`, one number or a list, as a list.  Raises ConfigError beyond 0 .. count-1."""
    wanted = list(range(count)) if split == "all" else [split] if isinstance(split, int) else list(split)
    for k in wanted:
        if k not in range(count):
            raise ConfigError(f"split={k}: {name} has splits 0 to {count - 1}")
    return wanted  # type: ignore[return-value]


def setting_text(method: Method, cfg: Mapping, defaults: Mapping) -> str:
    """The method's own setting (`m=15%`), then whatever else differs from the defaults: `m=15%, update=outer`."""
    shown = [method.setting] if method.setting else []
    for part in ("method", "protocol", "dataset"):
        old = dict(_leaves(defaults[part]))
        for key, value in _leaves(cfg[part]):
            text = f"{key.removeprefix('splits.')}={value}"
            if old.get(key) != value and key not in ("inducing", "batch_size") and text not in shown:
                shown.append(text)
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


def _groups(job: Job, wanted: list[int]) -> Iterator[tuple[Group, list[Prepared]]]:
    """The splits in groups of one shape, each as large as `run.together` and memory allow."""
    protocol, card, seed = job.cfg["protocol"], job.cfg["dataset"], job.cfg["seed"]
    shapes: dict[tuple[int, int], list[int]] = {}
    for k in wanted:
        train, test = splits.indices(card, job.dataset, k)
        shapes.setdefault((len(train), len(test)), []).append(k)
    for (n, _), members in shapes.items():
        size = _together(job, n, len(members))
        for start in range(0, len(members), size):
            chosen = members[start : start + size]
            prepared = [
                data_layer.prepare(job.dataset, *splits.indices(card, job.dataset, k), inputs=protocol["inputs"],
                                   targets=protocol["targets"])
                for k in chosen
            ]  # fmt: skip
            names = (card["name"], seed)
            init_keys = [key_of("init", *names, k) for k in chosen]
            step_keys = jnp.stack([key_of("step", job.method.name, *names, k) for k in chosen])
            # Device arrays of the group; y's scale and classes stay with `prepared`.
            arrays = [
                jnp.asarray(np.stack([getattr(p, field) for p in prepared]), protocol["precision"])
                for field in ("X", "y", "X_test", "y_test")
            ]
            yield Group(chosen, *arrays, prepared[0].classes, init_keys, step_keys), prepared


def _together(job: Job, n: int, available: int) -> int:
    asked = job.cfg["run"]["together"]
    if asked != "auto":
        return available if asked is True else max(1, int(asked))
    # Each split has its data and a state that is seldom larger than four times that.
    bytes_each = 5 * 8 * n * (job.dataset.X.shape[1] + n // 4)
    platform = "cpu" if jax.default_backend() == "cpu" else "gpu"
    return max(1, min(available, _GROUP_BYTES[platform] // bytes_each))


def _train(
    job: Job, group: Group, prepared: list[Prepared], store: Store, progress: Progress, stop: StopRequest
) -> list[dict]:
    run = job.cfg["run"]
    ids = [job.run_id(k) for k in group.splits]
    # A checkpoint belongs to these runs trained together: numbers agree across groupings to rounding only.
    name = hashlib.sha256("/".join(ids).encode()).hexdigest()[:16]
    checkpoint = Checkpoint(Path(run["results"]) / "checkpoints", name)
    title = f"{job.cfg['dataset']['name']}  {job.method.name}  {job.setting}  {job.cfg['protocol']['name']}"
    progress.begin(title, job.method.steps, group.splits)
    try:
        done = fit(
            job.method,
            group,
            cadence=Cadence(run["trace_every"], run["checkpoint_every"]),
            score=lambda predictions: _traced(prepared, predictions),
            checkpoint=checkpoint,
            progress=progress,
            stop=stop,
        )
    finally:
        progress.end()
    records = []
    for i, id in enumerate(ids):
        record = _record(job, group, done, i, prepared[i], id)
        trace = {k: v if v.ndim == 1 else v[:, i] for k, v in done.trace.items()}
        store.write(record, job.cfg, trace, replace=run["again"])
        records.append(record)
    checkpoint.delete()
    return records


def _score(prepared: Prepared, predictions: Predictions, i: int) -> dict[str, float]:
    scored = metrics.Scored(
        y=prepared.y_test,
        y_mean=prepared.y_mean,
        y_std=prepared.y_std,
        y_train_var=float(np.var(prepared.y)),
        **{name: np.asarray(values[i], np.float64) for name, values in predictions.items()},
    )
    return metrics.score(prepared.task, scored)


def _traced(prepared: list[Prepared], predictions: Predictions) -> dict[str, np.ndarray]:
    """The metrics of every split, (splits,) each."""
    rows = [_score(p, predictions, i) for i, p in enumerate(prepared)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _record(job: Job, group: Group, done: Fit, i: int, prepared: Prepared, id: str) -> dict:
    """The record of the i-th split of a group; the group's seconds are shared equally."""
    objective = done.trace["objective"][-1][i] if "objective" in done.trace else np.nan
    sound = np.isfinite(done.predictions["log_prob"][i]).all() and (job.method.steps == 0 or np.isfinite(objective))
    message = None
    if not sound:
        state = jax.tree.map(lambda leaf: leaf[i], done.state)
        why = job.method.diagnose(state) or "the objective or the predictions are not finite"
        message = f"{why} at step {done.step} of {job.method.steps}"
    cfg = job.cfg
    return {
        "id": id,
        "cell": cell_id(**job.identity),
        "status": "done" if sound else "diverged",
        "message": message,
        "dataset": cfg["dataset"]["name"],
        "method": job.method.name,
        "setting": job.setting,
        "protocol": cfg["protocol"]["name"],
        "split": group.splits[i],
        "seed": cfg["seed"],
        "output": None,
        "metrics": _score(prepared, done.predictions, i) if sound else {},
        "seconds": {name: seconds / group.size for name, seconds in done.seconds.items()},
        "group": group.size,
        "objective": float(objective),
        "steps": done.step,
        "peak_memory_mb": runtime.jax_memory_peak_mb(),
        "data_checksum": job.dataset.checksum,
        "held_out": True,
        "preset": cfg["run"]["preset"],
        **job.facts,
    }
