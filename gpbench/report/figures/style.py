"""The one look of all figures: fonts, lines, and a colour for each method that the colour-blind can tell apart."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.figure import Figure

# Okabe and Ito (2008)
COLOURS = {
    "sep": "#0072B2", "svi": "#D55E00", "gfitc": "#009E73", "logistic": "#555555", "linear": "#555555",
    "sep_minibatch": "#0072B2", "svi_minibatch": "#D55E00",
}  # fmt: skip
_OTHERS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: "Sequence[Dash]" = ("-", (0, (5, 1.8)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))
NEGATIVE, POSITIVE = "#2b6cb0", "#c0562f"
"""The two classes of a picture of data."""
SHADES = ("#b9d2ea", "#ffffff", "#f1cdb9")

Dash = str | tuple[float, tuple[float, ...]]
"""A dash pattern as matplotlib takes it."""

_SETTINGS: Any = {
    "backend": "agg",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.6,
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.06,
    "pdf.fonttype": 42,
    "svg.hashsalt": "gpbench",
}


@contextmanager
def settled() -> Iterator[None]:
    """Draws without a display, in our style, and leaves matplotlib as it was."""
    with matplotlib.rc_context(_SETTINGS):
        yield


def colours(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: a method's own, or the next of the palette."""
    return {name: COLOURS.get(name, _OTHERS[k % len(_OTHERS)]) for k, name in enumerate(names)}


def dashes(names: Sequence[str]) -> dict[str, Dash]:
    """A dash pattern for each name."""
    return {name: DASHES[k % len(DASHES)] for k, name in enumerate(names)}


def figure(width: float, height: float) -> Figure:
    """An empty figure, sizes in inches, laid out by its constraints; no window belongs to it."""
    return Figure(figsize=(width, height), layout="constrained")


def caption(of: Figure, title: str, notes: Sequence[str]) -> None:
    """The title above, and below in small print how the figure was made."""
    of.suptitle(title, fontsize=10.5, x=0.01, ha="left")
    if notes:
        lines = [part for note in notes for part in textwrap.wrap(note, int(15 * of.get_figwidth()))]
        of.supxlabel("\n".join(lines), fontsize=7, color="#666666", x=0.01, ha="left")
