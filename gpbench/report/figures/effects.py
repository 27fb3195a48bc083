"""Effects of additive models: a row of panels for each data set, a panel for each effect, with bands and truth."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.analysis.effects import Truth, errors, original
from gpbench.analysis.statistics import mean_stderr
from gpbench.data.builtin import friedman_effect
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style

_RUG = 200  # number of training rows in the rug below a curve


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws the effects of the first split, mean ± 2 standard deviations, in original units.

    Interactions are those of the last cell of each data set.  The options of the figure are

    - `label`: Key or keys whose labels name a cell.
    - `truth`: Function with known effects, `friedman`; optional.  A note has, for each data set and cell, the RMSE of
      the effects and the share of grid points whose 95 % band covers the truth, mean ± standard error over splits.
    """
    options = experiment.figure
    truth = friedman_effect if "truth" in options else None
    datasets = list(dict.fromkeys(cell.dataset for cell in planned))
    names = {cell.id: ", ".join(experiment.labels_of(options["label"], cell.job)) for cell in planned}
    colours = style.colours(list(dict.fromkeys(names.values())))
    runs = {cell.id: [run for record in cell.finished if panels(run := arrays(record.id))] for cell in planned}
    width = max((len(panels(run)) for cell_runs in runs.values() for run in cell_runs[:1]), default=0)
    if not width:
        raise ConfigError(f"{experiment.id}: all components have three inputs or more, whose effects are not kept")
    figure = style.figure(1.65 * width + 0.3, 2.1 * len(datasets) + (0.2 * len(planned) if truth else 0.0))
    axes = figure.subplots(len(datasets), width, squeeze=False)
    notes = []
    for row, dataset in zip(axes, datasets):
        cells = [cell for cell in planned if cell.dataset == dataset and runs[cell.id]]
        for cell in cells:
            run, name = runs[cell.id][0], names[cell.id]
            for axis, i in zip(row, range(len(run["kept_effect1_inputs"]))):
                curve(axis, run, i, colours[name], truth if cell is cells[-1] else None)
            if truth:
                accuracies = [mean_stderr(values) for values in zip(*(errors(run, truth) for run in runs[cell.id]))]
                rmse, covered = (f"{m:.3f}" + ("" if se is None else f" ± {se:.3f}") for m, se in accuracies)
                notes.append(f"{dataset}, {name}: RMSE of effects {rmse}, coverage {covered} ({len(runs[cell.id])})")
        last = runs[cells[-1].id][0] if cells else {}
        for k, axis in enumerate(row if cells else ()):
            size, i = [*panels(last), *[(0, 0)] * width][k]
            axis.grid(size == 1)
            if size == 2:
                surface(axis, last, i, truth)
        row[0].set_ylabel(dataset, fontsize=7.5)
    handles = [axes[0, 0].plot([], [], color=colour, label=name)[0] for name, colour in colours.items()]
    if truth:
        handles += axes[0, 0].plot([], [], color="black", linestyle="dashed", linewidth=1, label="analytical")
    figure.legend(handles=handles, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 0.0))
    figure.supxlabel("\n".join(notes))
    return figure


def curve(axis: Axes, run: Mapping[str, ndarray], i: int, colour: str, truth: Truth | None = None) -> None:
    """Draws the i-th effect of one input with its band, a rug of some training rows, and the truth."""
    (d,) = map(int, run["kept_effect1_inputs"][i])
    x, mean, std = original(run, 1, i)
    axis.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color=colour, alpha=0.2, linewidth=0)
    axis.plot(x[:, 0], mean, color=colour, linewidth=1.2)
    if truth:
        axis.plot(x[:, 0], truth((d,), x), color="black", linestyle="dashed", linewidth=1)
    rows = (run["kept_X"] * run["kept_X_scale"] + run["kept_X_shift"])[:_RUG, d]
    at_the_bottom = axis.get_xaxis_transform()
    axis.plot(rows, np.full(len(rows), 0.02), "|", color="#888888", markersize=3, alpha=0.4, transform=at_the_bottom)
    axis.set_title(f"input {d}", fontsize=8)


def surface(axis: Axes, run: Mapping[str, ndarray], i: int, truth: Truth | None = None) -> None:
    """Draws the i-th interaction as colours, with contours of the truth or else its own."""
    pair = tuple(map(int, run["kept_effect2_inputs"][i]))
    x, mean, _ = original(run, 2, i)
    side = round(len(x) ** 0.5)
    first, second = x[::side, 0], x[:side, 1]
    image = mean.reshape(side, side).T
    axis.imshow(image, extent=(first[0], first[-1], second[0], second[-1]), origin="lower", aspect="auto")
    lines = truth(pair, x).reshape(side, side).T if truth else image
    axis.contour(first, second, lines, levels=7, colors="black" if truth else "white", linewidths=0.6, alpha=0.7)
    axis.set_title(f"inputs {pair[0]} and {pair[1]}", fontsize=8)


def panels(run: Mapping[str, ndarray]) -> list[tuple[int, int]]:
    """The number of inputs of each effect that a run kept, and its place among those of as many inputs."""
    return [(size, i) for size in (1, 2) for i in range(len(run.get(f"kept_effect{size}_inputs", ())))]
