"""The text of record.json and its checksums: it has those of the run's other files, and ends with that of itself.

A record without any is from before there were checksums, and is taken as it is.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

_END = b',\n "checksum": "'
_CHANGED = "its record.json is not what was written (the checksum differs)"
_DEEPEST = 16


def seal(record: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """The content of record.json, with the checksums of these files and of itself.  Raises ValueError as JSON does."""
    checksums = {name: digest(content) for name, content in files.items()}
    text = json.dumps({**record, "checksums": checksums}, indent=1, allow_nan=False).removesuffix("\n}").encode()
    return text + _END + _rest(text)


def unseal(content: bytes) -> tuple[Any, dict[str, str] | None]:
    """The record, and the checksums of the other files; None in place of these where it is from before there were any.

    Raises ValueError that says what is wrong.
    """
    text, end, rest = content.rpartition(_END)
    if end and rest != _rest(text):
        raise ValueError(_CHANGED)
    try:
        record = plain(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its record.json is not valid JSON ({error})") from None
    if end:
        del record["checksum"]
        return record, record.pop("checksums")
    if isinstance(record, dict) and record.keys() & {"checksum", "checksums"}:  # what comes before them has changed
        raise ValueError(_CHANGED)
    return record, None


def plain(content: bytes) -> Any:
    """JSON that can be printed and put into tables.  NaN and Infinity, as others write them, are None.

    Raises ValueError for texts that are none, numbers of more than 64 bits and nesting of more than 16 levels;
    RecursionError for a thousand levels.
    """
    value = json.loads(content, parse_int=_whole, parse_float=_real, parse_constant=lambda _: None)
    if b"\\u" in content:  # perhaps half a pair of surrogates
        json.dumps(value, ensure_ascii=False).encode()
    if content.count(b"{") + content.count(b"[") > _DEEPEST:
        level = [value]
        for _ in range(_DEEPEST):
            level = [
                part
                for node in level
                if isinstance(node, dict | list)
                for part in (node.values() if isinstance(node, dict) else node)
            ]
        if level:
            raise ValueError(f"more than {_DEEPEST} levels")
    return value


def digest(content: bytes) -> str:
    """The SHA-256 of a file's content, in hex digits."""
    return hashlib.sha256(content).hexdigest()


def _rest(text: bytes) -> bytes:
    return f'{digest(text)}"\n}}\n'.encode()


def _whole(digits: str) -> int:
    if len(digits) < 19 or -(2**63) <= int(digits) < 2**63:
        return int(digits)
    raise ValueError("a number of more than 64 bits")


def _real(digits: str) -> float | None:
    return value if math.isfinite(value := float(digits)) else None
