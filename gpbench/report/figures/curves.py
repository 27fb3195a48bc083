"""Regression with one input: a panel for each run with its rows, predictive mean ± 2 standard deviations and bases."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws a panel for each cell, whose title is the value of the key `label`, or the method without that key."""
    key = (experiment.figure or {})["label"]
    figure = style.figure(3.1 * len(planned) + 0.3, 2.9)
    axes = figure.subplots(1, len(planned), sharex=True, sharey=True, squeeze=False)[0]
    for axis, cell in zip(axes, planned):
        run = arrays(cell.done[0]["id"]) if cell.done else {}
        axis.set_title(experiment.label(key, cell.job.get(key, cell.method)), fontsize=9)
        if "kept_mean" in run:
            panel(axis, run)
            axis.set_xlabel(f"nMSE {cell.done[0]['metrics']['nmse']:.3f}")
        else:
            axis.text(0.5, 0.5, "missing", transform=axis.transAxes, ha="center", color="#888888")
    return figure


def panel(axis: Axes, run: Mapping[str, ndarray]) -> None:
    """Draws the arrays of one run, in the scaled units in which it was trained."""
    x, mean, spread = run["kept_grid"][:, 0], run["kept_mean"], 2.0 * np.sqrt(run["kept_var"])
    axis.scatter(run["kept_X"][:, 0], run["kept_y"], s=3, color="#888888", linewidths=0, alpha=0.7)
    axis.fill_between(x, mean - spread, mean + spread, color=style.POSITIVE, alpha=0.2, linewidth=0)
    axis.plot(x, mean, color=style.POSITIVE)
    axis.set_xlim(x[0], x[-1])
    low, high = axis.get_ylim()
    bases = [run[name][:, 0] for name in ("kept_inducing", "kept_covariance_inducing") if name in run]
    for height, Z, colour in zip((0.03, 0.08), bases, ("black", style.NEGATIVE)):
        axis.plot(Z, np.full(len(Z), low + height * (high - low)), "|", color=colour, markersize=5, markeredgewidth=0.8)
    axis.set_ylim(low, high)
