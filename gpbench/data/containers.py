"""Cells of typed tables as text, and the errors of their parsers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpbench.errors import DataError, GpbenchError


def text_of(cell: Any) -> str:
    """Writes a cell as a csv file has it: "" for none, 1 and 0 for true and false, numbers with all their digits."""
    if cell is None:
        return ""
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace")
    return str(int(cell)) if isinstance(cell, bool) else str(cell)


@contextmanager
def reading(kind: str) -> Iterator[None]:
    """Makes a DataError of every error of a parser: it raises of any kind, and the content is the user's."""
    try:
        yield
    except GpbenchError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"not a readable {kind}: {reason or type(error).__name__}") from None
