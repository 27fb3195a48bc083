"""Vector pictures that follow the reader's choice of a light or a dark page, also in an `<img>`."""

import re

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
    """The picture with variables in place of black, white and greys, which change with the colour scheme of the page.

    Other colours are legible on both.
    """
    text = svg.decode()
    start = text.index("<svg ")
    end = text.index(">", start) + 1
    pattern = re.compile("|".join(map(re.escape, _GREYS)), re.IGNORECASE)
    drawing = pattern.sub(lambda found: f"var(--{_GREYS[found[0].lower()]})", text[end:])
    return (text[:end] + _STYLE + drawing).encode()
