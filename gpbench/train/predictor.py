"""Predictions of new rows by a recorded run whose trained state was saved (`run.save=true`)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gpbench.data import new_rows
from gpbench.errors import ConfigError
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train.checkpoint import state_of
from gpbench.train.context import Context
from gpbench.train.group import Fit, initial
from gpbench.train.grouping import load
from gpbench.train.programs import lay_out


def predict(store: Store, record: Record, file: Path) -> dict[str, np.ndarray]:
    """The predictions of every row of a table of inputs, a column each with (T,) numbers.

    Of regression `mean` and `variance`, noise included, in original units; of classification `probability of LABEL`
    for each class.  The run's training rows are loaded and scaled once more, and the method's initial state is made
    anew to know the structure of the saved one, which takes the place of its numbers.

    Raises ConfigError for a run without a saved state, or one of another version of its method; DataError for rows that
    cannot be read, and what loading the data raises.
    """
    id = record.id
    if not (arrays := store.state(id)):
        raise ConfigError(f"run {id} has no saved state: train it again with run.save=true run.again=true")
    plan = _plan(store.config(id), record)
    context = Context.of(plan)
    rows = new_rows.read(file, context.card, context.dataset)
    group, (prepared,) = load(context, plan.runs)
    state = state_of(arrays, jax.tree.map(lambda leaf: leaf[0], initial(context.method, group)))
    if state is None:
        raise ConfigError(
            f"run {id} was saved by another version of {record.method}: train it again with"
            " run.save=true run.again=true"
        )
    X = prepared.scaled(rows)[None].astype(context.precision)
    # targets are not known, and their log probabilities not used
    group = replace(group, X_test=X, y_test=np.zeros(X.shape[:2], X.dtype))
    run = Fit(jax.tree.map(lambda leaf: leaf[None], state))
    context.programs.predict(lay_out(context.devices, group), run)
    found = {name: np.asarray(values[0], np.float64) for name, values in run.predictions.items()}
    if "log_probs" in found:
        return {f"probability of {c}": np.exp(p) for c, p in zip(context.dataset.classes, found["log_probs"].T)}
    mean = found["mean"] * prepared.y_std + prepared.y_mean
    return {"mean": mean, "variance": found["var"] * prepared.y_std**2}


def _plan(cfg: Mapping[str, Any], record: Record) -> RunPlan:
    """The plan of this run alone, on one device."""
    alone = {"devices": None, "processes": 1, "again": False}
    plan = RunPlan.of({**cfg, "split": record.split, "run": {**cfg["run"], **alone}})
    outputs = [run for run in plan.runs if run.output_name == (record.output or "")]
    return replace(plan, runs=outputs)
