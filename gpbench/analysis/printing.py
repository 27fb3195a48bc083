"""Numbers and names as text; tables and JSON on a terminal."""

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from gpbench.errors import UNPRINTABLE, printable


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table: ruled on a terminal, in aligned columns elsewhere."""
    if not sys.stdout.isatty():
        print("\n".join([printable(title)] * bool(title) + aligned(header, rows)))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    ruled = Table(*header, title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        ruled.add_row(*(Text(printable(cell)) for cell in row))  # Text: square brackets are no markup
    Console().print(ruled)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are as wide as their widest cell, with two spaces between them."""
    lines = [tuple(map(printable, row)) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in lines]


def width() -> int | None:
    """The width of the terminal in characters, or COLUMNS; None where neither is known."""
    columns = os.environ.get("COLUMNS", "")
    is_known = sys.stdout.isatty() or (columns.isdecimal() and int(columns) > 0)
    return shutil.get_terminal_size().columns if is_known else None


def print_json(value: Any) -> None:
    """Prints JSON with an indent of two spaces, in ASCII where the terminal lacks a letter.

    Raises:
        ValueError: A number is NaN or infinite, which JSON has not.
    """
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
    return f"{n} {noun}{'s' * (n != 1)}"


def abridge(names: Sequence[str], most: int = 6) -> str:
    """The first of these names, and how many more there are."""
    more = [f"and {len(names) - most} more"] if len(names) > most else []
    return "; ".join([*names[:most], *more])


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sort key that orders numbers in texts by size: m=15% before m=100."""
    return [(0, float(word), "") if word.isdecimal() else (1, 0.0, word) for word in re.split(r"(\d+)", text) if word]
