"""Regression with two inputs: training rows, and the predictive mean and hidden units of each run, as colours."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.analysis.blocks import labels
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws the training rows, and a column for each cell: its mean on the first split, and below it its hidden units.

    Columns are titled by the values of the keys `label`.
    """
    keys = (experiment.figure or {})["label"]
    runs = [arrays(cell.done[0].id) if cell.done else {} for cell in planned]
    units = max((run["kept_hidden"].shape[1] for run in runs if "kept_hidden" in run), default=0)
    figure = style.figure(1.9 * (1 + len(planned)) + 0.3, 1.8 * (1 + units) + 0.3)
    axes = figure.subplots(1 + units, 1 + len(planned), sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
    for axis in axes[1:, 0]:
        axis.set_visible(False)
    if first := next((run for run in runs if "kept_mean" in run), None):
        limits = first["kept_y"].min(), first["kept_y"].max()
        axes[0, 0].scatter(
            *first["kept_X"].T, s=4, c=first["kept_y"], vmin=limits[0], vmax=limits[1], linewidths=0, rasterized=True
        )
        axes[0, 0].set_title(f"{len(first['kept_X'])} training rows", fontsize=8)
    for column, cell, run in zip(axes[:, 1:].T, planned, runs):
        label = "-".join(labels(experiment, keys, cell))
        if "kept_mean" in run:
            panel(column[0], run, run["kept_mean"], vmin=limits[0], vmax=limits[1])
            column[0].set_title(f"{label}: nMSE {cell.done[0].metrics['nmse']:.3f}", fontsize=8)
        else:
            column[0].text(0.5, 0.5, f"{label}: missing", transform=column[0].transAxes, ha="center", color="#888888")
        for unit, axis in enumerate(column[1:]):
            if "kept_hidden" in run and unit < run["kept_hidden"].shape[1]:
                panel(axis, run, run["kept_hidden"][:, unit])
                axis.set_title(f"hidden unit {unit + 1}", fontsize=8)
            else:
                axis.set_visible(False)
    return figure


def panel(
    axis: Axes, run: Mapping[str, ndarray], values: ndarray, vmin: float | None = None, vmax: float | None = None
) -> None:
    """Draws values on the grid of a run, with contours."""
    grid = run["kept_grid"]
    side = round(len(grid) ** 0.5)
    xs, ys = grid[:side, 0], grid[::side, 1]
    surface = np.asarray(values).reshape(side, side)
    axis.imshow(surface, extent=(xs[0], xs[-1], ys[0], ys[-1]), origin="lower", aspect="auto", vmin=vmin, vmax=vmax)
    axis.contour(xs, ys, surface, levels=8, colors="white", linewidths=0.5, alpha=0.7)
