"""A run's identity: the hash of what determines its numbers, and of nothing else.

Device, versions, commit and folder are told by the record, but do not make a run another run; a run made for its
seconds says otherwise.
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
    of_numbers = {
        "method": _without_later(cfg["method"]),
        "protocol": cfg["protocol"],
        "data": data,
        "data_checksum": data_checksum,
    }
    return of_numbers | ({"timed": told} if (told := timed(cfg)) else {})


_LATER = {
    "gpbench.methods.vi.svi.SVI": {"likelihood": "gaussian"},
    "gpbench.methods.vi.svdgp.SVDGP": {"likelihood": "gaussian"},
}
"""Keys that a method got after runs of it were recorded, each with the value that does what was done before.  With it
they are no part of the identity, so that these records stay what they are."""


def _without_later(method: Mapping) -> dict[str, Any]:
    later = _LATER.get(str(method.get("_target_")), {})
    return {key: value for key, value in method.items() if key not in later or value != later[key]}


def timed(cfg: Mapping) -> dict[str, Any]:
    """What else is part of a run whose seconds are what it is made for (`run.timing`): on what it computes."""
    run = cfg["run"]
    return {key: run[key] for key in ("devices", "processes", "cores")} if run["timing"] else {}


def run_id(*, split: int, seed: int, **configuration: Any) -> str:
    """The id of one run: the first 16 hex digits of the SHA-256 of its identity, which `of` tells but for these two.

    The mappings are resolved configuration: mappings, lists, strings, numbers, booleans and None; the order of
    keys does not matter and 1 equals 1.0.  Raises TypeError or ValueError for anything else, NaN included.
    """
    return _digest({**configuration, "split": int(split), "seed": int(seed)})


def cell_id(**configuration: Any) -> str:
    """The id of a table's cell: the identity without split and seed, over which a cell is averaged."""
    return _digest(configuration)


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
