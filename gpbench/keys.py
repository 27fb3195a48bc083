"""Schemas of mappings in files: keys that must or may be there, and the ranges of their values.  No JAX."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gpbench.errors import ConfigError, as_word, nearest
from gpbench.schema import Range, Words, is_number, parse

TEXT = Range(lambda value: isinstance(value, str | None), "a text")
TEXTS = Range(
    lambda value: (
        value is None
        or (isinstance(value, list | tuple) and all(isinstance(entry, str) or is_number(entry) for entry in value))
    ),
    "a list of texts or numbers; put quotes around an entry with a colon, and around yes, no, on and off",
)
MAPPING = Range(lambda value: isinstance(value, Mapping | None), "a mapping")
MAPPINGS = Range(
    lambda value: isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value), "a list of mappings"
)
MAPPING_OF_MAPPINGS = Range(
    lambda value: value is None or (MAPPING.contains(value) and all(map(MAPPING.contains, value.values()))),
    "a mapping of mappings",
)


class Key(NamedTuple):
    """A key of a mapping."""

    range: Words | Range = "any"  # values that it can have
    meaning: str = ""  # meaning of the key, as the documentation prints it
    default: Any = None  # value that stands for an absent key, as the documentation prints it
    required: bool = False  # true for a key that must have a value


def required(range: Words | Range = "any", meaning: str = "") -> Key:
    """A key that must have a value."""
    return Key(range, meaning, required=True)


optional = Key  # one that may be absent


@dataclass(frozen=True)
class Keys:
    """The keys that a mapping has, by name."""

    keys: Mapping[str, Key] = field(default_factory=dict)

    @classmethod
    def from_names(cls, required_keys: Iterable[str] = (), optional_keys: Iterable[str] = ()) -> "Keys":
        """Keys by their names alone, with any values."""
        return cls({**dict.fromkeys(required_keys, required()), **dict.fromkeys(optional_keys, optional())})

    def __or__(self, other: "Keys") -> "Keys":
        return Keys({**self.keys, **other.keys})

    def check(self, node: Any, subject: str) -> Mapping[str, Any]:
        """The mapping, if it has the required keys, no unknown ones, and values in their ranges; else ConfigError."""
        node = mapping(node, subject)
        faults = []
        if absent := [name for name, key in self.keys.items() if key.required and node.get(name) in (None, "", [], {})]:
            faults.append(f"lacks {', '.join(absent)}")
        if unknown := [str(name) for name in node if name not in self.keys]:
            faults.append(f"has an unknown key {unknown[0]!r}; {nearest(unknown[0], self.keys)}")
        if faults:
            raise ConfigError(f"{subject} {' and '.join(faults)}")
        for name, value in node.items():
            parse(self.keys[name].range).check(f"{subject}: {name}", value)
        return node


def mapping(node: Any, subject: str) -> Mapping[Any, Any]:
    """The node, {} for none.  Raises ConfigError for anything but a mapping."""
    if not isinstance(node, Mapping | None):
        raise ConfigError(f"{subject} must be a mapping, not {as_word(node)}")
    return node or {}
