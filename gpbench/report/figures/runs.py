"""A picture of one run from what `run.keep` keeps: its effects, or its predictions for one or two inputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.errors import ConfigError, nearest
from gpbench.metrics import METRICS
from gpbench.records.record import Record
from gpbench.report.figures import effects, predictions, style

_COLUMNS = 5
_NOTE = (
    "Mean ± 2 standard deviations, dotted a band that holds the whole effect with probability 0.95; in titles the"
    " share of the predictor's variance under independent uniform inputs in the training range, posterior mean and"
    " 95 % interval."
)


def draw_run(record: Record, kept: Mapping[str, ndarray], columns: Sequence[str] = ()) -> Figure:
    """Draws every effect of an additive model, or the predictive mean with the training rows.

    An effect of one input has its mean ± 2 standard deviations, dotted the band that holds it as a whole, a rug of some
    training rows, and its share of the variance under independent uniform inputs, mean and 95 % interval; an
    interaction has contours.  `columns` are the names of the inputs; without them they have numbers.
    Raises ConfigError for a run that kept nothing that can be drawn.
    """
    with style.context():
        if "kept_shares" in kept:
            figure = _effects(kept, columns)
        elif "kept_mean" in kept and kept["kept_X"].shape[1] == 1:
            figure = style.figure(4.2, 3.0)
            predictions.curve(figure.subplots(), kept)
        elif "kept_mean" in kept:
            figure = style.figure(3.6, 3.2)
            predictions.surface(figure.subplots(), kept, kept["kept_mean"])
        else:
            raise ConfigError(
                f"run {record.id} kept nothing to draw: run it again with run.keep=true (regression"
                " with one or two inputs, or method=gam)"
            )
        name = ", ".join(filter(None, [record.method, record.setting, f"protocol {record.protocol}"]))
        notes = [*([_NOTE, _outside(record)] if "kept_shares" in kept else []), f"run {record.id}"]
        style.caption(figure, f"{record.dataset}, split {record.split}: {name}", [*filter(None, notes)])
    return figure


def _joint_band(axis: Axes, kept: Mapping[str, ndarray], i: int) -> None:
    """Dotted lines on both sides of the i-th effect of one input, where the run kept how far they are."""
    if "kept_effect1_joint" in kept:
        x, mean, std = effects.original(kept, 1, i)
        for side in (-1, 1):
            edge = mean + side * kept["kept_effect1_joint"][i] * std
            axis.plot(x[:, 0], edge, color=style.POSITIVE, linestyle="dotted", linewidth=0.8)


def _outside(record: Record) -> str:
    """How many test rows the effects are not drawn for; "" where the record does not say."""
    if (outside := record.test_rows_outside) is None:
        return ""
    return f"An input of {outside} of the {record.test_rows} test rows lies outside the training range."


def _effects(kept: Mapping[str, ndarray], columns: Sequence[str]) -> Figure:
    """A panel for each effect, those of one input first."""
    places = [(size, i) for size in (1, 2) for i in range(len(kept.get(f"kept_effect{size}_inputs", ())))]
    if not places:
        raise ConfigError("all components of this run have three inputs or more, whose effects are not kept")
    width = min(_COLUMNS, len(places))
    rows = -(-len(places) // width)
    figure = style.figure(2.0 * width + 0.3, 1.9 * rows + 0.3)
    axes = figure.subplots(rows, width, squeeze=False).ravel()
    order = [int(c) for size in (1, 2) for c in kept.get(f"kept_effect{size}_place", ())]
    for axis, (size, i), c in zip(axes, places, order):
        if size == 1:
            effects.curve(axis, kept, i, style.POSITIVE)
            _joint_band(axis, kept, i)
        else:
            axis.grid(False)
            effects.surface(axis, kept, i)
        low, high = np.quantile(kept["kept_shares"][:, c], [0.025, 0.975])
        share = f"{100 * kept['kept_shares'][:, c].mean():.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
        inputs = kept[f"kept_effect{size}_inputs"][i].astype(int)
        name = ", ".join(columns[d] for d in inputs) if max(inputs) < len(columns) else axis.get_title()
        axis.set_title(f"{name}: {share}", fontsize=7.5)
    for axis in axes[len(places) :]:
        axis.set_visible(False)
    return figure


_NAMED_BY = ("dataset", "method", "setting", "protocol", "output", "split", "seed")
_PANELS = 4
Traces = Sequence[Mapping[str, ndarray]]


def draw_traces(records: Sequence[Record], traces: Traces, metrics: Sequence[str] = ()) -> Figure:
    """Draws the traces of runs, one for each record, against seconds of training on a logarithmic axis.

    `metrics`, of the records or `objective`, have a panel each; by default the objective and the first three metrics
    that a trace has.  The legend says what differs among the runs.  Runs trained as a group count their share of the
    group's seconds.  Raises ConfigError where no run has a trace, and for a metric that no trace has.
    """
    known = [name for name in ("objective", *METRICS) if any(_has(trace, name) for trace in traces)]
    if not known:
        raise ConfigError("these runs have no traces: use the results folder in which they were trained")
    for name in metrics:
        if name not in known:
            raise ConfigError(f"no trace of these runs has the metric {name!r}; {nearest(name, known)}")
    panels = list(metrics) or known[:_PANELS]
    names = _names(records)
    colours = style.PALETTE.values()
    looks = [(colour, dash) for dash in style.DASHES.values() for colour in colours]
    with style.context():
        figure = style.figure(3.3 * len(panels) + 0.3, 3.0)
        for axis, panel in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
            for i, (record, trace) in enumerate(zip(records, traces, strict=True)):
                if _has(trace, panel):
                    colour, dash = looks[i % len(looks)]
                    _line(axis, record, trace, panel, color=colour, linestyle=dash, label=names[i])
            axis.set(xscale="log", xlabel="seconds of training", title=panel)
        handles = {name: line for axis in figure.axes for line, name in zip(*axis.get_legend_handles_labels())}
        if len(records) > 1:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        style.caption(figure, _title(records), [f"runs {', '.join(record.id for record in records)}"])
    return figure


def _has(trace: Mapping[str, ndarray], name: str) -> bool:
    return name in trace and "seconds" in trace and bool(np.isfinite(trace[name]).any())


def _line(axis: Axes, record: Record, trace: Mapping[str, ndarray], panel: str, **look: Any) -> None:
    seconds = np.asarray(trace["seconds"]) / (record.group or 1)
    axis.plot(seconds, trace[panel], marker="." if len(seconds) == 1 else None, **look)


def _names(records: Sequence[Record]) -> list[str]:
    """What tells each run from the others: the fields in which they differ, or else the id."""
    fields = [key for key in _NAMED_BY if len({getattr(record, key) for record in records}) > 1]
    said = [
        ", ".join(_word(key, value) for key in fields if (value := getattr(record, key)) not in (None, ""))
        for record in records
    ]
    return said if len(set(said)) == len(records) else [record.id for record in records]


def _word(key: str, value: Any) -> str:
    return f"{key} {value}" if key in ("split", "seed") else str(value)


def _title(records: Sequence[Record]) -> str:
    """What all runs share."""
    shared = [key for key in _NAMED_BY if len({getattr(record, key) for record in records}) == 1]
    words = [_word(key, getattr(records[0], key)) for key in shared if getattr(records[0], key) not in (None, "")]
    return ", ".join(words) or "traces"
