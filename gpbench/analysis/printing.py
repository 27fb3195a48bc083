"""Numbers and names as text; tables and JSON on a terminal."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from gpbench.errors import UNPRINTABLE, printable

_GAP = "  "
_NARROWEST = 6  # smallest width of a column of words
_READABLE, _LONG = 30, 60  # A column narrower than _READABLE, of a text of more than _LONG characters, is not read


def aligned(
    header: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None, *, rule: bool = False
) -> Iterator[str]:
    """The lines of a table of words; where columns would be too narrow, each row has lines of its own."""
    names, *lines = [tuple(map(printable, row)) for row in chain([header], rows)]
    natural_widths = [max(map(len, column)) for column in zip(names, *lines)]
    widths = [*natural_widths]
    room = (width or 10**9) - len(_GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    long = [c for c, (w, full) in enumerate(zip(widths, natural_widths)) if c and w < _READABLE and full > _LONG]
    if long and width:
        # a row as a line of its short cells, and lines of the long ones, with the names of all columns but the first
        for row in lines:
            short = [row[0], *(f"{names[c]}: {row[c]}" for c in range(1, len(row)) if c not in long and row[c])]
            texts = [(_GAP.join(short), ""), *((f"{names[c]}: {row[c]}", _GAP) for c in long if row[c])]
            yield from (line for text, indent in texts for line in _wrap(indent + text, width, indent + _GAP))
        return
    if widths == natural_widths:  # no text is broken
        line = _GAP.join(f"{{:{w}}}" for w in widths).format
        broken = lambda row: [line(*row).rstrip()]
    else:
        broken = lambda row: _broken(row, widths)
    yield from broken(names)
    if rule:
        yield _GAP.join("-" * w for w in widths)
    yield from (line for row in lines for line in broken(row))


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    # addresses and paths stay whole
    width = max(width, _NARROWEST)
    return textwrap.wrap(text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def fitted(line: str, width: int | None) -> list[str]:
    """A line in pieces of at most this width; further ones begin below what follows the first wide gap."""
    if width is None or len(line) <= width:
        return [line]
    gap = re.match(r"\s*\S+(?: \S+)*? {2,}(?=\S)", line)
    hang = gap.end() if gap and gap.end() <= 0.6 * width else len(line) - len(line.lstrip()) + 4
    return _wrap(line, width, " " * hang)


def _broken(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """The lines of a row of words."""
    columns = [[text] if len(text) <= w else textwrap.wrap(text, w) or [""] for text, w in zip(texts, widths)]
    height = max(map(len, columns))
    lines = zip(*(column + [""] * (height - len(column)) for column in columns))
    return [_GAP.join(text.ljust(w) for text, w in zip(line, widths)).rstrip() for line in lines]


def width() -> int | None:
    """The width of the terminal in characters, or COLUMNS; None where neither is known."""
    columns = os.environ.get("COLUMNS", "")
    is_known = sys.stdout.isatty() or (columns.isdecimal() and int(columns) > 0)
    return shutil.get_terminal_size().columns if is_known else None


def print_json(value: Any) -> None:
    """Prints JSON with an indent of two spaces, in ASCII where the terminal lacks a letter."""
    text = escape_json(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=2, allow_nan=False)
    print(text)


def escape_json(text: str) -> str:
    r"""JSON with escapes such as \u202e for controls of terminals and of direction; the ends of its lines stay."""
    return UNPRINTABLE.sub(lambda match: match[0] if match[0] == "\n" else json.dumps(match[0])[1:-1], text)


def number(value: float | None, stderr: float | None = None) -> str:
    """A mean to two digits of its standard error, as in "0.112 ± 0.011"; to four digits without one, "-" for None."""
    if value is None:
        return "-"
    if not stderr:
        return f"{value:.4g}"
    exponent = int(f"{stderr:e}".split("e")[1])
    if exponent < -6 or abs(value) >= 1e6:
        return f"{value:.4g} ± {stderr:.2g}"
    decimals = max(0, 1 - exponent)
    return f"{value:.{decimals}f} ± {stderr:.{decimals}f}"


def counted(n: int, noun: str) -> str:
    """A number and its noun: "1 run", "2 runs"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def share(n: int, total: int) -> str:
    """How many of some number: "30 of 36", "all 36", "both" or "none of 36"."""
    return ("both" if n == 2 else f"all {n}") if n == total else f"{n or 'none'} of {total}"


def abridge(names: Sequence[str], most: int = 6) -> str:
    """The first of these names, and how many more there are."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sort key that orders numbers in texts by size: m=15% before m=100."""
    return [(0, float(word), "") if word.isdecimal() else (1, 0.0, word) for word in re.split(r"(\d+)", text) if word]
