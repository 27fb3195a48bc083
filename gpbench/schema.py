"""One declaration for each setting, at the field of the class that has it, and for each key of a file: default, range,
meaning.  No JAX."""

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, NamedTuple

from gpbench.errors import ConfigError, as_word, either, located, nearest, require

Words = str | Sequence[Any]  # a range in words


@dataclass(frozen=True)
class Range:
    """A set of values; `text` ends the message "KEY=VALUE: must be ..."."""

    contains: Callable[[Any], bool]
    text: str

    def check(self, key: str, value: Any, hint: str = "") -> None:
        """Raise ConfigError, with `hint` at the end of its message, for a value that is not in the range."""
        if not self.contains(value):
            if self.contains(whole := _as_whole(value)):
                hint = f"; write {as_word(whole)}{hint}"
            raise ConfigError(f"{key}={as_word(value)}: must be {self.text}{hint}")


def is_whole(value: Any) -> bool:
    """True for a whole number of Python or NumPy; a truth value is not a number."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _as_whole(value: Any) -> Any:
    """The value with whole numbers in the place of floats such as 1e3."""
    if isinstance(value, list):
        return [_as_whole(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_number(value: Any) -> bool:
    """True for a finite number, whole or not."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def percentage(value: Any) -> tuple[float, int] | None:
    """The share of the rows and the least number in a text as "15%, at least 200"; None for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)%, at least (\d+)", value) if isinstance(value, str) else None
    share, least = (float(match[1]) / 100, int(match[2])) if match else (0.0, 0)
    return (share, least) if 0 < share <= 1 and least else None


def _are_choices(value: Any) -> bool:
    """True for a mapping, or pairs as methods keep them, from names to lists of numbers or to null."""
    try:
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        filled = [(name, values) for name, values in pairs if values is not None]
        return all(isinstance(name, str) and len(values) > 0 and all(map(is_number, values)) for name, values in filled)
    except (AttributeError, TypeError, ValueError):
        return False


def _is_prior(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return value is None or hasattr(value, "spread")
    return value.keys() == {"median", "spread"} and all(is_number(v) and v > 0 for v in value.values())


def _is_optimiser(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return hasattr(value, "update") or (isinstance(value, list) and bool(value))
    rate = value.get("learning_rate", 1.0)
    return isinstance(value.get("_target_"), str) and not (is_number(rate) and rate <= 0)


def _is_named(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value)
    return value is not None and not isinstance(value, Real | list | tuple)


def _are_components(value: Any) -> bool:
    return value in ("univariate", "all", None) or isinstance(value, list | tuple)


LENGTHSCALE_PRIOR = Range(_is_prior, "null, or {median: 1.0, spread: 1.0} with positive numbers")

WORDS: Mapping[str, Range] = {
    "count": Range(lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "rows": Range(lambda value: is_whole(value) and value >= 1, "a whole number from 1"),
    "units": Range(
        lambda value: value == "inputs" or (is_whole(value) and value >= 1), "a whole number from 1, or inputs"
    ),
    "several rows": Range(lambda value: is_whole(value) and value >= 2, "a whole number from 2"),
    "several": Range(lambda value: is_whole(value) and value >= 2, "a whole number from 2"),
    "whole": Range(lambda value: is_whole(value) and value >= 0, "a whole number from 0"),
    "integer": Range(is_whole, "a whole number"),
    "number": Range(is_number, "a finite number"),
    "positive": Range(lambda value: is_number(value) and value > 0, "a number above 0"),
    "above_one": Range(lambda value: is_number(value) and value > 1, "a number above 1"),
    "nonnegative": Range(lambda value: is_number(value) and value >= 0, "a number from 0"),
    "fraction": Range(lambda value: is_number(value) and 0 < value <= 1, "a number above 0 and up to 1"),
    "share": Range(lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "below_one": Range(lambda value: is_number(value) and 0 <= value < 1, "a number from 0 and below 1"),
    "percentage": Range(
        lambda value: percentage(value) is not None, 'a share with a least number, as "15%, at least 200"'
    ),
    "flag": Range(lambda value: isinstance(value, bool), "true or false"),
    "text": Range(lambda value: isinstance(value, str), "a text"),
    "null": Range(lambda value: value is None, "null"),
    "auto": Range(lambda value: value == "auto", "auto"),
    "choices": Range(_are_choices, "a mapping from names of settings to lists of numbers, as {dropout: [0.05, 0.1]}"),
    "any": Range(lambda value: True, "any value"),
    # values that become objects of their own, as words of a configuration or as these objects
    "kernel": Range(_is_named, "the name of a kernel, or a mapping from it to its options"),
    "likelihood": Range(_is_named, "the name of a likelihood, or a mapping from it to its options"),
    "lengthscale_prior": LENGTHSCALE_PRIOR,
    "optimiser": Range(
        _is_optimiser,
        "a mapping with the optimiser's _target_ and a rate above 0, as in {_target_: optax.adam, learning_rate: 0.01}",
    ),
    "components": Range(_are_components, "univariate, or a list of lists of inputs such as [[0], [1], [0, 1]]"),
    "section": Range(lambda value: isinstance(value, Mapping), "a section with keys of its own"),
    "pairs": Range(_are_components, "all, or a list of pairs of inputs such as [[0, 1], [2, 3]]"),
}

SIZE = "rows or fraction or percentage"  # a number of training rows, or a share of them
_REAL = {"number", "positive", "above_one", "nonnegative", "fraction", "share", "below_one"}


def is_real(words: Words | Range) -> bool:
    """True for a range of real numbers alone, null and auto aside: 1 and 1.0 are then one value."""
    return isinstance(words, str) and set(words.split(" or ")) <= _REAL | {"null", "auto"}


def parse(words: Any) -> Range:
    """The range that `words` mean; a range is returned as it is.  Raises ConfigError for anything else."""
    if isinstance(words, Range):
        return words
    if isinstance(words, str) and words:
        return _by_name(words)
    fault = f"a range is a name such as positive, or a list of choices, not {as_word(words)}"
    require(words and isinstance(words, list | tuple), fault, ConfigError)
    choices = tuple(words)
    is_choice = lambda value: any(type(value) is type(choice) and value == choice for choice in choices)
    return Range(is_choice, either(map(as_word, choices)))


@cache
def _by_name(words: str) -> Range:
    """The range of a name, such as "count" or "list of count", or of several, such as "count or null"."""
    if len(several := words.split(" or ")) > 1:
        ranges = [*map(_by_name, several)]
        return Range(lambda value: any(r.contains(value) for r in ranges), ", or ".join(r.text for r in ranges))
    if (name := words.removeprefix("list of ")) not in WORDS:
        raise ConfigError(f"no range {name!r}; {nearest(name, WORDS)}, or a list of choices")
    entry = WORDS[name]
    contains = lambda value: isinstance(value, list | tuple) and all(map(entry.contains, value))
    return entry if name == words else Range(contains, f"a list, each entry {entry.text}")


def check_finite(key: str, value: Any) -> None:
    """Raise ConfigError for a number in a value that is infinite or NaN."""
    if isinstance(value, Mapping):
        for name, entry in value.items():
            check_finite(f"{key}.{name}", entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            check_finite(key, entry)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{key}={as_word(value)}: must be finite")


RANGE, MEANING = "range", "meaning"  # keys of a field's metadata


def setting(
    default: Any = dataclasses.MISSING,
    range: Words | Range = "any",
    meaning: str = "",
    *,
    converter: Callable[[Any], Any] | None = None,
) -> Any:
    """A keyword-only field that is part of a configuration: static, compared and hashed, never traced by Equinox.  Its
    range is a name of `WORDS`, "list of" one, several joined by "or", or a list of choices; "rows" is a count whose
    default is at most the training rows."""
    metadata: dict[str, Any] = {"static": True, RANGE: range, MEANING: meaning}
    if converter is not None:
        metadata["converter"] = converter
    if isinstance(default, Mapping | list):
        return dataclasses.field(default_factory=lambda: default, kw_only=True, metadata=metadata)
    return dataclasses.field(default=default, kw_only=True, metadata=metadata)


def settings(cls: type) -> Mapping[str, dataclasses.Field]:
    """The fields of a class that `setting` declares, by name, in the order of their declarations."""
    return {field.name: field for field in dataclasses.fields(cls) if RANGE in field.metadata}


def check_declarations(cls: type) -> None:
    """Raises ConfigError unless the ranges that a class declares by `setting` exist, with its defaults in them."""
    for name, field in settings(cls).items():
        subject = f"{cls.__name__}.{name}"
        with located(subject):
            range = parse(field.metadata[RANGE])
        if field.default is not dataclasses.MISSING:
            range.check(f"{subject}: the default", field.default)


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

    keys: Mapping[str, Key] = dataclasses.field(default_factory=dict)

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
