"""Seconds of training against the number of devices.  Hollow points are simulated: devices that share cores."""

from collections.abc import Callable, Sequence

from matplotlib.figure import Figure

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, found: Sequence[Cell], arrays: Callable) -> Figure:
    """`along` is the key of the horizontal axis, `colour` the key of the curves.  Points are means over splits."""
    told = experiment.figure or {}
    values = list(dict.fromkeys(cell.job[told["colour"]] for cell in found))
    hues = style.colours(values)
    figure = style.figure(4.4, 3.2)
    axis = figure.subplots()
    for value in values:
        cells = [cell for cell in found if cell.job[told["colour"]] == value and cell.done]
        places = [int(cell.job[told["along"]]) for cell in cells]
        seconds = [sum(r["seconds"]["train"] for r in cell.done) / len(cell.done) for cell in cells]
        axis.plot(places, seconds, "o-", color=hues[value], markersize=4,
                  label=experiment.label(told["colour"], value))  # fmt: skip
        hollow = [i for i, cell in enumerate(cells) if _simulated(cell)]
        axis.scatter([places[i] for i in hollow], [seconds[i] for i in hollow],
                     s=16, zorder=3, facecolor="white", edgecolor=hues[value])  # fmt: skip
    if any(map(_simulated, found)):
        axis.scatter([], [], s=16, facecolor="white", edgecolor="0.4", label="devices that share cores")
    axis.set_ylim(bottom=0)
    axis.set_xticks(sorted({int(cell.job[told["along"]]) for cell in found}))
    axis.set(xlabel=experiment.label("axes", told["along"]), ylabel="seconds of training")
    axis.legend()
    return figure


def _simulated(cell: Cell) -> bool:
    return any(record.get("simulated") for record in cell.done)
