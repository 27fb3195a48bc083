"""Paired differences with their intervals: a line for each data set, better on which side of zero."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from gpbench.metrics import better
from gpbench.report.compare import NOTE, Difference, Side
from gpbench.report.figures import style
from gpbench.report.tables import runs_line, title


def draw(a: Side, b: Side, found: Sequence[Difference]) -> Figure:
    """A - B, the first data set at the top; hollow points are of one split, grey ones not told from zero."""
    metric = found[0].metric
    hues = {"A": style.POSITIVE, "B": style.NEGATIVE, "": "#777777"}
    with style.settled():
        figure = style.figure(6.8, 1.7 + 0.26 * len(found))
        axis = figure.subplots()
        for place, d in enumerate(found):
            low, high = (d.difference, d.difference) if d.low is None or d.high is None else (d.low, d.high)
            axis.plot([low, high], [place, place], color=hues[d.verdict], linewidth=1.8, solid_capstyle="butt")
            axis.plot(d.difference, place, "o", color=hues[d.verdict], markersize=5,
                      markerfacecolor="white" if d.low is None else hues[d.verdict])  # fmt: skip
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(found)), [f"{d.name} (n = {d.n})" for d in found])
        axis.set_ylim(len(found) - 0.4, -0.6)
        left, right = (a.value, b.value) if better(metric) == "lower" else (b.value, a.value)
        axis.set_xlabel(f"← {left} better     difference of {metric}, {a.value} - {b.value}     {right} better →")
        made = runs_line(record for d in found for cell in (d.a, d.b) for record in cell.records)
        style.caption(figure, f"{a.value} and {b.value}: {title(metric)}", [NOTE, *made])
    return figure
