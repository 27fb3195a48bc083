"""The columns of a collection: records spread out into them, and their values put together again.

Mappings of numbers in a record (`metrics`, `seconds`) become a column for each number, as in `metrics.nll`; whatever
else is no number, truth value or text is kept as JSON.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from gpbench.errors import ConfigError
from gpbench.records import seal

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings of numbers spread out."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        numbers = value and isinstance(value, Mapping) and {type(v) for v in value.values()} <= {int, float, NoneType}
        if numbers:
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def column(values: list) -> "pa.Array":
    """A column of these values; None is null."""
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {str}:
        return texts(values)
    if kinds in ({bool}, {int}, {float}, {int, float}):
        return pa.array(values, pa.float64() if float in kinds else None)
    coded = pa.array([None if value is None else json.dumps(value).encode() for value in values], pa.binary())
    return coded.dictionary_encode()  # bytes, and so not a text


def texts(values: list) -> "pa.Array":
    """A column of texts and null."""
    import pyarrow as pa

    return pa.array(values, pa.string()).dictionary_encode()


def values(path: Path, name: str, column: "pa.ChunkedArray", bad: dict[int, str]) -> list:
    """A column as Python's values.  Equal values of JSON are one object.

    Rows with a number that is not finite, or no JSON, are put among the `bad` ones.  Raises ConfigError for a column of
    another kind than collections have.
    """
    import numpy as np
    import pyarrow.types as kinds

    kind, whole = column.type, column.combine_chunks()
    if kinds.is_dictionary(kind) and (kinds.is_binary(kind.value_type) or kinds.is_string(kind.value_type)):
        known, none = _parsed(whole.dictionary.to_pylist())
        known.append(None)
        codes = np.full(len(whole), len(known) - 1)
        rows, present = _present(whole.indices)
        codes[rows] = present
        bad.update(dict.fromkeys(np.flatnonzero(np.isin(codes, none)).tolist(), f"{name} is no plain JSON"))
        return [known[i] for i in codes.tolist()]
    if not (
        kinds.is_boolean(kind)
        or kinds.is_signed_integer(kind)
        or kinds.is_floating(kind)
        or kinds.is_string(kind)
        or kinds.is_null(kind)
    ):
        raise ConfigError(f"{path} is no collection: its column {name} is of type {kind}; `gpbench collect` makes one")
    if kinds.is_floating(kind):
        rows, present = _present(whole)
        bad.update(dict.fromkeys(rows[~np.isfinite(present)].tolist(), f"{name} is not finite"))
    if column.null_count or not kinds.is_primitive(kind) or kinds.is_boolean(kind):
        return whole.to_pylist()
    return np.from_dlpack(whole).tolist()


def _present(numbers: "pa.Array") -> "tuple[np.ndarray, np.ndarray]":
    """The rows that have a number, and the numbers; by calls that import no pandas, as to_numpy and fill_null do."""
    import numpy as np
    import pyarrow as pa

    valid = np.from_dlpack(numbers.is_valid().cast(pa.uint8()))
    return np.flatnonzero(valid), np.from_dlpack(numbers.drop_null())


def _parsed(known: Sequence[str | bytes]) -> tuple[list, list[int]]:
    """Texts as they are and values of JSON, which are bytes; and the places of what is no JSON."""
    parsed: list[Any] = []
    none: list[int] = []
    for i, value in enumerate(known):
        try:
            parsed.append(seal.plain(value) if isinstance(value, bytes) else value)
        except (ValueError, RecursionError):
            parsed.append(None)
            none.append(i)
    return parsed, none


def records(fields: Sequence[str], values: Mapping[str, list], rows: Sequence[int]) -> Iterator[dict]:
    """The records of these rows, which all have these fields."""
    parts: dict[str, list[str]] = {}
    for field in fields:
        parts.setdefault(field.partition(".")[0], []).append(field)

    def column(fields: Sequence[str]) -> Iterable[Any]:
        if "." not in fields[0]:
            return [values[fields[0]][row] for row in rows]
        keys = [field.partition(".")[2] for field in fields]
        return (dict(zip(keys, row)) for row in zip(*([values[field][row] for row in rows] for field in fields)))

    yield from (dict(zip(parts, row)) for row in zip(*map(column, parts.values())))
