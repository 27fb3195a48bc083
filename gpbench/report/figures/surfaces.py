"""Regression with two inputs: the training rows, and the predictive mean and hidden units of each run, as colours."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws a row of panels for each cell with its first split, titled by the value of the key `label`."""
    key = (experiment.figure or {})["label"]
    runs = [arrays(cell.done[0]["id"]) if cell.done else {} for cell in planned]
    widths = [run["kept_hidden"].shape[1] if "kept_hidden" in run else 0 for run in runs]
    figure = style.figure(2.3 * (2 + max(widths)) + 0.3, 2.2 * len(planned) + 0.3)
    axes = figure.subplots(len(planned), 2 + max(widths), sharex=True, sharey=True, squeeze=False)
    for of, cell, run in zip(axes, planned, runs):
        for axis in of:
            axis.set(xticks=[], yticks=[])
            axis.grid(False)
        label = experiment.label(key, cell.job.get(key, cell.method))
        if "kept_mean" not in run:
            of[0].text(0.5, 0.5, f"{label}: missing", transform=of[0].transAxes, ha="center", color="#888888")
            continue
        low, high = run["kept_y"].min(), run["kept_y"].max()
        of[0].scatter(*run["kept_X"].T, s=4, c=run["kept_y"], vmin=low, vmax=high, linewidths=0, rasterized=True)
        of[0].set_title(f"{len(run['kept_X'])} training rows", fontsize=8)
        panel(of[1], run, run["kept_mean"], vmin=low, vmax=high)
        of[1].set_title(f"{label}: nMSE {cell.done[0]['metrics']['nmse']:.3f}", fontsize=8)
        for unit, axis in enumerate(of[2:]):
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
