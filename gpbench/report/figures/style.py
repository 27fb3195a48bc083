"""The common style of all figures: fonts, lines, dash patterns, a palette for colour-blind readers, dark pages."""

import io
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogFormatter, LogLocator, NullFormatter

from gpbench.errors import printable, require_known

PALETTE = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#555555",
}
"""The palette of Okabe and Ito (2008) without its yellow, and a grey.  Values get its colours in this order."""

DASHES: dict[str, Literal["solid"] | tuple[float, tuple[float, ...]]] = {
    "solid": "solid",
    "dashed": (0, (5, 1.8)),
    "dotted": (0, (1.2, 1.4)),
    "dashdot": (0, (6, 1.5, 1.2, 1.5)),
}
"""Dash patterns by name, as Matplotlib takes them, in the order in which values get them."""

NEGATIVE, POSITIVE = "#2b6cb0", "#c0562f"  # colours of the two classes of a data set
SHADES = ("#b9d2ea", "#ffffff", "#f1cdb9")  # background colours from probability 0 to 1


@contextmanager
def context() -> Iterator[None]:
    """Applies the style, not the user's settings, within a `with` statement; draws unknown letters as boxes."""
    with matplotlib.style.context(f"{__package__}.gpbench", after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")
        yield


def take_literally(figure: Figure) -> None:
    """Makes dollar signs plain letters and escapes what cannot be printed, but for the powers of logarithmic axes."""
    directions = [direction for axes in figure.axes for direction in (axes.xaxis, axes.yaxis)]
    logarithmic = [direction for direction in directions if isinstance(direction.get_major_formatter(), LogFormatter)]
    powers = {label for direction in logarithmic for label in direction.get_ticklabels(which="both")}
    for text in figure.findobj(Text):
        if text not in powers:
            text.set_parse_math(False)
        if not (lines := text.get_text()).replace("\n", "").isprintable():
            text.set_text("\n".join(map(printable, lines.split("\n"))))


def _assign(
    options: Mapping[str, Any], noun: str, values: Sequence[str], choices: Mapping[Any, str] | None = None
) -> dict[str, Any]:
    """An option for each value, its choice or the next one.  Raises ConfigError: there is no such option."""
    names = {str(value): name for value, name in (choices or {}).items()}
    for name in names.values():
        require_known(str(name), options, f"no {noun} {str(name)!r}")
    free = [name for name in options if name not in names.values()] or list(options)
    others = [value for value in values if value not in names]
    names |= {value: free[k % len(free)] for k, value in enumerate(others)}
    return {value: options[names[value]] for value in values}


colours, dashes = partial(_assign, PALETTE, "colour"), partial(_assign, DASHES, "dash pattern")
"""A colour, and a dash pattern, for each value."""


class Picture(Figure):
    """A figure whose `notes` on how it was made stand beside it in text."""

    notes: Sequence[str] = ()

    def _repr_png_(self) -> bytes:
        """The picture in a notebook."""
        take_literally(self)
        file = io.BytesIO()
        with context():
            self.savefig(file, format="png", dpi=100)
        return file.getvalue()


def figure(width: float, height: float) -> Picture:
    """An empty picture with constrained layout; sizes in inches."""
    return Picture(figsize=(width, height), layout="constrained")


def number_ticks(*directions: Axis) -> None:
    """Gives logarithmic axes plain numbers, at 1, 2 and 5 where they have fewer than two powers of ten."""
    for direction in directions:
        low, high = direction.get_view_interval()
        direction.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
        direction.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        direction.set_minor_formatter(NullFormatter())


def rows(axis: Axes, names: Sequence[str], **look: Any) -> None:
    """Names the rows 0, 1, ... of a panel, from the top."""
    axis.set_yticks(range(len(names)), names, **look)
    axis.set_ylim(len(names) - 0.4, -0.6)


def image(axis: Axes) -> None:
    """Makes a panel one of an image, without ticks and grid."""
    axis.set(xticks=[], yticks=[])
    axis.grid(False)


def say(axis: Axes, text: str) -> None:
    """Writes a text in the middle of an empty panel."""
    axis.text(0.5, 0.5, text, transform=axis.transAxes, ha="center", color="#888888")


def head(figure: Figure, title: str) -> None:
    """Puts the title above the figure, in lines that fit its width."""
    lines = textwrap.wrap(title, int(10.5 * figure.get_figwidth()))
    figure.suptitle("\n".join(lines), fontsize=10.5, x=0.01, ha="left")


def caption(figure: Figure, title: str, notes: Sequence[str]) -> None:
    """Puts the title above the figure, and notes on how it was made below it in small print."""
    head(figure, title)
    if notes:
        lines = [line for note in notes for line in textwrap.wrap(note, int(15 * figure.get_figwidth()))]
        figure.supxlabel("\n".join(lines), fontsize=7, color="#666666", x=0.01, ha="left")


_GREYS = {
    "#000000": "ink",
    "#444444": "ink",
    "#555555": "soft",
    "#666666": "soft",
    "#e4e4e4": "line",
    "#ffffff": "sheet",
}
_STYLE = (
    "<style>svg {--ink: #1d2126; --soft: #5a626c; --line: #dfe2e6; --sheet: #ffffff; fill: var(--ink)}"
    " @media (prefers-color-scheme: dark) "
    "{svg {--ink: #e4e7ea; --soft: #a2abb5; --line: #343a42; --sheet: #1b1f24}}</style>"
)


def follow(svg: bytes) -> bytes:
    """Makes black, white and greys of a vector picture follow a light or a dark page, also in an `<img>`."""
    text = svg.decode()
    start = text.index("<svg ")
    end = text.index(">", start) + 1
    pattern = re.compile("|".join(map(re.escape, _GREYS)), re.IGNORECASE)
    drawing = pattern.sub(lambda match: f"var(--{_GREYS[match[0].lower()]})", text[end:])
    return (text[:end] + _STYLE + drawing).encode()
