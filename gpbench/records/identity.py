"""A run's identity: the hash of what determines its numbers, and of nothing else.

Device, versions, commit and folder are told by the record, but do not make a run another run.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def of(cfg: Mapping, data_checksum: str) -> dict[str, Any]:
    """What of a resolved configuration decides the numbers, split and seed apart: the arguments of the two ids."""
    from gpbench.data import splits  # here: ids of known identities need no NumPy

    card = cfg["dataset"]
    data = {"name": card["name"], "task": card["task"], "splits": splits.identity(card)}
    return {"method": cfg["method"], "protocol": cfg["protocol"], "data": data, "data_checksum": data_checksum}


def run_id(*, method: Mapping, protocol: Mapping, data: Mapping, data_checksum: str, split: int, seed: int) -> str:
    """The id of one run: the first 16 hex digits of the SHA-256 of its identity.

    The mappings are resolved configuration: mappings, lists, strings, numbers, booleans and None; the order of
    keys does not matter and 1 equals 1.0.  Raises TypeError or ValueError for anything else, NaN included.
    """
    return _digest({**_configuration(method, protocol, data, data_checksum), "split": int(split), "seed": int(seed)})


def cell_id(*, method: Mapping, protocol: Mapping, data: Mapping, data_checksum: str) -> str:
    """The id of a table's cell: the identity without split and seed, over which a cell is averaged."""
    return _digest(_configuration(method, protocol, data, data_checksum))


def _configuration(method: Mapping, protocol: Mapping, data: Mapping, data_checksum: str) -> dict:
    return {"method": method, "protocol": protocol, "data": data, "data_checksum": data_checksum}


def _digest(identity: Mapping) -> str:
    text = json.dumps(_canonical(identity), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(value: Any) -> Any:
    """Equal values to equal JSON: keys are strings, tuples are lists, 1.0 is 1."""
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
