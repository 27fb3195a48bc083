"""Predictions of new rows by a recorded run whose trained state was saved (`run.save=true`)."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from gpbench import plugins
from gpbench.config.build import check_recorded
from gpbench.config.values import Config, Run
from gpbench.data import splits
from gpbench.errors import ConfigError, require
from gpbench.log import warn
from gpbench.records.plan import RunPlan
from gpbench.records.record import Record
from gpbench.records.store import Store
from gpbench.train.checkpoint import headers_of, state_of
from gpbench.train.context import Context, load
from gpbench.train.faults import one_line_if_users_code
from gpbench.train.group import Fit, initial


class Predictor:
    """A recorded run with its trained state and its compiled predictions, its data set and that one's card."""

    def __init__(self, store: Store, record: Record, cfg: Config):
        check_recorded(cfg["method"], plugins.folders([*map(Path, cfg["config_dirs"])]))
        card = splits.with_set(cfg["dataset"], record.split_set)  # what a card without one has may change
        alone: Run = {**cfg["run"], "devices": None, "processes": 1, "again": False}
        plan = RunPlan.from_config({**cfg, "dataset": card, "split": record.split, "run": alone})
        runs = [run for run in plan.runs if run.output_name == (record.output or "")]
        require(runs, f"the data set {record.dataset} has no output {record.output!r}", ConfigError)
        self._context = context = Context(replace(plan, runs=runs))
        self.card, self.dataset = context.card, context.dataset
        fault = f"the data set {context.dataset.name} has other data here than the run was trained on"
        require(context.dataset.checksum == record.data_checksum, fault)
        self._group, (self._split,) = load(context, runs)
        start = lambda: jax.tree.map(lambda leaf: leaf[0], initial(context.method, self._group))
        with one_line_if_users_code(cfg, self._group):
            arrays = store.state(record.id, headers_of(start))
            state = state_of(arrays, start()) if arrays else None
            reason = "its state is of another version of its method" if arrays is None else "its state cannot be read"
            require(state is not None, f"{reason}: train it again with run.save=true run.again=true", ConfigError)
        self._fit = Fit(jax.tree.map(lambda leaf: leaf[None], state))
        changes, known = self._group.changes, record.diagnostics or {}
        if changes.recalibration:
            factor = jnp.full(1, known.get("recalibration") or 1.0, context.precision)
            changes = replace(changes, recalibration=replace(changes.recalibration, factor=factor))
            self._group = replace(self._group, changes=changes)

    def predict(self, rows: Float[np.ndarray, "T D"]) -> dict[str, Float[np.ndarray, " T"]]:
        """The predictions of rows in original units, by name: moments and interval of the target, noise included, or
        the `probability of LABEL` of each class."""
        context, split = self._context, self._split
        if split.filler and (count := split.filler.count_absent(rows)):
            warn(f"a level that no training row of this run has: its input is 0 (rows: {count})")
        X = split.scale_inputs(rows)[None].astype(context.precision)
        with one_line_if_users_code(context.plan.cfg):
            predictions = context.programs.predict_new(self._group, replace(self._fit), X)
        arrays = {name: np.asarray(values[0], np.float64) for name, values in predictions.items()}
        if "log_probs" in arrays:
            return {f"probability of {c}": np.exp(p) for c, p in zip(context.dataset.classes, arrays["log_probs"].T)}
        mean, low, high = (split.original_targets(arrays[name]) for name in ("mean", "low95", "high95"))
        rate = {"rate": mean / rows[:, -1]} if split.exposure else {}
        return {"mean": mean, "variance": arrays["var"] * split.y_std**2, "low95": low, "high95": high, **rate}
