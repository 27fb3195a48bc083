"""One run's folder: record.json, config.yaml, trace.npz and perhaps predictions and the trained state.  record.json has
the SHA-256 of the other files, and ends with its own; one without them is read unchecked."""

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import limits, yamls
from gpbench.errors import require
from gpbench.records import arrays
from gpbench.records.record import Record, clean

if TYPE_CHECKING:
    import numpy as np

RECORD, CONFIG, TRACE, STATE = "record.json", "config.yaml", "trace.npz", "state.npz"
_SIZES = {CONFIG: limits.CONFIG, TRACE: limits.TRACE, arrays.PREDICTIONS: limits.PREDICTIONS, STATE: limits.STATE}
FILES = tuple(_SIZES)  # names of the files beside the record
_END = b',\n "checksum": "'
_CHANGED = "its record.json is not what was written (the checksum differs)"
_SECTIONS = ("run", "data", "dataset", "method", "protocol")


def read(runs: str, id: str) -> tuple[Record | None, str]:
    """The record in `runs/id`, and ""; or None, and what is wrong with it."""
    try:
        value, _ = unseal(limits.read(f"{runs}/{id}/{RECORD}", limits.RECORD))
        return Record.from_json(value, id), ""
    except FileNotFoundError:
        return None, "it has no record.json"
    except (OSError, ValueError) as error:
        return None, getattr(error, "strerror", None) or str(error)


def content(runs: str, id: str, name: str) -> bytes | None:
    """Another file of the run; None where it has none of this name.  Raises ValueError: it is damaged."""
    try:
        whole = limits.read(f"{runs}/{id}/{name}", _SIZES[name])
        _, checksums = unseal(limits.read(f"{runs}/{id}/{RECORD}", limits.RECORD))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ValueError(f"its {name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    is_same = checksums is None or checksums.get(name) == _digest(whole)
    require(is_same, f"its {name} is not what was written (the checksum differs)", ValueError)
    return whole


def write(
    folder: Path,
    record: Record,
    config: Mapping[str, Any],
    trace: "Mapping[str, np.ndarray]",
    predictions: arrays.Predictions | None = None,
    state: "Mapping[str, np.ndarray] | None" = None,
) -> None:
    """Makes the folder with its files, on the disk and not only in its cache.  Raises OSError."""
    import numpy as np

    folder.mkdir()
    (folder / CONFIG).write_text(yamls.dump(clean(config, math.inf)))
    np.savez_compressed(folder / TRACE, allow_pickle=False, **{k: np.asarray(v) for k, v in trace.items()})
    if predictions:
        arrays.write_predictions(folder, predictions)
    if state:
        np.savez_compressed(folder / STATE, allow_pickle=False, **{k: np.asarray(v) for k, v in state.items()})
    others = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    (folder / RECORD).write_bytes(seal(record.to_json(), others))
    for path in (*folder.iterdir(), folder):
        fsync(path)


def fsync(path: Path) -> None:
    """Waits until a file's content, or a folder's list of names, is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def decode_config(content: bytes) -> str:
    """The text of the file.  Raises ValueError for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("its config.yaml is no text") from None


def parse_config(text: str) -> dict[str, Any]:
    """The configuration; empty for an empty text.  Aliases, which may stand for billions of values, are refused."""
    import yaml

    depth = 0
    try:
        limits.check(len(text), limits.CONFIG, "it has")
        for event in yaml.parse(text, Loader=yamls.loader()):  # event by event, which needs no memory and no recursion
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            require(depth <= limits.CONFIG_DEPTH, f"more than {limits.CONFIG_DEPTH} levels", ValueError)
            require(not isinstance(event, yaml.AliasEvent), "aliases", ValueError)
        config = yamls.load(text) or {}
        json.dumps(config, allow_nan=False)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"it is no configuration ({' '.join(str(error).split())[:100]})") from None
    sections = isinstance(config, dict) and all(isinstance(config.get(name) or {}, dict) for name in _SECTIONS)
    is_whole = sections and all(isinstance(folder, str) for folder in config.get("config_dirs") or ())
    require(is_whole, "it is no configuration", ValueError)
    return config


def seal(record: Mapping[str, Any], others: Mapping[str, bytes]) -> bytes:
    """The content of record.json, with the checksums of these files and of itself."""
    checksums = {name: _digest(content) for name, content in others.items()}
    text = json.dumps({**record, "checksums": checksums}, indent=1, allow_nan=False).removesuffix("\n}").encode()
    return text + _END + _rest(text)


def unseal(content: bytes) -> tuple[Any, dict[str, str] | None]:
    """The record, and the checksums of the other files; None for those of a record from before there were any."""
    text, end, rest = content.rpartition(_END)
    require(not end or rest == _rest(text), _CHANGED, ValueError)
    try:
        record = plain(content.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its record.json is not valid JSON ({error})") from None
    if end:
        del record["checksum"]
        return record, record.pop("checksums")
    # where it has one of these, what comes before them has changed
    require(not isinstance(record, dict) or not record.keys() & {"checksum", "checksums"}, _CHANGED, ValueError)
    return record, None


def plain(text: str) -> Any:
    """JSON that can be printed and put into tables; NaN and Infinity are None.  Raises ValueError for texts that are
    none, or beyond `limits`; RecursionError for a thousand levels."""
    value = _DECODER.decode(text)
    if "\\u" in text:  # perhaps half a pair of surrogates
        json.dumps(value, ensure_ascii=False).encode()
    if text.count("{") + text.count("[") > limits.DEPTH or text.count(",") > limits.NAMES:
        level = [value]
        for _ in range(limits.DEPTH):
            longest = max((len(node) for node in level if isinstance(node, list)), default=0)
            require(longest <= limits.NAMES, f"a list of more than {limits.NAMES:,} entries", ValueError)
            nodes = [[*node.values()] if isinstance(node, dict) else node for node in level]
            level = [item for node in nodes if isinstance(node, list) for item in node]
        require(not level, f"more than {limits.DEPTH} levels", ValueError)
    return value


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _rest(text: bytes) -> bytes:
    return f'{_digest(text)}"\n}}\n'.encode()


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > limits.NAMES:
        raise ValueError(f"a mapping of more than {limits.NAMES:,} entries")
    if len(mapping := dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {ascii(next(name for name in names if names.count(name) > 1))[:60]} twice")
    return mapping


def _whole(digits: str) -> int:
    if len(digits) < 19 or -(2**63) <= int(digits) < 2**63:
        return int(digits)
    raise ValueError("a number of more than 64 bits")


def _real(digits: str) -> float | None:
    return value if math.isfinite(value := float(digits)) else None


_DECODER = json.JSONDecoder(
    object_pairs_hook=_mapping, parse_int=_whole, parse_float=_real, parse_constant=lambda _: None
)
