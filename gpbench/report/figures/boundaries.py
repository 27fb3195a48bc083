"""Decision boundaries and inducing points in the plane: a panel for each method and number of inducing points."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style

_MAX_ROWS = 1500
"""How many training rows are drawn; more would hide the background."""


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws a panel for each cell, by the values of the keys `rows` and `columns`."""
    options = experiment.figure or {}
    row_key, column_key = options["rows"], options["columns"]
    rows, columns = (list(dict.fromkeys(cell.job[key] for cell in planned)) for key in (row_key, column_key))
    side = min(1.75, 11.0 / len(columns))
    figure = style.figure(side * len(columns) + 0.3, (side + 0.18) * len(rows) + 0.4)
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
        axis.grid(False)
        axis.spines[["top", "right"]].set_visible(True)
    for cell in planned:
        axis = axes[rows.index(cell.job[row_key]), columns.index(cell.job[column_key])]
        run = arrays(cell.done[0].id) if cell.done else {}
        if "kept_grid" in run:
            panel(axis, run)
            axis.set_title(f"error {100 * (cell.done[0].metrics['error'] or 0.0):.1f} %", fontsize=7.5, pad=2)
        else:
            axis.text(0.5, 0.5, "missing", transform=axis.transAxes, ha="center", color="#888888")
    for axis, row in zip(axes[:, 0], rows):
        axis.set_ylabel(experiment.label(row_key, row), fontsize=10)
    for axis, column in zip(axes[-1], columns):
        axis.set_xlabel(experiment.label(column_key, column), fontsize=10)
    return figure


def panel(axis: Axes, run: Mapping[str, ndarray]) -> None:
    """Draws training rows, class probability, decision boundary and inducing points from the arrays of one run."""
    grid = run["kept_grid"]
    side = round(len(grid) ** 0.5)
    xs, ys = grid[:side, 0], grid[::side, 1]
    probability = np.exp(run["kept_log_probs"][:, 1]).reshape(side, side)
    shades = LinearSegmentedColormap.from_list("classes", style.SHADES)
    axis.imshow(
        probability,
        extent=(xs[0], xs[-1], ys[0], ys[-1]),
        origin="lower",
        cmap=shades,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="bilinear",
    )
    X, y = run["kept_X"][:_MAX_ROWS], run["kept_y"][:_MAX_ROWS]
    axis.scatter(
        X[:, 0],
        X[:, 1],
        s=2.2,
        c=np.where(y > 0, style.POSITIVE, style.NEGATIVE),
        alpha=0.55,
        linewidths=0,
        rasterized=True,
    )
    if probability.min() < 0.5 < probability.max():
        axis.contour(xs, ys, probability, levels=[0.5], colors="black", linewidths=1.1)
    if "kept_inducing" in run:
        Z = run["kept_inducing"]
        axis.scatter(Z[:, 0], Z[:, 1], s=13, c="black", edgecolors="white", linewidths=0.6, zorder=3)
    axis.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))
