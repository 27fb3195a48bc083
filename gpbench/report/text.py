"""Printing: aligned text into files and pipes, ruled tables on a terminal, JSON for programs."""

import json
import shutil
import sys
from collections.abc import Sequence
from typing import Any


def table(header: Sequence[str], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """Prints a table: ruled by rich on a terminal, aligned columns elsewhere."""
    if not sys.stdout.isatty():
        print("\n".join([title] * bool(title) + aligned(header, rows)))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    ruled = Table(*header, title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        ruled.add_row(*(Text(cell) for cell in row))  # Text: square brackets are no markup
    Console().print(ruled)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with every column as wide as its widest cell, two spaces between."""
    widths = [max(map(len, column)) for column in zip(header, *rows)]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in (header, *rows)]


def width() -> int | None:
    """The columns of the terminal, None when the output goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def as_json(value: Any) -> None:
    """Prints JSON that any parser reads: two spaces of indent, no NaN."""
    print(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def number(value: float | None, stderr: float | None = None) -> str:
    """Two digits of the standard error, and the mean as far: "0.112 ± 0.011"; four digits without one."""
    if value is None:
        return "-"
    if not stderr:
        return f"{value:.4g}"
    exponent = int(f"{stderr:e}".split("e")[1])
    if exponent < -6 or abs(value) >= 1e6:
        return f"{value:.4g} ± {stderr:.2g}"
    decimals = max(0, 1 - exponent)
    return f"{value:.{decimals}f} ± {stderr:.{decimals}f}"
