"""Curves along training: a panel per metric, against seconds of training, averaged over splits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy import ndarray

from gpbench.papers.experiments import Experiment
from gpbench.report.figures import style
from gpbench.report.found import Cell

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
    """`panels`: metrics; `colour` and `style`: the keys that colour and dash pattern stand for; `level`: a method whose
    last value is drawn as a line right across."""
    told = experiment.figure or {}
    panels: list[str] = told["panels"]
    keys = [told[name] for name in ("colour", "style") if name in told]
    values = {key: list(dict.fromkeys(cell.job[key] for cell in found)) for key in keys}
    hues = style.colours(values[keys[0]])
    patterns = style.dashes(values[keys[1]]) if len(keys) > 1 else {}

    width = 4.9 if len(panels) == 1 else 3.6 * len(panels)
    figure = style.figure(width, 3.4)
    for axis, metric in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        shown = []
        for cell in found:
            if not (made := curve(cell, metric, arrays)):
                continue
            colour = hues[cell.job[keys[0]]]
            dash = patterns.get(cell.job[keys[1]], "-") if patterns else _stochastic(cell)
            if cell.job["method"] == told.get("level"):
                axis.axhline(made.mean[-1], color=colour, linestyle=style.DASHES[2])
            else:
                axis.plot(made.seconds, made.mean, color=colour, linestyle=dash)
                axis.fill_between(made.seconds, made.mean - made.stderr, made.mean + made.stderr,
                                  color=colour, alpha=0.15, linewidth=0)  # fmt: skip
            shown.append(made)
        _settle(axis, metric, shown)
    handles = _handles(experiment, found, keys, hues, patterns, told.get("level"))
    figure.legend(handles=handles, loc="outside right center" if len(panels) == 1 else "outside upper center",
                  ncols=1 if len(panels) == 1 else min(4, len(handles)))  # fmt: skip
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


def _stochastic(cell: Cell) -> object:
    """Solid for all rows, dashed for minibatches, where the dash stands for nothing else."""
    return style.DASHES[1] if cell.job["method"].endswith("_minibatch") else "-"


def _settle(axis: Axes, metric: str, shown: Sequence[Curve]) -> None:
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel("seconds of training")
    axis.set_ylabel(LABELS.get(metric, metric))
    if not shown:
        return
    # A first, wild value must not flatten the rest: the axis covers 98 % of all points, and every end.
    values = np.concatenate([made.mean for made in shown])
    values = values[np.isfinite(values)]
    ends = [made.mean[-1] for made in shown if np.isfinite(made.mean[-1])]
    low, high = np.quantile(values, [0.01, 0.99])
    low, high = min([low, *ends]), max([high, *ends])
    margin = 0.06 * (high - low) or 0.01
    axis.set_ylim(low - margin, high + margin)


def _handles(experiment: Experiment, found: Sequence[Cell], keys, hues, patterns, level) -> list[Line2D]:
    """Colours first, then dash patterns in black."""

    def dash(value: str) -> object:
        if value == level:
            return style.DASHES[2]
        return style.DASHES[1] if not patterns and value.endswith("_minibatch") else "-"

    first = [Line2D([], [], color=hues[v], linestyle=dash(v), label=experiment.label(keys[0], v)) for v in hues]
    second = [Line2D([], [], color="black", linestyle=p, label=experiment.label(keys[1], v)) for v, p in patterns.items()]
    return first + second
