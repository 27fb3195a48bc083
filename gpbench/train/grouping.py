"""Runs of one shape that train together: how many of them, and their arrays."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench import data as data_layer
from gpbench import schema
from gpbench.core import memory
from gpbench.core.random import run_key
from gpbench.data import splits
from gpbench.data.scaled import ScaledSplit
from gpbench.data.store import warn
from gpbench.methods.base import FRACTION_MOST
from gpbench.methods.protocols import HasLimits, HasRowMemory
from gpbench.records.plan import Run
from gpbench.train.context import Context, one_line_if_out_of_memory
from gpbench.train.devices import fill
from gpbench.train.faults import one_line_if_users_code
from gpbench.train.group import Group
from gpbench.train.stream import SAMPLE, Stream

_GPU_BYTES = 2**34
"""Share of a GPU's memory that a group of `run.together=auto` may take; larger groups are no faster."""


def groups(context: Context) -> Iterator[list[Run]]:
    """The runs of the plan in groups of one shape, each as large as `run.together` says.

    They depend on the plan and not on what is recorded, so that a killed command finds its groups again.
    """
    shapes: dict[tuple[int, int], list[Run]] = {}
    for run in sorted(context.plan.runs, key=lambda run: run.member):
        train, test = splits.indices(context.card, context.dataset, run.split, output=run.output)
        shapes.setdefault((len(train), len(test)), []).append(run)
    _say_cut(context, max(n for n, _ in shapes))
    for alike in shapes.values():
        size = _size(context, alike)
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


def _say_cut(context: Context, n: int) -> None:
    """Say on stderr which numbers of the command line mean less than they say, with n training rows."""
    method = context.method
    limits = dict.fromkeys(("batch_size", "subset_rows", "rows"), n)
    limits |= method.limits(n) if isinstance(method, HasLimits) else {}
    changes = context.plan.cfg["changes"]
    for name, most in limits.items():
        value = changes.get(f"method.{name}")
        if isinstance(value, int) and value > most:
            warn(f"method.{name}={value} is more than the {most:,} there are: all are used")
    ranges = {name: field.metadata[schema.RANGE] for name, field in schema.settings(type(context.method)).items()}
    for name in (name for name, words in ranges.items() if words == "rows or fraction"):
        share = changes.get(f"method.{name}")
        if isinstance(share, float) and (number := round(share * n)) > FRACTION_MOST:
            warn(
                f"method.{name}={share:g} of {n:,} rows is {number:,}, and a fraction gives {FRACTION_MOST:,} at most:"
                f" set method.{name}={number} for all of them"
            )


def _size(context: Context, runs: Sequence[Run]) -> int:
    """Count the runs that share a program.

    `auto` is one on a CPU, where a run alone is as fast or faster, and on a GPU as many as fit into `_GPU_BYTES`, by
    the memory of the compiled program for one.
    """
    together = context.together
    if together is True:
        return len(runs)
    if not isinstance(together, str):
        return max(1, together)
    if jax.default_backend() == "cpu" or len(runs) == 1:
        return 1
    group, _ = load(context, runs[:1])
    with one_line_if_users_code(context.plan.cfg), one_line_if_out_of_memory(group):
        return max(1, min(len(runs), _GPU_BYTES // context.programs.footprint(group)))


def load(context: Context, runs: Sequence[Run]) -> tuple[Group, list[ScaledSplit]]:
    """The runs' arrays, and each run with what scoring needs; all on the host.

    Raises ConfigError where the method's state for the training rows exceeds the free memory.
    """
    method, dataset, card = context.method, context.dataset, context.card
    indices = [splits.indices(card, dataset, run.split, output=run.output) for run in runs]
    n, d = len(indices[0][0]), dataset.X.shape[1]
    of_rows = method.row_memory(n) if isinstance(method, HasRowMemory) else 0
    size = len(runs) * n * np.dtype(context.precision).itemsize
    streams = context.streams(n, size * (d + 1))
    prepared = [
        data_layer.prepare(
            dataset,
            *parts,
            inputs=context.inputs,
            targets=context.targets,
            output=run.output,
            most=SAMPLE if streams else None,
        )
        for run, parts in zip(runs, indices, strict=True)
    ]
    subject = f"{len(runs)} x {n} rows and what the method holds for each"
    held = size * (of_rows if streams else d + 1 + of_rows)
    memory.require_memory(held, subject, "inducing points or samples")
    names = (card["name"], context.seed)
    members = [run.member for run in runs]
    init_keys = [run_key("init", *names, *member.identity.values()) for member in members]
    step_keys = [run_key("step", method.name, *names, *member.identity.values()) for member in members]
    rows = {} if streams else {"X": context.devices.padded(n), "y": context.devices.padded(n)}
    arrays = {
        field: np.stack([fill(row_range := getattr(p, field), rows.get(field, len(row_range))) for p in prepared])
        for field in ("X", "y", "X_test", "y_test")
    }
    typed: dict[str, Any] = {field: array.astype(context.precision, copy=False) for field, array in arrays.items()}
    typed["unit"] = np.stack([p.X_scale for p in prepared]).astype(context.precision)
    typed |= {"init_keys": jnp.stack(init_keys), "step_keys": jnp.stack(step_keys)}
    group = Group(members=members, rows=n, classes=prepared[0].classes, **typed)
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

    stream = Stream(
        rows,
        total=len(prepared[0].train_rows),
        size=batch_size,
        last=context.method.steps,
        row_bytes=X[0, 0].nbytes,
        keys=group.step_keys,
        to_devices=context.devices.everywhere,
    )
    n = min(SAMPLE, stream.total)
    return replace(group, X=X[:, :n], y=y[:, :n], rows=n, stream=stream)
