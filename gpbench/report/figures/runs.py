"""Figures of runs: the effects or predictions that a run kept (`run.keep`), traces of several runs, and metrics along
the training of an experiment's cells, averaged over splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray

from gpbench.analysis import effects
from gpbench.analysis.statistics import mean_stderr
from gpbench.errors import ConfigError, require_known
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.metrics import METRICS
from gpbench.records.arrays import share_seconds
from gpbench.records.record import Record
from gpbench.report.figures import predictions, style

_PANELS = 4
_Traces = Sequence[Mapping[str, ndarray]]
_COLUMNS = 5
_NOTE = (
    "Mean ± 2 standard deviations, dotted a band that holds the whole effect with probability 0.95; in titles the"
    " share of the predictor's variance under independent uniform inputs in the training range, posterior mean and"
    " 95 % interval."
)


def draw_fit(record: Record, arrays: Mapping[str, ndarray]) -> style.Picture:
    """Draws the predictive mean, or the probability of a class, with the training rows."""
    inputs = arrays["kept_X"].shape[1]
    size = (4.2, 3.0) if inputs == 1 else (3.6, 3.2) if "kept_mean" in arrays else (3.9, 3.5)
    figure = style.figure(*size)
    axis = figure.subplots()
    if "kept_mean" in arrays and inputs == 1:
        predictions.curve(axis, arrays)
    elif "kept_mean" in arrays:
        predictions.surface(axis, arrays, arrays["kept_mean"])
    elif "kept_log_probs" in arrays and inputs == 2 == arrays["kept_log_probs"].shape[1]:
        axis.grid(False)
        predictions.boundary(axis, arrays)
    else:
        mend = "run it again with run.keep=true (regression with one or two inputs, or method=gam)"
        raise ConfigError(f"run {record.id} kept nothing to draw: {mend}")
    return figure


def draw_learning(record: Record, trace: Mapping[str, ndarray]) -> style.Picture:
    """Draws the trace of a run: a column for each metric, against seconds of training above and steps below."""
    known = traced_metrics([trace])
    panels = [name for name in ("objective", "nll", "error", "rmse", "test_ll") if name in known] or known[:_PANELS]
    figure = style.figure(2.6 * len(panels) + 0.3, 4.2)
    axes = figure.subplots(2, len(panels), sharey="col", squeeze=False)
    for above, below, metric in zip(*axes, panels):
        _line(above, record, trace, metric, color=style.PALETTE["blue"])
        below.plot(trace["step"], trace[metric], color=style.PALETTE["blue"])
        above.set(xscale="log", xlabel="seconds of training", title=metric)
        below.set(xscale="log", xlabel="steps")
        style.number_ticks(above.xaxis, below.xaxis)
    return figure


def traced_metrics(traces: _Traces) -> list[str]:
    """The metrics, and `objective`, that some of these traces have."""
    return [name for name in ("objective", *METRICS) if any(_is_traced(trace, name) for trace in traces)]


def draw_effects(record: Record, arrays: Mapping[str, ndarray], columns: Sequence[str] = ()) -> style.Picture:
    """Draws a panel for each effect of an additive model, those of one input first; interactions have contours."""
    panels = effects.places(arrays)
    if not panels:
        raise ConfigError("all components of this run have three inputs or more, whose effects are not kept")
    width = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // width)
    figure = style.figure(2.0 * width + 0.3, 1.9 * rows + 0.3)
    axes = figure.subplots(rows, width, squeeze=False).ravel()
    order = [int(c) for size in (1, 2) for c in arrays.get(f"kept_effect{size}_place", ())]
    for axis, (size, i), c in zip(axes, panels, order):
        if size == 1:
            predictions.effect_curve(axis, arrays, i, style.POSITIVE)
            x, mean, std = effects.original(arrays, 1, i)
            for side in (-1, 1) if "kept_effect1_joint" in arrays else ():  # the simultaneous band
                edge = mean + side * arrays["kept_effect1_joint"][i] * std
                axis.plot(x[:, 0], edge, color=style.POSITIVE, linestyle="dotted", linewidth=0.8)
        else:
            axis.grid(False)
            predictions.effect_surface(axis, arrays, i)
        low, high = np.quantile(arrays["kept_shares"][:, c], [0.025, 0.975])
        share = f"{100 * arrays['kept_shares'][:, c].mean():.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        inputs = arrays[f"kept_effect{size}_inputs"][i].astype(int)
        name = ", ".join(columns[d] for d in inputs) if max(inputs) < len(columns) else axis.get_title()
        axis.set_title(f"{name}: {share}", fontsize=7.5)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    outside = record.test_rows_outside
    line = f"An input of {outside} of the {record.test_rows} test rows lies outside the training range."
    figure.notes = [_NOTE] if outside is None else [_NOTE, line]
    return figure


_NAMED_BY = ("dataset", "method", "setting", "protocol", "output", "split", "seed")


@style.context()
def draw_traces(records: Sequence[Record], traces: _Traces, metrics: Sequence[str] = ()) -> Figure:
    """Draws traces of runs against seconds of training on a logarithmic axis; the legend has their differences."""
    known = traced_metrics(traces)
    if not known:
        raise ConfigError("these runs have no traces: use the results folder in which they were trained")
    for name in metrics:
        require_known(name, known, f"no trace of these runs has the metric {name!r}")
    panels = list(metrics) or known[:_PANELS]
    # the fields in which the runs differ, or else their ids; and those that they share
    differing = [key for key in _NAMED_BY if len({getattr(record, key) for record in records}) > 1]
    names = [_words(record, differing) for record in records]
    names = names if len(set(names)) == len(records) else [record.id for record in records]
    shared = _words(records[0], [key for key in _NAMED_BY if key not in differing])
    colours = style.PALETTE.values()
    looks = [(colour, dash) for dash in style.DASHES.values() for colour in colours]
    figure = style.figure(3.3 * len(panels) + 0.3, 3.0)
    for axis, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        for i, (record, trace) in enumerate(zip(records, traces, strict=True)):
            if _is_traced(trace, panel):
                colour, dash = looks[i % len(looks)]
                _line(axis, record, trace, panel, color=colour, linestyle=dash, label=names[i])
        axis.set(xscale="log", xlabel="seconds of training", title=panel)
        style.number_ticks(axis.xaxis)
    handles = {name: line for axis in figure.axes for line, name in zip(*axis.get_legend_handles_labels())}
    if len(records) > 1:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
    style.caption(figure, shared or "traces", [f"runs {', '.join(record.id for record in records)}"])
    return figure


def _is_traced(trace: Mapping[str, ndarray], name: str) -> bool:
    return name in trace and "seconds" in trace and bool(np.isfinite(trace[name]).any())


def _line(axis: Axes, record: Record, trace: Mapping[str, ndarray], panel: str, **look: Any) -> None:
    seconds = share_seconds(record, trace)["seconds"]
    axis.plot(seconds, trace[panel], marker="." if len(seconds) == 1 else None, **look)


def _words(record: Record, keys: Sequence[str]) -> str:
    values = {key: value for key in keys if (value := getattr(record, key)) not in (None, "")}
    return ", ".join(f"{key} {value}" if key in ("split", "seed") else str(value) for key, value in values.items())


_LABELS = {"nll": "negative test log-likelihood", "error": "test error", "rmse": "test RMSE"}
"""Labels of vertical axes; an experiment may have its own under `labels: axes`."""


@dataclass(frozen=True)
class _Curve:
    """A metric along training: mean and standard error over splits at each point, and the seconds of one split."""

    seconds: Float[ndarray, " T"]
    mean: Float[ndarray, " T"]
    stderr: Float[ndarray, " T"]


def curve(records: Sequence[Record], metric: str, arrays: Callable[[str], Mapping[str, ndarray]]) -> _Curve | None:
    """The curve over these runs, of which one that ended early keeps its last values; None without a trace."""
    by_id = {record.id: share_seconds(record, arrays(record.id)) for record in records}
    traces = [trace for trace in by_id.values() if metric in trace and len(trace[metric])]
    if not traces:
        return None
    if timeless := [id for id, trace in by_id.items() if metric in trace and "seconds" not in trace]:
        raise ConfigError(f"the trace of {' '.join(timeless)} has no seconds, against which it is drawn; run it again")
    length = max(len(trace[metric]) for trace in traces)
    extend = lambda values: np.pad(values, (0, length - len(values)), mode="edge")
    seconds = np.mean([extend(trace["seconds"]) for trace in traces], axis=0)
    points = np.stack([extend(trace[metric]) for trace in traces], axis=1).tolist()
    mean, stderr = zip(*map(mean_stderr, points))
    return _Curve(seconds, np.array(mean), np.array([value or 0.0 for value in stderr]))


def draw_curves(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws the curves of all cells, a panel for each metric."""
    options = experiment.figure
    panels, level, vertical = options["panels"], options.get("level"), options.get("vertical", "linear")
    values = lambda key: list(dict.fromkeys(cell.job[key] for cell in planned))
    colour_key, dash_key = options["colour"], options.get("style", options["colour"])
    patterns = dict(options.get("dashes") or {})
    if dash_key == colour_key:  # dash patterns without a key of their own are the exception
        patterns = {value: "dotted" if value == level else "solid" for value in values(dash_key)} | patterns
    colours = style.colours(values(colour_key), options.get("colours"))
    dashes = style.dashes(values(dash_key), patterns)
    figure = style.figure(2.0 + 3.5 * len(panels), 3.4)
    for axis, metric in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        curves = []
        for cell in planned:
            if line := curve(cell.finished, metric, arrays):
                value, dash = cell.job[colour_key], dashes[cell.job[dash_key]]
                curves.append(line)
                if value == level:
                    axis.axhline(line.mean[-1], color=colours[value], linestyle=dash)
                    continue
                low, high = line.mean - line.stderr, line.mean + line.stderr
                axis.plot(line.seconds, line.mean, color=colours[value], linestyle=dash)
                axis.fill_between(line.seconds, low, high, color=colours[value], alpha=0.15, linewidth=0)
        label = experiment.label("axes", metric)
        axis.set(xlabel="seconds of training", ylabel=_LABELS.get(metric, metric) if label == metric else label)
        _scale(axis, curves, vertical)
        if not curves:
            style.say(axis, "missing")
    separate = dash_key != colour_key
    hues = {value: (hue, style.DASHES["solid"] if separate else dashes[value]) for value, hue in colours.items()}
    looks = [(colour_key, value, hue, dash) for value, (hue, dash) in hues.items()]
    looks += [(dash_key, value, "black", dash) for value, dash in dashes.items()] if separate else []
    handles = [Line2D([], [], color=hue, linestyle=dash, label=experiment.label(key, v)) for key, v, hue, dash in looks]
    figure.legend(handles=handles, loc="outside right center")
    return figure


def _scale(axis: Axes, curves: Sequence[_Curve], vertical: str) -> None:
    axis.set(xscale="log", yscale=vertical)
    if not curves:
        return
    # The vertical range covers 98 % of all points and every last value, so that extreme initial values do not set it.
    values = np.concatenate([curve.mean for curve in curves])
    values = values[np.isfinite(values) & ((values > 0) | (vertical == "linear"))]
    scale, inverse = (np.log, np.exp) if vertical == "log" else (np.array, np.array)
    ends = [curve.mean[-1] for curve in curves if np.isfinite(curve.mean[-1])]
    low, high = np.quantile(values, [0.01, 0.99])
    low, high = scale(min([low, *ends])), scale(max([high, *ends]))
    margin = 0.06 * (high - low) or 0.01
    axis.set_ylim(float(inverse(low - margin)), float(inverse(high + margin)))
    style.number_ticks(axis.xaxis, *([axis.yaxis] if vertical == "log" else []))
