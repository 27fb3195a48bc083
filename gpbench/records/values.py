"""What the values of a record may be: how they become JSON, and what is wrong with those that are read.

Imports neither JAX nor NumPy nor pandas.
"""

import math
from collections.abc import Mapping, Set
from typing import Any

from gpbench.records.identity import SCHEMA

LARGEST = 1e150
"""Largest absolute value of a metric or an objective: squares of larger numbers are not finite."""


def clean(value: Any, largest: float = LARGEST) -> Any:
    """JSON-clean: NaN, infinities and numbers beyond `largest` to None, NumPy's to Python's, tuples to lists.

    Of a path that is not UTF-8, the bytes that no text has become escapes, which YAML can read.
    """
    if isinstance(value, Mapping):
        return {str(key): clean(item, largest) for key, item in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [clean(item, largest) for item in value]
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    return None if isinstance(value, float) and not (math.isfinite(value) and abs(value) <= largest) else value


def problem(
    value: Any, kinds: Mapping[str, tuple[type, ...]], needed: Set[str], reserved: Set[str], id: str | None
) -> str:
    """The first problem of a record, for a message; "" without one."""
    if not isinstance(value, dict):
        return "its record.json is not a mapping"
    wrong = [] if needed <= value.keys() else sorted(needed - value.keys())
    wrong += [name for name, item in value.items() if type(item) not in kinds.get(name, (type(item),))]
    if wrong:
        return f"{', '.join(wrong)} missing or of the wrong type"
    if not reserved.isdisjoint(value):
        return f"{min(reserved & value.keys())} is no field of a record"
    if (value.get("schema") or 1) > SCHEMA:
        return f"it has schema {value['schema']}, and this gpbench reads up to {SCHEMA}: upgrade"
    if id is not None and value["id"] != id:
        return f"it says that its id is {_short(value['id'])}"
    if value["status"] not in ("done", "diverged", "failed"):
        return f"status {_short(value['status'])!r} is none of done, diverged and failed"
    if value["split"] < 0:
        return f"split {value['split']} is below 0"
    for table in ("metrics", "row_stderr", "seconds", "diagnostics", "settings"):
        for name, number in (value.get(table) or {}).items():
            if number is None or (type(number) is float and -LARGEST <= number <= LARGEST):
                continue
            if type(number) not in (float, int):
                return f"{_short(name)} is not a number"
            if not abs(number) <= LARGEST:
                return f"{_short(name)} is {number:g}, beyond {LARGEST:g}"
    for name, number in (value.get("row_stderr") or {}).items():
        if number is not None and number < 0:
            return f"row_stderr.{_short(name)} is {number:g}, below 0"
    for name, reason in (value.get("undefined") or {}).items():
        if not (isinstance(reason, str) and reason.isprintable() and len(reason) <= 200):
            return f"undefined.{_short(name)} is no reason in a line"
    for name, described in (value.get("own_metrics") or {}).items():
        if not _describes_metric(described):
            return f"own_metrics.{_short(name)} is no title, unit and direction"
    if not abs(value.get("objective") or 0) <= LARGEST:
        return f"objective is {value['objective']:g}, beyond {LARGEST:g}"
    return ""


def _describes_metric(value: Any) -> bool:
    """Tests for texts of one line, which tables print, and a direction."""
    if not isinstance(value, dict) or value.get("better") not in ("lower", "higher", None):
        return False
    texts = [value.get(key) or "" for key in ("title", "unit")]
    return all(isinstance(text, str) and text.isprintable() and len(text) <= 200 for text in texts)


def _short(text: str) -> str:
    """A text of unknown length in a message of one line, whatever its characters."""
    escaped = ascii(text)[1:-1]
    return escaped if len(escaped) <= 60 else escaped[:57] + "..."
