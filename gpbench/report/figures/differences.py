"""Paired differences with their 95 % intervals: a line for each data set."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from gpbench.analysis.differences import NOTE, Difference, Side
from gpbench.analysis.provenance import provenance_lines, seconds_lines
from gpbench.analysis.tables import title
from gpbench.metrics import better
from gpbench.report.figures import style


def draw(a: Side, b: Side, differences: Sequence[Difference]) -> Figure:
    """A - B for each data set, from the top.

    Hollow points have no test, as those of a single split, and grey ones are not significantly different from 0.
    """
    metric = differences[0].metric
    hues = {"A": style.POSITIVE, "B": style.NEGATIVE, "": "#777777"}
    with style.context():
        figure = style.figure(6.8, 1.7 + 0.26 * len(differences))
        axis = figure.subplots()
        for y, d in enumerate(differences):
            mean, low, high = d.test.mean, d.test.low, d.test.high
            ends = [mean, mean] if low is None or high is None else [low, high]
            axis.plot(ends, [y, y], color=hues[d.winner], linewidth=1.8, solid_capstyle="butt")
            axis.plot(
                mean,
                y,
                "o",
                color=hues[d.winner],
                markersize=5,
                markerfacecolor="white" if low is None else hues[d.winner],
            )
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(differences)), [f"{d.name} (n = {d.n})" for d in differences])
        axis.set_ylim(len(differences) - 0.4, -0.6)
        label = f"difference of {metric}, {a.value} - {b.value}"
        if direction := better(metric):
            left, right = (a.value, b.value) if direction == "lower" else (b.value, a.value)
            label = f"← {left} better     {label}     {right} better →"
        axis.set_xlabel(label)
        records = [record for d in differences for cell in (d.a, d.b) for record in cell.records]
        runs = provenance_lines(records)
        timed = seconds_lines(records) if metric == "seconds" else []
        style.caption(figure, f"{a.value} and {b.value}: {title(metric)}", [NOTE, *runs, *timed])
    return figure
