"""Regression with one input: a panel for each run with its rows, predictive mean ± 2 standard deviations and bases."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.analysis.blocks import labels
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.records.record import Record
from gpbench.report.figures import style

_MARGIN = 0.05


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws a panel for each cell, whose title is what its job has of the key or keys `label`, or else its method.

    `reference`, optional, is a method: its mean ± 2 standard deviations are dashed lines in the other panels.  `margin`
    is the part of the range of the rows that is drawn on either side of them.
    """
    options = experiment.figure or {}
    runs = [arrays(cell.done[0].id) if cell.done else {} for cell in planned]
    lines = next((run for cell, run in zip(planned, runs) if cell.method == options.get("reference")), None)
    figure = style.figure(3.1 * len(planned) + 0.3, 2.9)
    axes = figure.subplots(1, len(planned), sharex=True, sharey=True, squeeze=False)[0]
    for axis, cell, run in zip(axes, planned, runs):
        axis.set_title(_title(experiment, options["label"], cell), fontsize=9)
        if "kept_mean" in run:
            panel(axis, run, options.get("margin", _MARGIN), None if run is lines else lines)
            axis.set_xlabel(_caption(cell.done[0]))
        else:
            axis.text(0.5, 0.5, "missing", transform=axis.transAxes, ha="center", color="#888888")
    return figure


def _title(experiment: Experiment, keys: str | Sequence[str], cell: Cell) -> str:
    first = keys if isinstance(keys, str) else keys[0]
    return " ".join(labels(experiment, keys, cell)) or experiment.label(first, cell.method)


def _caption(record: Record) -> str:
    """The nMSE, and the number of relevance vectors where the method has them."""
    count = (record.diagnostics or {}).get("relevant")
    return f"nMSE {record.metrics['nmse']:.3f}" + (f", {count:.0f} relevance vectors" if count is not None else "")


def panel(
    axis: Axes, run: Mapping[str, ndarray], margin: float = _MARGIN, reference: Mapping[str, ndarray] | None = None
) -> None:
    """Draws the arrays of one run, in the scaled units in which it was trained."""
    rows = run["kept_X"][:, 0]
    low, high = rows.min() - margin * np.ptp(rows), rows.max() + margin * np.ptp(rows)
    x, mean, spread = _within(run, low, high)
    axis.scatter(rows, run["kept_y"], s=3, color="#888888", linewidths=0, alpha=0.7)
    axis.fill_between(x, mean - spread, mean + spread, color=style.POSITIVE, alpha=0.2, linewidth=0)
    axis.plot(x, mean, color=style.POSITIVE)
    if reference:
        x, mean, spread = _within(reference, low, high)
        for edge in (mean - spread, mean + spread):
            axis.plot(x, edge, color="black", linestyle="dashed", linewidth=0.8)
    axis.set_xlim(x[0], x[-1])
    bottom, top = axis.get_ylim()
    bases = [run[name][:, 0] for name in ("kept_inducing", "kept_covariance_inducing") if name in run]
    for height, Z, colour in zip((0.03, 0.08), bases, ("black", style.NEGATIVE)):
        level = np.full(len(Z), bottom + height * (top - bottom))
        axis.plot(Z, level, "|", color=colour, markersize=5, markeredgewidth=0.8)
    axis.set_ylim(bottom, top)


def _within(run: Mapping[str, ndarray], low: float, high: float) -> tuple[Float[ndarray, " G"], ...]:
    """The grid from `low` to `high`, the mean and two standard deviations there."""
    x = run["kept_grid"][:, 0]
    inside = (x >= low) & (x <= high)
    return x[inside], run["kept_mean"][inside], 2.0 * np.sqrt(run["kept_var"][inside])
