"""Seconds of training against the number of devices.  Hollow points are simulated: their devices share cores."""

from collections.abc import Callable, Sequence
from statistics import fmean

from matplotlib.figure import Figure

from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell
from gpbench.report.figures import style


def draw(experiment: Experiment, planned: Sequence[Cell], arrays: Callable) -> Figure:
    """Draws means over splits.  Options of the experiment's `figure`:

    along: the key of the horizontal axis.
    colour: the key whose values have colours.
    colours: colours (`style.PALETTE`) by value of `colour`; optional.
    """
    options = experiment.figure or {}
    key, along = options["colour"], options["along"]
    colours = style.colours(list(dict.fromkeys(cell.job[key] for cell in planned)), options.get("colours"))
    figure = style.figure(4.4, 3.2)
    axis = figure.subplots()
    for value, colour in colours.items():
        cells = [cell for cell in planned if cell.job[key] == value and cell.done]
        devices = [int(cell.job[along]) for cell in cells]
        seconds = [fmean(record.seconds["train"] or 0.0 for record in cell.done) for cell in cells]
        axis.plot(devices, seconds, "o-", color=colour, markersize=4, label=experiment.label(key, value))
        simulated = [k for k, cell in enumerate(cells) if _simulated(cell)]
        axis.scatter(
            [devices[k] for k in simulated],
            [seconds[k] for k in simulated],
            s=16,
            zorder=3,
            facecolor="white",
            edgecolor=colour,
        )
    if any(map(_simulated, planned)):
        axis.scatter([], [], s=16, facecolor="white", edgecolor="0.4", label="devices that share cores")
    axis.set_ylim(bottom=0)
    axis.set_xticks(sorted({int(cell.job[along]) for cell in planned}))
    axis.set(xlabel=experiment.label("axes", along), ylabel="seconds of training")
    axis.legend()
    return figure


def _simulated(cell: Cell) -> bool:
    return any(record.simulated for record in cell.done)
