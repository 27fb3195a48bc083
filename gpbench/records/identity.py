"""A run's identity: the hash of what determines its numbers, and of nothing else such as device, versions or commit,
but for runs made for their seconds.  Records whose hash is made otherwise have another `SCHEMA`."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from gpbench.config.values import PROTOCOL_DEFAULTS

SCHEMA = 2
"""The number of this definition of identity and record, stored in every record.  1, in records that have none, hashed
the whole protocol."""

PROTOCOL: Mapping[str, Any] = {
    "name": None,  # a record belongs to one protocol, by whose name tables select
    **PROTOCOL_DEFAULTS,
}
"""The protocol's keys that reach arrays, metrics or the record, each with its neutral value.

A key that is absent or has its neutral value is left out of the identity, so that a key added here with the value that
does what was done before changes no id.  What methods interpolate is part of the method's own section."""


def identify(cfg: Mapping[str, Any], data_checksum: str) -> dict[str, Any]:
    """The identity of a resolved configuration but for split, output and seed: the arguments of `run_id`, `cell_id`."""
    from gpbench.data import splits  # here: ids of known identities need no NumPy

    card, protocol = cfg["dataset"], cfg["protocol"]
    identity = {
        "schema": SCHEMA,
        "method": _without(cfg["method"], cfg.get("implied") or {}),
        "protocol": _without({key: protocol[key] for key in PROTOCOL if key in protocol}, PROTOCOL),
        "data": {
            **{"name": card["name"], "task": card["task"], "splits": splits.identity(card)},
            **{key: card[key] for key in ("impute", "exposure") if card.get(key)},
            **({} if card.get("threshold") is None else {"threshold": float(card["threshold"])}),
        },
        "data_checksum": data_checksum,
        **({"units": "original"} if _PERIOD.search(_text(cfg["method"])) else {}),
    }
    timing = timing_keys(cfg["run"])
    return identity | ({"timed": timing} if timing else {})


def timing_keys(run: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of the `run` section on which the numbers of a run with `run.timing` depend."""
    return {key: run[key] for key in ("devices", "processes", "cores")} if run.get("timing") else {}


def run_id(*, split: int, seed: int, **identity: Any) -> str:
    """The id of one run: the first 16 hex digits of the SHA-256 of its identity, which is what `identify` returns, with
    `output` where the data set has several.  The order of keys does not matter; 1 and 1.0 differ."""
    return _digest({**identity, "split": int(split), "seed": int(seed)})


def cell_id(**identity: Any) -> str:
    """The id of a table's cell: the identity without split and seed, over which a cell is averaged."""
    return _digest(identity)


def _without(node: Mapping[str, Any], neutral: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping without the keys that have their neutral value."""
    return {key: v for key, v in node.items() if key not in neutral or _text(v) != _text(neutral[key])}


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(_text(identity).encode()).hexdigest()[:16]


_text = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
"""Canonical JSON: tuples are lists, keys are sorted strings, a float has a point or an exponent."""
_PERIOD = re.compile(r'"period":(?!null)')
"""A period of a kernel, in original units of the input; records in which it was one of scaled inputs have other ids."""
