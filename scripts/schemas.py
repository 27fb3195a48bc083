"""JSON Schemas of the files that users write, made from the declarations of their keys, for editors of YAML."""

from collections.abc import Mapping
from typing import Any

from gpbench import data_registry, schema
from gpbench.claims.definition import CLAIM
from gpbench.config.cards import CARD, KINDS, SOURCE, SPLITS
from gpbench.experiments.definition import KEYS as EXPERIMENT
from gpbench.schema import Keys, Range, Words

_NUMBER = {"type": "number"}
_WORDS: Mapping[str, dict[str, Any]] = {
    **{name: {"type": "integer", "minimum": 1} for name in ("count", "rows")},
    **{name: {"type": "integer", "minimum": 2} for name in ("several", "several rows")},
    **{"whole": {"type": "integer", "minimum": 0}, "integer": {"type": "integer"}, "number": _NUMBER},
    **{"positive": _NUMBER | {"exclusiveMinimum": 0}, "nonnegative": _NUMBER | {"minimum": 0}},
    "above_one": _NUMBER | {"exclusiveMinimum": 1},
    "fraction": _NUMBER | {"exclusiveMinimum": 0, "maximum": 1},
    "share": _NUMBER | {"minimum": 0, "maximum": 1},
    "below_one": _NUMBER | {"minimum": 0, "exclusiveMaximum": 1},
    **{"flag": {"type": "boolean"}, "text": {"type": "string"}, "null": {"type": "null"}, "auto": {"const": "auto"}},
    "section": {"type": "object"},
}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_RANGES: Mapping[Range, dict[str, Any]] = {
    schema.TEXT: {"type": ["string", "null"]},
    schema.TEXTS: {"type": ["array", "null"], "items": {"type": ["string", "number"]}},
    schema.MAPPING: {"type": ["object", "null"]},
    schema.MAPPINGS: _OBJECTS,
    schema.MAPPING_OF_MAPPINGS: {"type": ["object", "null"], "additionalProperties": {"type": ["object", "null"]}},
}
"""Ranges by their schemas; others take anything here, and gpbench itself checks them."""


def _values(words: Words | Range) -> dict[str, Any]:
    """The schema of the values of a key."""
    if isinstance(words, Range):
        return dict(_RANGES.get(words, {}))
    if not isinstance(words, str):
        return {"enum": [*words]}
    if len(several := words.split(" or ")) > 1:
        return {"anyOf": [_values(each) for each in several]}
    if (name := words.removeprefix("list of ")) != words:
        return {"type": "array", "items": _values(name)}
    return dict(_WORDS.get(words, {}))


def _mapping(*tables: Keys, others: Mapping[str, Any] | None = None, closed: bool = True) -> dict[str, Any]:
    """The schema of a mapping with the keys of these tables, the first of which says what must be there."""
    properties: dict[str, Any] = {}
    for name in dict.fromkeys(name for table in tables for name in table.keys):
        entries = [table.keys[name] for table in tables if name in table.keys]
        ranges: list[dict[str, Any]] = []
        for key in entries:
            ranges += [values] if (values := _values(key.range)) not in ranges else []
        meaning = next((key.meaning for key in entries if key.meaning), "")
        values = ranges[0] if len(ranges) == 1 else {} if {} in ranges else {"anyOf": ranges}
        properties[name] = values | ({"description": meaning} if meaning else {})
    required = [name for name, key in tables[0].keys.items() if key.required]
    return {
        "type": "object",
        "properties": properties | dict(others or {}),
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if closed else {}),
    }


def schemas() -> dict[str, dict[str, Any]]:
    """The schemas of cards, experiments and claims, by the names of their files."""
    readers, sets = (
        [entry.options for entry in table.values()] for table in (data_registry.READERS, data_registry.SPLIT_SETS)
    )
    # a reader of the user's has options of its own
    kinds = {"kind": {"enum": [*KINDS]}}
    source = _mapping(SOURCE, *KINDS.values(), *readers, others=kinds, closed=False)
    parts = {"sources": {"type": "array", "items": source}, "splits": _mapping(SPLITS, *sets)}
    # an experiment may take the rest from another one, which it names
    free = Keys({name: key._replace(required=False) for name, key in EXPERIMENT.keys.items()})
    experiment = _mapping(free, others={"same": {"type": "string", "description": "Experiment that this one is."}})
    made = {
        "card": _mapping(CARD, others=parts),
        "experiment": experiment,
        "claims": {"type": "object", "additionalProperties": _mapping(CLAIM)},
    }
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"gpbench: {name}", **content}
        for name, content in made.items()
    }
