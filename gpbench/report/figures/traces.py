"""Metrics along training: a panel for each metric, against seconds of training, averaged over splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray

from gpbench.analysis.statistics import mean_stderr
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.records.arrays import share_seconds
from gpbench.records.record import Record
from gpbench.report.figures import style

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


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
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
