"""Curves along training: a panel per metric, against seconds of training, averaged over splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy import ndarray

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style

LABELS = {
    "nll": "negative test log-likelihood", "error": "test error", "objective": r"$\log\,Z_q$", "rmse": "test RMSE",
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """A metric along training: mean and standard error over splits at each point, and the seconds of one split."""

    seconds: Float[ndarray, " T"]
    mean: Float[ndarray, " T"]
    stderr: Float[ndarray, " T"]


def draw(experiment: Experiment, found: Sequence[Cell], arrays: Callable) -> Figure:
    """`panels`: metrics; `colour` and `style`: the keys that colour and dash pattern stand for; `vertical: log` for
    metrics that fall by factors; `level`: a method whose last value is drawn as a line right across."""
    told = experiment.figure or {}
    panels: list[str] = told["panels"]
    keys = [told[name] for name in ("colour", "style") if name in told]
    values = {key: list(dict.fromkeys(cell.job[key] for cell in found)) for key in keys}
    hues = style.colours(values[keys[0]])
    patterns: dict[str, Any] = dict(style.dashes(values[keys[1]])) if len(keys) > 1 else {}
    level = told.get("level")
    # Without a key of their own dashes are minibatches, where there are runs on all rows too.
    minibatch = {value for value in hues if value.endswith("_minibatch")}
    dashed: dict[str, Any] = {}
    if not patterns and not minibatch >= hues.keys() - {level}:
        dashed = dict.fromkeys(minibatch, style.DASHES[1])

    figure = style.figure(2.0 + 3.5 * len(panels), 3.4)
    for axis, metric in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        shown = []
        for cell in found:
            if not (made := curve(cell, metric, arrays)):
                continue
            colour = hues[cell.job[keys[0]]]
            dash = patterns[cell.job[keys[1]]] if patterns else dashed.get(cell.job[keys[0]], "-")
            if cell.job["method"] == level:
                axis.axhline(made.mean[-1], color=colour, linestyle=style.DASHES[2])
            else:
                axis.plot(made.seconds, made.mean, color=colour, linestyle=dash)
                axis.fill_between(made.seconds, made.mean - made.stderr, made.mean + made.stderr,
                                  color=colour, alpha=0.15, linewidth=0)  # fmt: skip
            shown.append(made)
        _settle(axis, metric, shown, told.get("vertical", "linear"))
    if level:
        dashed[level] = style.DASHES[2]
    handles = [
        Line2D([], [], color=hue, linestyle=dashed.get(value, "-"), label=experiment.label(keys[0], value))
        for value, hue in hues.items()
    ]
    handles += [
        Line2D([], [], color="black", linestyle=patterns[value], label=experiment.label(keys[1], value))
        for value in patterns
    ]
    figure.legend(handles=handles, loc="outside right center")
    return figure


def curve(cell: Cell, metric: str, arrays: Callable[[str], Mapping[str, ndarray]]) -> Curve | None:
    """The cell's curve over the splits that did not diverge, as far as all of them go; None where there is none.

    Splits that were trained in one program have its seconds in their traces: each has its share of them.
    """
    traces = [(record, arrays(record["id"])) for record in cell.done]
    traces = [(record, trace) for record, trace in traces if metric in trace and len(trace[metric])]
    if not traces:
        return None
    last = min(len(trace[metric]) for _, trace in traces)
    seconds = np.mean([trace["seconds"][:last] / record.get("group", 1) for record, trace in traces], axis=0)
    values = np.stack([trace[metric][:last] for _, trace in traces])
    n = len(values)
    stderr = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(last)
    return Curve(seconds, values.mean(axis=0), stderr)


def _settle(axis: Axes, metric: str, shown: Sequence[Curve], vertical: str) -> None:
    axis.set(xscale="log", yscale=vertical, xlabel="seconds of training", ylabel=LABELS.get(metric, metric))
    if not shown:
        return
    # A first, wild value must not flatten the rest: the axis covers 98 % of all points, and every end.
    values = np.concatenate([made.mean for made in shown])
    values = values[np.isfinite(values) & ((values > 0) | (vertical == "linear"))]
    scale, back = (np.log, np.exp) if vertical == "log" else (np.array, np.array)
    ends = [made.mean[-1] for made in shown if np.isfinite(made.mean[-1])]
    low, high = np.quantile(values, [0.01, 0.99])
    low, high = scale(min([low, *ends])), scale(max([high, *ends]))
    margin = 0.06 * (high - low) or 0.01
    axis.set_ylim(float(back(low - margin)), float(back(high + margin)))
    for one in (axis.xaxis, axis.yaxis):
        if one.get_scale() == "log":
            low, high = one.get_view_interval()
            one.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
            one.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
            one.set_minor_formatter(NullFormatter())
