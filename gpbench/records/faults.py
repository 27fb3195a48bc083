"""What is wrong with a record, whichever file it is from: one that passes stops no verb."""

from collections.abc import Mapping
from types import NoneType
from typing import Any

from gpbench.records.identity import SCHEMA

LARGEST = 1e150
"""Of metrics and the objective: squares of larger numbers are not finite."""
NEEDED: Mapping[str, tuple[type, ...]] = {
    "id": (str,),
    "status": (str,),
    "dataset": (str,),
    "method": (str,),
    "setting": (str,),
    "protocol": (str,),
    "split": (int,),
    "seed": (int,),
    "metrics": (dict,),
    "seconds": (dict,),
}
TABLES = ("metrics", "seconds", "diagnostics", "settings")
"""Mappings of numbers."""
_TEXTS = (
    "preset",
    "precision",
    "device",
    "created",
    "commit",
    "cell",
    "data_checksum",
    "split_set",
    "message",
    "source",
    "source_checksum",
)
_COUNTS = ("schema", "steps", "train_rows", "test_rows", "test_rows_outside", "group")
_FLAGS = ("held_out", "scaled_by_all_rows", "dirty", "converged", "kept", "saved", "imported")
_NUMBERS = ("objective", "peak_memory_mb", "step_memory_mb")
KINDS: Mapping[str, tuple[type, ...]] = {**NEEDED} | {
    name: (*kinds, NoneType)
    for names, kinds in (
        (("output",), (str, int)),
        (_TEXTS, (str,)),
        (_COUNTS, (int,)),
        (_FLAGS, (bool,)),
        (_NUMBERS, (int, float)),
        (("versions", "host", *TABLES[2:]), (dict,)),
    )
    for name in names
}
"""Exact types: a truth value is no number."""


def fault(record: Any, id: str | None = None) -> str:
    """What is wrong with a record that `seal.plain` read, of this id where one is given; "" where nothing is."""
    if not isinstance(record, dict):
        return "its record.json is not a mapping"
    wrong = [name for name in NEEDED if name not in record]
    wrong += [name for name, value in record.items() if name in KINDS and type(value) not in KINDS[name]]
    if wrong:
        return f"{', '.join(wrong)} missing or of the wrong type"
    if found := newer(record):
        return found
    if id is not None and record["id"] != id:
        return f"it says that its id is {_short(record['id'])}"
    if record["status"] not in ("done", "diverged"):
        return f"status {_short(record['status'])!r} is neither done nor diverged"
    if record["split"] < 0:
        return f"split {record['split']} is below 0"
    for table in TABLES:
        for name, value in (record.get(table) or {}).items():
            if type(value) not in (float, int, NoneType):
                return f"{_short(name)} is not a number"
            if value is not None and not abs(value) <= LARGEST:
                return f"{_short(name)} is {value:g}, beyond {LARGEST:g}"
    if not abs(record.get("objective") or 0) <= LARGEST:
        return f"objective is {record['objective']:g}, beyond {LARGEST:g}"
    return ""


def newer(record: Mapping) -> str:
    """What is wrong with a record of a newer gpbench, "" for any other."""
    schema = record.get("schema")
    return f"it has schema {schema}, and this gpbench reads up to {SCHEMA}: upgrade" if (schema or 1) > SCHEMA else ""


def _short(text: str) -> str:
    """A text of unknown length in a message of one line, whatever its characters."""
    shown = ascii(text)[1:-1]
    return shown if len(shown) <= 60 else shown[:57] + "..."
