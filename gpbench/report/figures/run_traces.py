"""Traces of any runs beside each other: a panel for the objective and for each metric, a line for each run."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.errors import ConfigError, nearest
from gpbench.metrics import METRICS
from gpbench.records.record import Record
from gpbench.report.figures import style

_NAMED_BY = ("dataset", "method", "setting", "protocol", "output", "split", "seed")
_PANELS = 4
Traces = Sequence[Mapping[str, ndarray]]


def draw(records: Sequence[Record], traces: Traces, metrics: Sequence[str] = ()) -> Figure:
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
        ", ".join(_word(key, getattr(record, key)) for key in fields if getattr(record, key) not in (None, ""))
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
