"""Regression on a line: a panel for each run with rows, mean, two standard deviations, and where the bases lie."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, found: Sequence[Cell], arrays: Callable) -> Figure:
    """`label` is the key that the panels are called by, or the method where a run has no such key."""
    key = (experiment.figure or {})["label"]
    figure = style.figure(3.1 * len(found) + 0.3, 2.9)
    axes = figure.subplots(1, len(found), sharex=True, sharey=True, squeeze=False)[0]
    for axis, cell in zip(axes, found):
        kept = arrays(cell.done[0]["id"]) if cell.done else {}
        axis.set_title(experiment.label(key, cell.job.get(key, cell.method)), fontsize=9)
        if "kept_mean" in kept:
            panel(axis, kept)
            axis.set_xlabel(f"nMSE {cell.done[0]['metrics']['nmse']:.3f}")
        else:
            axis.text(0.5, 0.5, "missing", transform=axis.transAxes, ha="center", color="#888888")
    return figure


def panel(axis: Axes, kept: Mapping[str, ndarray]) -> None:
    """One run, in the scaled units in which it was trained."""
    x, mean, spread = kept["kept_grid"][:, 0], kept["kept_mean"], 2.0 * np.sqrt(kept["kept_var"])
    axis.scatter(kept["kept_X"][:, 0], kept["kept_y"], s=3, color="#888888", linewidths=0, alpha=0.7)
    axis.fill_between(x, mean - spread, mean + spread, color=style.POSITIVE, alpha=0.2, linewidth=0)
    axis.plot(x, mean, color=style.POSITIVE)
    axis.set_xlim(x[0], x[-1])
    low, high = axis.get_ylim()
    bases = [kept[name][:, 0] for name in ("kept_inducing", "kept_covariance_inducing") if name in kept]
    for height, Z, colour in zip((0.03, 0.08), bases, ("black", style.NEGATIVE)):
        axis.plot(Z, np.full(len(Z), low + height * (high - low)), "|", color=colour, markersize=5, markeredgewidth=0.8)
    axis.set_ylim(low, high)
