"""Values by their keys."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


def gather(pairs: Iterable[tuple[_K, _V]]) -> dict[_K, list[_V]]:
    """The values of each key, keys and values in the order in which they come."""
    groups: dict[_K, list[_V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
