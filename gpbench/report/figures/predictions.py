"""Predictions that runs kept: curves, surfaces and decision boundaries; and effects of additive models."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy import ndarray

from gpbench.analysis import effects
from gpbench.analysis.statistics import mean_stderr
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.records.record import Record
from gpbench.report.figures import style

_MARGIN = 0.05
_RUG = 200  # number of training rows in the rug below a curve
_MAX_ROWS = 1500  # largest number of training rows that are drawn; more would hide the background


def draw_curves(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws regression with one input: rows, mean ± 2 standard deviations and inducing points of each cell."""
    options, keys = experiment.figure, experiment.figure["label"]
    runs = [_first_run(cell, arrays) for cell in planned]
    lines = next((run for cell, run in zip(planned, runs) if cell.method == options.get("reference")), None)
    figure = style.figure(3.1 * len(planned) + 0.3, 2.9)
    axes = figure.subplots(1, len(planned), sharex=True, sharey=True, squeeze=False)[0]
    for axis, cell, run in zip(axes, planned, runs):
        first = keys if isinstance(keys, str) else keys[0]
        title = " ".join(experiment.labels_of(keys, cell.job)) or experiment.label(first, cell.method)
        axis.set_title(title, fontsize=9)
        if "kept_mean" in run:
            curve(axis, run, options.get("margin", _MARGIN), None if run is lines else lines)
            count = (cell.finished[0].diagnostics or {}).get("relevant")
            vectors = "" if count is None else f", {count:.0f} relevance vectors"
            axis.set_xlabel(_nmse(cell.finished[0]) + vectors)
        else:
            style.say(axis, "missing")
    return figure


def _first_run(cell: Cell, arrays: Callable) -> Mapping[str, ndarray]:
    """The arrays of a cell's first run that did not diverge; {} without any."""
    return arrays(cell.finished[0].id) if cell.finished else {}


def _nmse(record: Record) -> str:
    value = record.metrics.get("nmse")
    return "nMSE undefined" if value is None else f"nMSE {value:.3f}"


def curve(
    axis: Axes, run: Mapping[str, ndarray], margin: float = _MARGIN, reference: Mapping[str, ndarray] | None = None
) -> None:
    """Draws the arrays of one run, in the scaled units in which it was trained."""
    rows = run["kept_X"][:, 0]
    low, high = rows.min() - margin * np.ptp(rows), rows.max() + margin * np.ptp(rows)
    x, mean, spread = _within(run, float(low), float(high))
    axis.scatter(rows, run["kept_y"], s=3, color="#888888", linewidths=0, alpha=0.7)
    axis.fill_between(x, mean - spread, mean + spread, color=style.POSITIVE, alpha=0.2, linewidth=0)
    axis.plot(x, mean, color=style.POSITIVE)
    if reference:
        x, mean, spread = _within(reference, float(low), float(high))
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


def draw_surfaces(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws regression with two inputs: rows, and for each cell the mean of the first split and hidden units."""
    keys = experiment.figure["label"]
    runs = [_first_run(cell, arrays) for cell in planned]
    units = max((run["kept_hidden"].shape[1] for run in runs if "kept_hidden" in run), default=0)
    figure = style.figure(1.9 * (1 + len(planned)) + 0.3, 1.8 * (1 + units) + 0.3)
    axes = figure.subplots(1 + units, 1 + len(planned), sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat:
        style.image(axis)
    for axis in axes[1:, 0]:
        axis.set_visible(False)
    if first := next((run for run in runs if "kept_mean" in run), None):
        look = {"vmin": first["kept_y"].min(), "vmax": first["kept_y"].max()}
        axes[0, 0].scatter(*first["kept_X"].T, s=4, c=first["kept_y"], linewidths=0, rasterized=True, **look)
        axes[0, 0].set_title(f"{len(first['kept_X'])} training rows", fontsize=8)
    for column, cell, run in zip(axes[:, 1:].T, planned, runs):
        label = "-".join(experiment.labels_of(keys, cell.job))
        if "kept_mean" in run:
            surface(column[0], run, run["kept_mean"], **look)
            column[0].set_title(f"{label}: {_nmse(cell.finished[0])}", fontsize=8)
        else:
            style.say(column[0], f"{label}: missing")
        for unit, axis in enumerate(column[1:]):
            if "kept_hidden" in run and unit < run["kept_hidden"].shape[1]:
                surface(axis, run, run["kept_hidden"][:, unit])
                axis.set_title(f"hidden unit {unit + 1}", fontsize=8)
            else:
                axis.set_visible(False)
    return figure


def surface(axis: Axes, run: Mapping[str, ndarray], values: ndarray, **look: Any) -> None:
    """Draws values on the grid of a run, with contours; `look` are keywords of Matplotlib's `imshow`."""
    axis.contour(*_image(axis, run, values, **look), levels=8, colors="white", linewidths=0.5, alpha=0.7)


def _image(axis: Axes, run: Mapping[str, ndarray], values: ndarray, **look: Any) -> tuple[ndarray, ndarray, ndarray]:
    """Draws values on the grid of a run as colours; the two coordinates and the image, for contours."""
    grid = run["kept_grid"]
    side = round(len(grid) ** 0.5)
    xs, ys, image = grid[:side, 0], grid[::side, 1], np.asarray(values).reshape(side, side)
    axis.imshow(image, extent=(xs[0], xs[-1], ys[0], ys[-1]), origin="lower", aspect="auto", **look)
    return xs, ys, image


def draw_boundaries(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws decision boundaries and inducing points of classification in the plane, a panel for each cell."""
    options = experiment.figure
    row_key, column_key = options["rows"], options["columns"]
    rows, columns = (list(dict.fromkeys(cell.job[key] for cell in planned)) for key in (row_key, column_key))
    side = min(1.75, 11.0 / len(columns))
    figure = style.figure(side * len(columns) + 0.3, (side + 0.18) * len(rows) + 0.4)
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
    for axis in axes.flat:
        style.image(axis)
        axis.spines[["top", "right"]].set_visible(True)
    for cell in planned:
        axis = axes[rows.index(cell.job[row_key]), columns.index(cell.job[column_key])]
        run = _first_run(cell, arrays)
        if "kept_grid" in run:
            boundary(axis, run)
            error = cell.finished[0].metrics.get("error")
            axis.set_title("error undefined" if error is None else f"error {100 * error:.1f} %", fontsize=7.5, pad=2)
        else:
            style.say(axis, "missing")
    for axis, row in zip(axes[:, 0], rows):
        axis.set_ylabel(experiment.label(row_key, row), fontsize=10)
    for axis, column in zip(axes[-1], columns):
        axis.set_xlabel(experiment.label(column_key, column), fontsize=10)
    return figure


def boundary(axis: Axes, run: Mapping[str, ndarray]) -> None:
    """Draws training rows, class probability, decision boundary and inducing points from the arrays of one run."""
    shades = LinearSegmentedColormap.from_list("classes", style.SHADES)
    probabilities = np.exp(run["kept_log_probs"][:, 1])
    xs, ys, image = _image(axis, run, probabilities, cmap=shades, vmin=0, vmax=1, interpolation="bilinear")
    X, y = run["kept_X"][:_MAX_ROWS], run["kept_y"][:_MAX_ROWS]
    hues = np.where(y > 0, style.POSITIVE, style.NEGATIVE)
    axis.scatter(X[:, 0], X[:, 1], s=2.2, c=hues, alpha=0.55, linewidths=0, rasterized=True)
    if image.min() < 0.5 < image.max():
        axis.contour(xs, ys, image, levels=[0.5], colors="black", linewidths=1.1)
    if "kept_inducing" in run:
        Z = run["kept_inducing"]
        axis.scatter(Z[:, 0], Z[:, 1], s=13, c="black", edgecolors="white", linewidths=0.6, zorder=3)
    axis.set(xlim=(xs[0], xs[-1]), ylim=(ys[0], ys[-1]))


def draw_effects(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws effects of the first split, mean ± 2 standard deviations; interactions are of a data set's last cell."""
    options = experiment.figure
    is_known = "truth" in options
    datasets = list(dict.fromkeys(cell.dataset for cell in planned))
    names = {cell.id: ", ".join(experiment.labels_of(options["label"], cell.job)) for cell in planned}
    colours = style.colours(list(dict.fromkeys(names.values())))
    runs = {cell.id: [run for record in cell.finished if effects.places(run := arrays(record.id))] for cell in planned}
    width = max((len(effects.places(run)) for cell_runs in runs.values() for run in cell_runs[:1]), default=0)
    if not width:
        raise ConfigError(f"{experiment.id}: all components have three inputs or more, whose effects are not kept")
    figure = style.figure(1.65 * width + 0.3, 2.1 * len(datasets) + (0.2 * len(planned) if is_known else 0.0))
    axes = figure.subplots(len(datasets), width, squeeze=False)
    notes = []
    for row, dataset in zip(axes, datasets):
        cells = [cell for cell in planned if cell.dataset == dataset and runs[cell.id]]
        for cell in cells:
            run, name = runs[cell.id][0], names[cell.id]
            for axis, i in zip(row, range(len(run["kept_effect1_inputs"]))):
                effect_curve(axis, run, i, colours[name], is_known and cell is cells[-1])
            if is_known:
                accuracies = [mean_stderr(values) for values in zip(*map(effects.errors, runs[cell.id]))]
                rmse, covered = (f"{m:.3f}" + ("" if se is None else f" ± {se:.3f}") for m, se in accuracies)
                notes.append(f"{dataset}, {name}: RMSE of effects {rmse}, coverage {covered} ({len(runs[cell.id])})")
        last = runs[cells[-1].id][0] if cells else {}
        for k, axis in enumerate(row if cells else ()):
            size, i = [*effects.places(last), *[(0, 0)] * width][k]
            axis.grid(size == 1)
            if size == 2:
                effect_surface(axis, last, i, is_known)
        row[0].set_ylabel(dataset, fontsize=7.5)
    handles = [axes[0, 0].plot([], [], color=colour, label=name)[0] for name, colour in colours.items()]
    if is_known:
        handles += axes[0, 0].plot([], [], color="black", linestyle="dashed", linewidth=1, label="analytical")
    figure.legend(handles=handles, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 0.0))
    figure.supxlabel("\n".join(notes))
    return figure


def effect_curve(axis: Axes, run: Mapping[str, ndarray], i: int, colour: str, with_truth: bool = False) -> None:
    """Draws the i-th effect of one input with its band, a rug of some training rows, and the truth."""
    (d,) = map(int, run["kept_effect1_inputs"][i])
    x, mean, std = effects.original(run, 1, i)
    axis.fill_between(x[:, 0], mean - 2 * std, mean + 2 * std, color=colour, alpha=0.2, linewidth=0)
    axis.plot(x[:, 0], mean, color=colour, linewidth=1.2)
    if with_truth:
        axis.plot(x[:, 0], effects.truth(run, 1, i), color="black", linestyle="dashed", linewidth=1)
    rows = (run["kept_X"] * run["kept_X_scale"] + run["kept_X_shift"])[:_RUG, d]
    at_the_bottom = axis.get_xaxis_transform()
    axis.plot(rows, np.full(len(rows), 0.02), "|", color="#888888", markersize=3, alpha=0.4, transform=at_the_bottom)
    axis.set_title(f"input {d}", fontsize=8)


def effect_surface(axis: Axes, run: Mapping[str, ndarray], i: int, with_truth: bool = False) -> None:
    """Draws the i-th interaction as colours, with contours of the truth or else its own."""
    x, mean, _ = effects.original(run, 2, i)
    side = round(len(x) ** 0.5)
    first, second = x[::side, 0], x[:side, 1]
    image = mean.reshape(side, side).T
    axis.imshow(image, extent=(first[0], first[-1], second[0], second[-1]), origin="lower", aspect="auto")
    lines = effects.truth(run, 2, i).reshape(side, side).T if with_truth else image
    axis.contour(first, second, lines, levels=7, colors="black" if with_truth else "white", linewidths=0.6, alpha=0.7)
    axis.set_title("inputs {:.0f} and {:.0f}".format(*run["kept_effect2_inputs"][i]), fontsize=8)
