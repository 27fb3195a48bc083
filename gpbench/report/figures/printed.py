"""Ours against printed: every recorded number beside the one that a paper prints, with their deviations."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from gpbench.analysis.cells import BAND
from gpbench.analysis.reproduction import Reproduction, outcomes, total
from gpbench.errors import ConfigError
from gpbench.report.figures import style

_MARKERS = {"equal": "o", "better": "^", "worse": "v"}


@style.context()
def draw_printed(compared: Sequence[Reproduction]) -> style.Picture:
    """Draws targets: losses on logarithmic axes, log-likelihoods, and deviations in joint standard errors."""
    targets = [target for target in compared if not target.exclusion]
    if not targets:
        raise ConfigError("no recorded number is beside a printed one that is a target; `gpbench ls experiments`")
    colours = style.colours(list(dict.fromkeys(target.paper for target in targets)))
    losses, gains = ([c for c in targets if (c.entry.better == "lower") == lower] for lower in (True, False))
    figure = style.figure(10.2, 3.9)
    first, second, third = figure.subplots(1, 3, width_ratios=[1, 1, 1.35])
    for axis, members, name in ((first, losses, "loss: nll, rmse"), (second, gains, "test log-likelihood")):
        _against(axis, members, colours, logarithmic=axis is first)
        axis.set_title(name)
    _deviations(third, targets, colours)
    looks = [("o", colour, paper) for paper, colour in colours.items()]
    looks += [(mark, "#777777", f"{name}: {outcomes(targets)[name]}") for name, mark in _MARKERS.items()]
    handles = [third.plot([], [], mark, color=hue, markersize=5, label=text)[0] for mark, hue, text in looks]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    style.head(figure, f"Ours against printed: {total(targets)}")
    band = f"equal: within {BAND:g} joint standard errors, the grey band; bars: ± {BAND:g} of them"
    others = f"{len(compared) - len(targets)} further printed numbers are no targets, for reasons that tables state"
    figure.notes = [band, "up is in favour of ours", "informative: no rival of the same table meets it", others]
    return figure


def deviation(target: Reproduction) -> float:
    """Ours - printed in joint standard errors, positive in favour of ours."""
    delta = target.entry.delta_se or 0.0
    return delta if target.entry.better == "higher" else -delta


def _against(axis: Axes, members: Sequence[Reproduction], colours: dict[str, str], logarithmic: bool) -> None:
    """Ours against printed with two joint standard errors, around the diagonal."""
    for target in members:
        entry, printed = target.entry, target.published.value
        assert entry.mean is not None and entry.joint_stderr is not None
        joint = entry.joint_stderr
        colour, marker = colours[target.paper], _MARKERS[target.outcome]
        low = min(BAND * joint, 0.9 * entry.mean) if logarithmic else BAND * joint
        axis.plot([printed] * 2, [entry.mean - low, entry.mean + BAND * joint], color=colour, linewidth=0.8, alpha=0.5)
        axis.plot(printed, entry.mean, marker, color=colour, markersize=4, markeredgecolor="white", markeredgewidth=0.4)
    if logarithmic:
        values = [value for c in members for value in (c.entry.mean, c.published.value) if value]
        limits = 0.7 * min(values), 1.4 * max(values)  # bars of small losses reach far down on a logarithmic axis
        axis.set(xscale="log", yscale="log", xlim=limits, ylim=limits)
        style.number_ticks(axis.xaxis, axis.yaxis)
    axis.axline((1, 1), (2, 2), color="black", linewidth=0.8, zorder=0)
    axis.set(xlabel="printed", ylabel="ours")


def _deviations(axis: Axes, targets: Sequence[Reproduction], colours: dict[str, str]) -> None:
    """Deviations of all targets in ascending order; those that are worse have names."""
    ordered = sorted(targets, key=deviation)
    axis.axhspan(-BAND, BAND, color="#555555", alpha=0.15, linewidth=0)
    axis.axhline(0, color="black", linewidth=0.8)
    n_worse = sum(target.outcome == "worse" for target in ordered)
    for x, target in enumerate(ordered):
        y, marker = deviation(target), _MARKERS[target.outcome]
        axis.plot(x, y, marker, color=colours[target.paper], markersize=4, markeredgewidth=0)
        if target.outcome == "worse":
            text = f"{target.column}, {target.row}: {target.entry.metric}"
            position = (0.16 * len(ordered), -4.2 * 2.1 ** (n_worse - 1 - x))
            line = {"arrowstyle": "-", "color": "#777777", "linewidth": 0.6}
            axis.annotate(text, (x, y), position, fontsize=7.5, va="center", arrowprops=line)
    axis.set_yscale("symlog", linthresh=BAND, linscale=1.2)
    ends = np.array([min(deviation(ordered[0]), -BAND), max(deviation(ordered[-1]), BAND)])
    ticks = [tick for tick in (-50, -20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50) if 2 * ends[0] < tick < 2 * ends[1]]
    axis.set_yticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks], minor=False)
    axis.set_yticks([], minor=True)
    axis.set_ylim(min(1.5 * ends[0], -6 * 2.1 ** (n_worse - 1), -4), max(1.4 * ends[1], 4))
    axis.set(xlabel="printed numbers, sorted", title="deviation in joint standard errors (up: ours better)", xticks=[])
