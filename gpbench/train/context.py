"""Shared parts of all runs of a job, made once from its plan, and its groups of runs of one shape with their arrays."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench import data as data_layer
from gpbench import limits, own_metrics, plugins, runtime, schema, targets
from gpbench.config.build import build_method, check_class
from gpbench.config.values import Config
from gpbench.core import memory
from gpbench.core.kernels import Spec as KernelSpec
from gpbench.core.likelihoods import Spec as LikelihoodSpec
from gpbench.core.predictive.recalibrated import Recalibration
from gpbench.core.predictive.warped import stack_warps
from gpbench.core.random import run_key
from gpbench.data import splits
from gpbench.data.scaled import ScaledSplit
from gpbench.errors import ConfigError, require
from gpbench.log import warn
from gpbench.methods.base import FRACTION_MOST, Method
from gpbench.methods.protocols import HasLimits, HasRowMemory, State
from gpbench.records import environment, identity
from gpbench.records.arrays import MOST_ROWS
from gpbench.records.plan import Run, RunPlan
from gpbench.train.batches import SAMPLE, Stream
from gpbench.train.checkpoint import Checkpoint
from gpbench.train.devices import Devices, fill
from gpbench.train.faults import one_line_if_users_code
from gpbench.train.group import Changes, Fit, Group
from gpbench.train.limit import machine_rate
from gpbench.train.loop import Cadence
from gpbench.train.programs import Programs

_GPU_BYTES = 2**34  # share of a GPU's memory that a group of `run.together=auto` may take; larger groups are no faster


class Context:
    """A plan with its method and compiled programs, its data, and `facts`, which are in every record of the job."""

    def __init__(self, plan: RunPlan):
        self.plan, cfg = plan, plan.cfg
        self.card, self.protocol, self.run = cfg["dataset"], cfg["protocol"], cfg["run"]
        check_class(cfg["method"], self.card)
        method = build_method(cfg["method"])
        self.dataset = data_layer.configured(cfg)
        is_same = self.dataset.checksum == plan.data_checksum
        require(is_same, f"{self.card['name']}: its data were changed since this command began: run it again")
        self.method, self.devices = method, Devices(self.run["devices"])
        self.programs = Programs(method, self.devices)
        self.precision, self.seed = self.protocol["precision"], cfg["seed"]
        self.cadence = Cadence(self.run["trace_every"], self.run["checkpoint_every"])
        self.cpu_limit = self.run.get("cpu_limit")
        is_alone = not self.cpu_limit or self.run["processes"] == 1
        require(is_alone, "run.cpu_limit is of one process: leave out run.processes", ConfigError)
        code_dirs = [Path(folder) for folder in cfg["config_dirs"] if targets.is_given(folder)]
        self.own_metrics = own_metrics.load(plugins.folders(code_dirs))
        self.facts = {
            "dataset": self.card["name"],
            "method": method.name,
            "setting": _setting_text(method, cfg),
            "protocol": self.protocol["name"],
            "seed": self.seed,
            "data_checksum": plan.data_checksum,
            "kept": "keep" in plan.extras,
            **({"saved": True} if "save" in plan.extras else {}),
            "preset": self.run["preset"],
            **environment.facts(device=runtime.device_name(), precision=self.precision),
            **({"machine_rate": machine_rate()} if self.cpu_limit else {}),
            **self.devices.facts(),
        }

    def state(self, fit: Fit, i: int) -> State:
        """The state of the i-th run of a group, on one device.  All processes must ask."""
        return jax.device_put(jax.tree.map(lambda leaf: leaf[i], self.devices.on_host(fit.state)))

    def keeps_predictions(self, rows: int) -> bool:
        """Whether the predictions of this number of test rows are kept beside the record."""
        setting = self.run["predictions"]
        return rows <= MOST_ROWS if setting == "auto" else bool(setting)

    def streams(self, rows: int, size: int) -> bool:
        """Whether the training rows stay on the host (`Stream`)."""
        batch, setting = self.method.batch_size, self.run.get("stream", "auto")
        minibatches = batch is not None and batch < rows
        fault = f"run.stream=true needs minibatches, and a step of {self.method.name} takes all {rows:,} rows"
        mend = "set method.batch_size where the method has it, or run.stream=auto"
        require(minibatches or setting is not True, f"{fault}: {mend}", ConfigError)
        return minibatches and (size > limits.DATA if setting == "auto" else bool(setting))

    def checkpoint(self, group: Sequence[Run], *, again: bool) -> Checkpoint:
        """The checkpoint of a group; `run.again` never resumes what was stopped without it."""
        words = [run.id for run in group] + ["again"] * again
        name = hashlib.sha256("/".join(words).encode()).hexdigest()[:16]
        return Checkpoint(Path(self.plan.results) / "checkpoints", name)


def _setting_text(method: Method, cfg: Config) -> str:
    """The method's own setting, then what else differs from the defaults: `m=15%, update=outer`.  Of the protocol that
    is what changes ids; what a method reads of it is among its own keys."""
    texts = [method.label] if method.label else []
    for key, value in cfg["changes"].items():
        if key.startswith("protocol.") and key.split(".")[1] not in identity.PROTOCOL:
            continue
        if key in ("dataset.exposure", "dataset.threshold"):  # the card has them, below
            continue
        name = key.partition(".")[2].removeprefix("splits.")
        value = "null" if value is None else value
        field = name.partition(".")[0]
        spec = getattr(method, field, None) if key.startswith("method.") else None
        text = f"{field}={spec}" if isinstance(spec, KernelSpec | LikelihoodSpec) else f"{name}={value}"
        # sets.NAME is how many splits there are, which changes none of them
        if name not in method.label_fields and not name.startswith("sets.") and text not in texts:
            texts.append(text)
    card = cfg["dataset"]
    texts += [f"exposure={card['exposure']}"] if card.get("exposure") else []
    texts += [f"dataset.threshold={card['threshold']:g}"] if card.get("threshold") is not None else []
    texts += [f"{key}={value}" for key, value in identity.timing_keys(cfg["run"]).items() if value is not None]
    return ", ".join(texts)


def groups(context: Context) -> Iterator[list[Run]]:
    """The runs of the plan in groups of one shape, each as large as `run.together` says.  They depend on the plan and
    not on what is recorded, so that a killed command finds its groups again."""
    shapes: dict[tuple[int, int], list[Run]] = {}
    for run in sorted(context.plan.runs, key=lambda run: run.member):
        train, test = splits.indices(context.card, context.dataset, run.split, output=run.output)
        shapes.setdefault((len(train), len(test)), []).append(run)
    n = max(n for n, _ in shapes)
    _say_cut(context, n - splits.recalibration_rows(context.protocol.get("recalibrate"), context.card["task"], n))
    for alike in shapes.values():
        size = _size(context, alike)
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


def _say_cut(context: Context, n: int) -> None:
    """Says on stderr which numbers of the command line mean less than they say, with n training rows."""
    method = context.method
    largest = dict.fromkeys(("batch_size", "subset_rows", "rows"), n)
    largest |= method.limits(n) if isinstance(method, HasLimits) else {}
    changes = context.plan.cfg["changes"]
    for name, most in largest.items():
        value = changes.get(f"method.{name}")
        if isinstance(value, int) and value > most:
            warn(f"method.{name}={value} is more than the {most:,} there are: all are used")
    for name, field in schema.settings(type(method)).items():
        share = changes.get(f"method.{name}") if field.metadata[schema.RANGE] == schema.SIZE else None
        if isinstance(share, float) and (number := round(share * n)) > FRACTION_MOST:
            fault = (
                f"method.{name}={share:g} of {n:,} rows is {number:,}, and a fraction gives {FRACTION_MOST:,} at most"
            )
            warn(f"{fault}: set method.{name}={number} for all of them")


def _size(context: Context, runs: Sequence[Run]) -> int:
    """The number of these runs that share a program.  `auto` is one on a CPU, where a run alone is as fast or faster,
    and on a GPU as many as fit into `_GPU_BYTES`, by the memory of the compiled program for one."""
    together = context.run["together"]
    if not isinstance(together, str):
        return len(runs) if together is True else max(1, together)
    if jax.default_backend() == "cpu" or len(runs) == 1:
        return 1
    group, _ = load(context, runs[:1])
    with one_line_if_users_code(context.plan.cfg, group):
        return max(1, min(len(runs), _GPU_BYTES // context.programs.footprint(group)))


def load(context: Context, runs: Sequence[Run]) -> tuple[Group, list[ScaledSplit]]:
    """The runs' arrays, and each run with what scoring needs; all on the host.  Raises MemoryShortage."""
    method, dataset, card = context.method, context.dataset, context.card
    indices = [splits.indices(card, dataset, run.split, output=run.output) for run in runs]
    kept_out: list[tuple] = []
    if change := context.protocol.get("recalibrate"):
        few = splits.recalibration_rows(change, card["task"], len(indices[0][0]))
        kept_out = [(train[:-few], train[-few:]) for train, _ in indices]  # which come in random order
        indices = [(train, test) for (train, _), (_, test) in zip(kept_out, indices, strict=True)]
    n, d = len(indices[0][0]), dataset.X.shape[1]
    of_rows = method.row_memory(n) if isinstance(method, HasRowMemory) else 0
    size = len(runs) * n * np.dtype(context.precision).itemsize
    streams = context.streams(n, size * (d + 1))
    scalers = {name: context.protocol[name] for name in ("inputs", "targets")}
    prepare = partial(data_layer.prepare, dataset, **scalers, most=SAMPLE if streams else None)
    prepared, others = (
        [prepare(*parts, output=run.output) for run, parts in zip(runs, every)] for every in (indices, kept_out)
    )
    subject = f"{len(runs)} x {n} rows and what the method holds for each"
    held = size * (of_rows if streams else d + 1 + of_rows)
    memory.require_memory(held, subject, "inducing points or samples")
    members = [run.member for run in runs]
    names = [(card["name"], context.seed, *member.identity.values()) for member in members]
    rows = None if streams else context.devices.padded(n)
    trained = zip(*((fill(p.X, rows or len(p.X)), fill(p.y_scaler.trained(p.y), rows or len(p.y))) for p in prepared))
    arrays: dict[str, Any] = dict(zip(("X", "y"), map(np.stack, trained)))
    arrays |= {field: np.stack([getattr(p, field) for p in prepared]) for field in ("X_test", "y_test")}
    arrays["unit"] = np.stack([p.X_scale for p in prepared])
    recalibration = Recalibration(jnp.ones(len(runs), context.precision), change) if change else None
    warp = stack_warps([p.y_scaler.warp for p in prepared], context.precision)
    if (threshold := card.get("threshold")) is not None:
        threshold = jnp.asarray([(threshold - p.y_mean) / p.y_std for p in prepared], context.precision)
    of_kept = [*zip(*((p.X_test, p.y_scaler.trained(p.y_test)) for p in others))]
    group = Group(
        members=members,
        rows=n,
        changes=Changes(warp, recalibration, dataset.exposure, threshold),
        classes=prepared[0].classes,
        **{field: array.astype(context.precision, copy=False) for field, array in arrays.items()},
        init_keys=jnp.stack([run_key("init", *name) for name in names]),
        step_keys=jnp.stack([run_key("step", method.name, *name) for name in names]),
        kept_out=tuple(np.stack(each).astype(context.precision) for each in of_kept) or None,
    )
    return _streamed(context, group, prepared) if streams else group, prepared


def _streamed(context: Context, group: Group, prepared: Sequence[ScaledSplit]) -> Group:
    """The group with its rows on the host, whose `init` sees the first of them, which come in random order."""
    X, y, batch_size = np.asarray(group.X), np.asarray(group.y), context.method.batch_size
    assert batch_size is not None

    def rows(k: int, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not (on_disk := prepared[k].on_disk):
            return X[k][index], y[k][index]
        inputs, targets = on_disk(index)
        return inputs.astype(X.dtype, copy=False), targets.astype(y.dtype, copy=False)

    facts = {"total": len(prepared[0].train_rows), "last": context.method.steps, "row_bytes": X[0, 0].nbytes}
    stream = Stream(rows, **facts, size=batch_size, keys=group.step_keys, to_devices=context.devices.everywhere)
    n = min(SAMPLE, stream.total)
    return replace(group, X=X[:, :n], y=y[:, :n], rows=n, stream=stream)
