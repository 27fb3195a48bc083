"""What an option of a kernel can be: parsers of plain values, which raise ValueError with what a value must be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a family: its default and its parser.  Parsed values are hashable."""

    default: Any
    parse: Callable[[Any], Any]


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def positive(value: Any) -> float:
    """A finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < float("inf"):
        raise ValueError("a positive number")
    return float(value)


def count(value: Any) -> int:
    """A whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError("a whole number from 1")
    return value


def columns(value: Any) -> tuple[int, ...]:
    """Numbers of columns from 0, sorted."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if not is_list or any(isinstance(i, bool) or not isinstance(i, int) or i < 0 for i in value):
        raise ValueError("a list of column numbers from 0")
    if len(set(value)) < len(value):
        raise ValueError("a list of different column numbers")
    return tuple(sorted(value))
