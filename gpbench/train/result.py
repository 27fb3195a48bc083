"""Results of a trained run: metrics, record, predictions of test rows, and what it keeps for pictures."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from gpbench import metrics
from gpbench.core import memory
from gpbench.core.kernels import Kernel, Stationary
from gpbench.data import splits
from gpbench.data.scaled import ScaledSplit
from gpbench.errors import ConfigError, listed, printable, require
from gpbench.methods.base import Method
from gpbench.methods.parts.settings import NoiseMethod
from gpbench.methods.protocols import (
    STOP,
    HasArrays,
    HasDiagnostics,
    HasEffects,
    HasLatents,
    HasOptimum,
    HasSearch,
    diagnosis,
    learned,
)
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


_PER_AXIS = {1: 1200, 2: 120}  # points of the grid, by the number of inputs
_MARGIN = {1: 1.0, 2: 0.05}  # of the range of the rows on either side: with one input, a picture may extrapolate


def check_keep(method: Method, group: Group) -> None:
    """Raises ConfigError where there would be nothing to draw: more than two inputs, neither effects nor a kernel."""
    inputs, changes = group.X.shape[-1], group.changes
    fault = "run.keep draws predictions without a transform or a recalibration"
    mend = "leave out protocol.targets and protocol.recalibrate"
    require(not (changes.warp or changes.recalibration), f"{fault}: {mend}", ConfigError)
    fault = "run.keep draws no counts with an exposure: leave it out, or take the exposure out of the card"
    require(not changes.exposure, fault, ConfigError)
    shows = inputs in _PER_AXIS or isinstance(method, HasEffects) or hasattr(method, "kernel")
    fault = f"run.keep=true is for data with one or two inputs, and these have {inputs}"
    mend = "leave it, or choose method=gam, or a method with a kernel, whose lengthscales are kept"
    require(shows, f"{fault}; {mend}", ConfigError)


def kept_arrays(
    method: Method, state: Any, prepared: ScaledSplit, precision: str, *, key: Key[Array, ""]
) -> dict[str, np.ndarray]:
    """The training rows, a grid around them with the predictions there, and what the method keeps; all scaled.
    `kept_X` (n, D), `kept_y` (n,), and `kept_X_shift`, `kept_X_scale` (D,), `kept_y_mean`, `kept_y_std` () to undo
    their scaling; `kept_grid` (G, D); `kept_log_probs` (G, C), or `kept_mean` and `kept_var` (G,); `kept_hidden` (G, H)
    of hidden units; `kept_inducing` (M, D) and the like; `kept_lengthscales` (D,) where the kernel, of a deep GP that
    of its first layer, has one for each input.  With more than two inputs there is no grid, and there are training rows
    only beside effects.  `key` is that of the member's steps: sampled predictions are those that were scored."""
    X = prepared.X
    drawn: dict[str, Array] = dict(jax.jit(method.arrays)(state)) if isinstance(method, HasArrays) else {}
    drawn |= jax.jit(method.effects)(state) if isinstance(method, HasEffects) else {}
    kernel = next(iter(learned(state, Kernel)), None)  # type: ignore[type-abstract]
    if isinstance(kernel, Stationary) and kernel.log_lengthscale2.shape == (X.shape[1],) and X.shape[1] > 1:
        drawn["lengthscales"] = kernel.lengthscales
    has_rows = X.shape[1] in _PER_AXIS or isinstance(method, HasEffects)
    names = ("X", "y", "X_shift", "X_scale", "y_mean", "y_std") if has_rows else ()
    known: dict[str, Any] = {name: getattr(prepared, name) for name in names}
    if X.shape[1] in _PER_AXIS:
        known["grid"] = _grid(X)
        points = jnp.asarray(known["grid"], precision)
        drawn |= jax.jit(lambda state, X: method.predict(state, X, key=prediction_key(key)).summary())(state, points)
        if isinstance(method, HasLatents):
            drawn |= jax.jit(method.latents)(state, points)
    # float32 is finer than any picture
    return {f"kept_{name}": np.asarray(value, np.float32) for name, value in (known | drawn).items()}


def _grid(X: Float[np.ndarray, "n D"]) -> Float[np.ndarray, "G D"]:
    low, high = X.min(axis=0), X.max(axis=0)
    margin = _MARGIN[X.shape[1]] * (high - low)
    axes = np.linspace(low - margin, high + margin, _PER_AXIS[X.shape[1]]).T
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
