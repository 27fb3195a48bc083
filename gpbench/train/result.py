"""Results of a trained run: its metrics, its record and the predictions of its test rows."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gpbench import metrics
from gpbench.core import memory
from gpbench.data import splits
from gpbench.data.scaled import ScaledSplit
from gpbench.errors import listed, printable
from gpbench.methods.parts.settings import NoiseMethod
from gpbench.methods.protocols import STOP, HasDiagnostics, HasOptimum, HasSearch, diagnosis
from gpbench.own_metrics import OwnMetrics
from gpbench.records.identity import SCHEMA
from gpbench.records.plan import GAP, Run
from gpbench.records.record import Record
from gpbench.scored import row_stderrs
from gpbench.train.batches import prediction_key
from gpbench.train.context import Context
from gpbench.train.doubts import doubts
from gpbench.train.faults import predictive
from gpbench.train.group import Fit, Group, Predictions


def scores(prepared: Sequence[ScaledSplit], predictions: Predictions) -> dict[str, np.ndarray]:
    """Our metrics of every run of a group, (members,) each."""
    rows = [metrics.score(split.task, scored(split, predictions, i)) for i, split in enumerate(prepared)]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def scored(prepared: ScaledSplit, predictions: Predictions, i: int) -> metrics.Scored:
    """The test set of the i-th run of a group, with its predictions, in the units of training."""
    values: dict[str, Any] = {name: np.asarray(array[i], np.float64)[()] for name, array in predictions.items()}
    values |= {"y": prepared.y_test, "y_mean": prepared.y_mean, "y_std": prepared.y_std}
    return metrics.Scored(**values, y_train_var=prepared.y_variance, train_rows=len(prepared.train_rows))


def metric_fields(task: str, test_set: metrics.Scored, own_metrics: OwnMetrics, finite: bool = True) -> dict[str, dict]:
    """The fields `metrics`, `row_stderr`, `undefined` and `own_metrics` of a record, where there are any."""
    undefined = metrics.undefined(task, test_set)
    is_whole = test_set.log_prob.size > 0  # another program's samples or quantiles have none for metrics of users
    own, own_errors = own_metrics.score(task, test_set.in_original_units()) if is_whole else ({}, {})
    values = metrics.score(task, test_set) | own
    errors = row_stderrs((name for name in values if name not in undefined), test_set) | own_errors
    undefined |= {name: "NaN" for name, value in own.items() if np.isnan(value)}
    return {
        "metrics": values if finite else dict.fromkeys(values),
        **({"row_stderr": errors} if finite and errors else {}),
        **({"undefined": undefined} if finite and undefined else {}),
        **({"own_metrics": own_metrics.describe(own)} if own else {}),
    }


def predictions_by_row(prepared: ScaledSplit, predictions: Predictions, i: int) -> dict[str, np.ndarray]:
    """The predictions of a run in original units, as `gpbench.records.arrays` describes them."""
    shift, scale = prepared.y_mean, prepared.y_std
    ours = {name: np.asarray(array[i], np.float64) for name, array in predictions.items()}
    columns = {"row": prepared.test_rows, "target": prepared.y_test * scale + shift}
    if "log_prob" in ours:
        columns["log_prob"] = ours["log_prob"] - np.log(scale)
    if "log_probs" in ours:
        return columns | {f"log_prob_{c}": column for c, column in enumerate(ours["log_probs"].T)}
    columns |= {name: ours[name] * scale + shift for name in ("mean", "low95", "high95") if name in ours}
    columns |= {name: ours[name] for name in ("cdf", "below") if name in ours}
    return columns | ({"variance": ours["var"] * scale**2} if "var" in ours else {})


_LATE = 0.7  # the part of the training after which the objective's slope is taken


def _last_slope(trace: dict[str, np.ndarray], i: int, rows: int) -> float | None:
    """The rise of the i-th run's objective over a tenth of the training at its end, in nats per training row, by the
    least-squares line through the trace's last points; None where there are fewer than two."""
    ends, means = (np.asarray(trace.get(name, ()), float) for name in ("step", "objective_mean"))
    if not len(ends) or len(means) != len(ends):  # as in a checkpoint of an earlier version
        return None
    middles, late = 0.5 * (np.append(0.0, ends[:-1]) + ends), ends > _LATE * ends[-1]
    if late.sum() < 2 or not np.isfinite(means[late, i]).all():
        return None
    slope, _ = np.polyfit(middles[late] - ends[-1], means[late, i], 1)
    return float(slope * ends[-1] / 10.0 / rows)


_GAP_ROWS = 500  # first training rows, which all methods see, that the generalisation gap compares with test rows


def record(
    context: Context, run: Run, fit: Fit, i: int, prepared: ScaledSplit, group: Group, before: Predictions
) -> Record:
    """The record of the i-th run of a group, which share seconds; `before` are predictions without recalibration."""
    method = context.method
    size = len(fit.predictions["log_prob"])
    objective = fit.trace["objective"][-1][i] if "objective" in fit.trace else np.nan
    has_objective = method.steps == 0 or math.isfinite(objective)
    finite = has_objective and bool(np.isfinite(fit.predictions["log_prob"][i]).all())
    state, message = context.state(fit, i), None
    if not finite:
        fault = "the predictions are not finite" if has_objective else "the objective is not finite"
        if "var" in fit.predictions and (fit.predictions["var"][i] < 0).any():
            fault = "a predictive variance is negative"
        message = f"at step {fit.step} of {method.steps}: {diagnosis(method, state) or fault}"
    test_set = scored(prepared, fit.predictions, i)
    diagnostics: dict[str, Any] = dict(method.diagnostics(state)) if isinstance(method, HasDiagnostics) else {}
    converged = None if fit.converged is None else fit.converged[i]
    if isinstance(method, HasOptimum):
        converged = None if (optimum := method.optimum(state)) is None else bool(optimum)
    ended = fit.converged is not None and fit.converged[i] and fit.step < method.steps
    if not ended and (slope := _last_slope(fit.trace, i, len(prepared.train_rows))) is not None:
        diagnostics["slope"] = slope
    if finite:
        noise = method.target_noise if isinstance(method, NoiseMethod) else None
        diagnostics |= doubts(prepared, test_set, state, noise=noise, precision=context.precision)
        if "gap" in context.plan.extras:
            rows = min(_GAP_ROWS, getattr(method, "rows", None) or len(prepared.y))
            X, y = (jnp.asarray(array[:rows], context.precision) for array in (prepared.X, prepared.y))
            changes = jax.tree.map(lambda leaf: leaf[i], group.changes)
            value = predictive(method, state, X, key=prediction_key(group.step_keys[i]), changes=changes)
            diagnostics[GAP] = float(np.mean(value.log_prob(y)) - np.mean(test_set.log_prob))
        if change := group.changes.recalibration:
            scores = metrics.score(prepared.task, scored(prepared, before, i))
            diagnostics |= {f"before_{name}": value for name, value in scores.items() if np.isfinite(value)}
            diagnostics["recalibration"] = change.factor[i]
    extras = {"settings": method.settings(state) if isinstance(method, HasSearch) else {}, "diagnostics": diagnostics}
    stop = int(extras["settings"].get(STOP, fit.step))  # steps beyond it, up to the next point of the trace, are none
    return Record.create(
        **_identity(context, run),
        status="done" if finite else "diverged",
        message=message,
        **metric_fields(prepared.task, test_set, context.own_metrics, finite),
        seconds={name: seconds / size for name, seconds in fit.seconds.items()},
        group=size,
        objective=float(objective),
        **{name: {key: float(value) for key, value in section.items()} for name, section in extras.items() if section},
        steps=min(fit.step, stop),
        converged=converged,
        peak_memory_mb=memory.peak_mb(),
        step_memory_mb=None if fit.step_memory is None else fit.step_memory / 1e6,
        step_operations=fit.step_operations,
        row_operations=fit.row_operations,
        train_rows=len(prepared.train_rows),
        test_rows=len(prepared.y_test),
        test_rows_outside=prepared.outside,
        held_out=prepared.held_out,
        scaled_by_all_rows=prepared.scaled_by_all_rows,
        cpu_seconds=fit.cpu_seconds / size,
    )


def failure(context: Context, run: Run, reason: str, message: str) -> Record:
    """The record of a run without predictions: none of its metrics has a value."""
    names = metrics.names(context.card["task"])
    return Record.create(
        **_identity(context, run),
        status="failed",
        message=message,
        metrics=dict.fromkeys(names),
        undefined=dict.fromkeys(names, reason),
        seconds={},
        cpu_limit=context.cpu_limit,
    )


def _identity(context: Context, run: Run) -> dict[str, Any]:
    """The fields of a record that are known before the run."""
    return {
        "schema": SCHEMA,
        "id": run.id,
        "cell": run.cell,
        **context.facts,
        "inputs": printable(listed(context.dataset.columns)),
        "target": printable(listed(context.dataset.outputs or [context.dataset.target])),
        "split": run.split,
        "split_set": splits.identity(context.card)["set"],
        "output": None if run.output is None else context.dataset.outputs[run.output],
    }
