"""Costs against sizes: seconds of training by number of devices; time, operations and memory of a step by others."""

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from numpy import ndarray

from gpbench.analysis.grouping import gather
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell
from gpbench.records.record import Record
from gpbench.report.figures import style


def draw_scaling(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws seconds of training against the number of devices; hollow points are simulated."""
    options = experiment.figure
    key, along = options["colour"], options["along"]
    colours = style.colours(list(dict.fromkeys(cell.job[key] for cell in planned)), options.get("colours"))
    figure = style.figure(4.4, 3.2)
    axis = figure.subplots()
    for value, colour in colours.items():
        cells = [cell for cell in planned if cell.job[key] == value and cell.finished]
        devices = [int(cell.job[along]) for cell in cells]
        seconds = [fmean(record.seconds["train"] or 0.0 for record in cell.finished) for cell in cells]
        axis.plot(devices, seconds, "o-", color=colour, markersize=4, label=experiment.label(key, value))
        x, y = np.reshape([p for p, cell in zip(zip(devices, seconds), cells) if _simulated(cell)], (-1, 2)).T
        axis.scatter(x, y, s=16, zorder=3, facecolor="white", edgecolor=colour)
    if any(map(_simulated, planned)):
        axis.scatter([], [], s=16, facecolor="white", edgecolor="0.4", label="devices that share cores")
    axis.set_ylim(bottom=0)
    axis.set_xticks(sorted({int(cell.job[along]) for cell in planned}))
    axis.set(xlabel=experiment.label("axes", along), ylabel="seconds of training")
    axis.legend()
    return figure


def _simulated(cell: Cell) -> bool:
    return any(record.simulated for record in cell.finished)


_MEMORY = "MB a step"


def draw_orders(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws costs of a step on logarithmic axes, a column for a size; notes have the exponents of lines."""
    options = experiment.figure
    keys, key = options["along"], options["colour"]
    colours = style.colours(list(dict.fromkeys(cell.job[key] for cell in planned)))
    figure = style.figure(2.6 * len(keys) + 0.3, 5.6)
    costs = ("operations a step", "step_operations") if options.get("counted") else ("ms a step", "milliseconds")
    quantities = dict([costs, (_MEMORY, "step_memory_mb")])
    axes = figure.subplots(len(quantities), len(keys), squeeze=False, sharex="col", sharey="row")
    notes = []
    for (title, quantity), row in zip(quantities.items(), axes):
        row[0].set_ylabel(title)
        for along, axis in zip(keys, row):
            stated = options.get("published", {}).get(along, {}) if title != _MEMORY else {}
            exponents, fixed = [], []
            for value, colour in colours.items():
                cells = [cell for cell in planned if cell.job[key] == value and cell.finished]
                if line := _along_size(experiment, cells, keys, along, quantity):
                    *points, others = line
                    name, expected = experiment.label(key, value), f" [{stated[value]}]" if value in stated else ""
                    axis.plot(*points, "o-", color=colour, markersize=4, label=name)
                    exponents.append(f"{name} {exponent(*points)}{expected}")
                    fixed.append(others)
            _log_log(axis, [_size(experiment, along, cell) for cell in planned if along in cell.job])
            if exponents:
                size = experiment.label("axes", along)
                if len(set(fixed)) == 1:
                    size += fixed.pop()
                else:
                    exponents = [text + sizes for text, sizes in zip(exponents, fixed)]
                notes.append(f"exponent of {title} in {size}: {', '.join(exponents)}")
    for along, axis in zip(keys, axes[-1]):
        axis.set_xlabel(experiment.label("axes", along))
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, ncols=len(names), loc="upper center", bbox_to_anchor=(0.5, 0.0))
    figure.supxlabel("\n".join(notes))
    return figure


def _along_size(
    experiment: Experiment, cells: Sequence[Cell], keys: Sequence[str], along: str, quantity: str
) -> tuple[ndarray, ndarray, str] | None:
    """The sizes, the quantity, and the other sizes that most cells share, as in " (M = 32)"; None below two cells."""
    others = lambda cell: tuple((key, cell.job[key]) for key in keys if key != along and key in cell.job)
    groups = gather((others(cell), cell) for cell in cells if along in cell.job)
    fixed, group = max(groups.items(), key=lambda item: len(item[1]), default=((), []))
    if len(group) < 2:
        return None
    mean = lambda cell: fmean(_value(quantity, record) for record in cell.finished)
    sizes, values = np.array(sorted((_size(experiment, along, cell), mean(cell)) for cell in group)).T
    names = [f"{experiment.label('axes', key)} = {experiment.label(key, value)}" for key, value in fixed]
    words = f" ({', '.join(names)})" if names else ""
    return (sizes, values, words) if np.isfinite(values).all() else None


def exponent(sizes: ndarray, values: ndarray) -> str:
    """The slope of the least-squares line in logarithms, ± its standard error where there are three points or more."""
    x, y = np.log(sizes), np.log(np.maximum(values, 1e-9))
    if len(x) < 3:
        return f"{np.polyfit(x, y, 1)[0]:.2f}"
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return f"{round(slope, 2) + 0.0:.2f} ± {math.sqrt(covariance[0, 0]):.2f}"


def _size(experiment: Experiment, key: str, cell: Cell) -> float:
    label = experiment.label(key, cell.job[key])
    try:
        return float(label.replace(",", ""))
    except ValueError:
        fault = f"the figure needs numbers along {key}, and {cell.job[key]} is called {label!r}"
        raise ConfigError(f"{experiment.id}: {fault}: give it a number in labels") from None


def _value(name: str, record: Record) -> float:
    """The value of a field of a record, or the milliseconds of a step; NaN where it has none."""
    if name == "milliseconds":
        return 1e3 * (record.seconds["train"] or math.nan) / (record.steps or math.nan)
    return math.nan if (number := record.value(name)) is None else number


def _log_log(axis: Axes, sizes: Sequence[float]) -> None:
    """Logarithmic axes with a tick at each size, and a label at those that leave room for it."""
    axis.set(xscale="log", yscale="log")
    ticks = sorted(set(sizes))
    labelled: list[float] = []
    for size in ticks:
        if not labelled or math.log(size / labelled[-1]) > 0.12 * math.log(ticks[-1] / ticks[0]):
            labelled.append(size)
    # 2e6 for 2,000,000: a digit with three zeros or more
    digits = {size: f"{size:.0f}" for size in labelled}
    is_round = lambda text: len(text) > 3 and not text[1:].strip("0")
    labels = {s: f"{text[0]}e{len(text) - 1}" if is_round(text) else f"{s:,.0f}" for s, text in digits.items()}
    axis.set_xticks(ticks, [labels.get(size, "") for size in ticks], minor=False)
    axis.xaxis.set_minor_locator(NullLocator())
