"""Whether a card of a data set has what it must have, and nothing that nobody reads.  Needs no NumPy.

`gpbench.data.cards` reads cards; docs/data.md says what their keys mean.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpbench.errors import ConfigError, as_word, either, nearest
from gpbench.schema import Range, Words, parse


class Keys(NamedTuple):
    """The keys that a part of a card must have, and those that it may have."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def __or__(self, other: "Keys") -> "Keys":
        return Keys(self.required + other.required, self.optional + other.optional)

    @property
    def known(self) -> tuple[str, ...]:
        """All of them."""
        return self.required + self.optional


CARD = Keys(
    ("name", "task", "sources"),
    (
        "title",
        "rows",
        "inputs",
        "outputs",
        "target",
        "labels",
        "counts",
        "columns",
        "output_names",
        "incomplete",
        "variant",
        "variants",
        "checksum",
        "folds_checksum",
        "splits",
        "oddities",
        "licence",
        "cite",
        "published",
    ),
)
"""The keys of a card."""

KINDS: Mapping[str, Keys] = {
    "mirror": Keys(("files", "reader"), ("member",)),
    "official": Keys(("at", "files"), ("reader", "member")),
    "copy": Keys(("at", "files", "reader"), ("member",)),
    "file": Keys(("path",), ("reader", "member", "sha256")),
    "sklearn": Keys(("loader",), ("arguments",)),
    "generated": Keys(("generator", "seed", "rows")),
}
"""The keys of each kind of source, besides `kind`, `labels` and `note`, which all have, and those of its reader.

official: the original address; copy: a repository at a fixed commit; file: the user's own."""

READERS: Mapping[str, Keys] = {
    "npz": Keys((), ("target", "group", "folds")),
    "table": Keys(("target",), ("group", "delimiter", "sheet", "header", "skip", "missing", "drop", "codes")),
    "libsvm": Keys(("inputs",)),
    "idx": Keys(),
    "uci_datasets": Keys(),
    "mat": Keys(("matrix",), ("target", "outputs")),
    "airline_csv": Keys(),
    "airline_npz": Keys(),
    "kuka": Keys(),
    "mujoco_walk": Keys((), ("frames",)),
    "year_zip": Keys(("rows",)),
    "fingerprints_npz": Keys(("bits", "target")),
    "smiles_csv": Keys(("smiles", "target", "radius", "bits")),
}
"""The options of each reader of `gpbench.data.readers`.  Those that read a card's `variant` take it from the card."""

SPLIT_SETS: Mapping[str, Keys] = {
    "random90": Keys(),
    "groups90": Keys(),
    "random": Keys(("test_rows",), ("train_rows",)),
    "hla": Keys(),
    "hla_int8": Keys(),
    "yang": Keys(),
    "raetsch": Keys(),
    "official": Keys(("train_rows",)),
    "draws": Keys(("test_rows", "train_rows")),
}
"""The keys of a card's section `splits`, besides `set` and `sets`, that each rule of `gpbench.data.splits` reads."""

_TEXT = Range(lambda value: isinstance(value, str | None), "a text")
_LIST = Range(lambda value: isinstance(value, list | tuple | None), "a list")
_MAPPING = Range(lambda value: isinstance(value, Mapping | None), "a mapping")

RANGES: Mapping[str, Words | Range] = {
    **dict.fromkeys(
        (
            "name",
            "title",
            "path",
            "at",
            "reader",
            "loader",
            "generator",
            "member",
            "sha256",
            "checksum",
            "folds_checksum",
            "set",
        ),
        _TEXT,
    ),
    **dict.fromkeys(("sources", "columns", "output_names", "oddities", "drop"), _LIST),
    **dict.fromkeys(("files", "arguments", "codes", "folds", "counts"), _MAPPING),
    "task": ["binary", "multiclass", "regression"],
    "rows": "count or null",
    "inputs": "count or null",
    "outputs": "count or null",
    "incomplete": ["drop", None],
    "seed": "whole",
    "delimiter": "text",
    "sheet": "text",
    "missing": "text",
    "header": "flag",
    "skip": "whole",
    "frames": [1, 2],
    "bits": "count",
    "radius": "whole",
    "test_rows": "count or null",
    "train_rows": "count or null",
}
"""The ranges of keys of cards, of their sources and of their splits, by name."""


def reader(source: Mapping[str, Any]) -> str | None:
    """The reader of a source; None for an address whose file people can read, but gpbench cannot."""
    return source.get("reader", "table" if source["kind"] == "file" else None)


def check(card: Any, path: Path | str = "the card") -> None:
    """Raise ConfigError for a card with a missing or unknown key, or a value out of its range; `path` says where."""
    _check_keys(f"{path}: the card", card, CARD)
    # the name becomes a folder of the store
    if not re.fullmatch(r"\w[\w.-]*", str(card["name"])):
        raise ConfigError(f"{path}: the name {card['name']!r} may hold letters, digits, '_', '-' and '.' only")
    _check_labels(path, card)
    for source in card["sources"]:
        _check_source(path, source)
    variants = _mapping(f"{path}: variants", card.get("variants"))
    for variant in variants.values():
        _check_keys(f"{path}: a variant", variant, Keys((), CARD.known))
    if variants and (chosen := str(card.get("variant"))) not in variants:
        raise ConfigError(f"{card['name']} has no variant {chosen!r}: {nearest(chosen, variants)}")
    _check_splits(path, _mapping(f"{path}: splits", card.get("splits")))


def check_changes(card: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Raise ConfigError where a command line sets a key of `splits` that the split set in use does not read.

    `card` is one that `check` accepts.  `changes` are the values that the command line sets, by dotted key, such as
    "dataset.splits.train_rows".
    """
    splits = card.get("splits") or {}
    chosen = splits.get("set") or next(iter(splits.get("sets") or ["random90"]))
    settings = {key: changes[f"dataset.splits.{key}"] for key in _SPLIT_KEYS if f"dataset.splits.{key}" in changes}
    _check_read("dataset", settings, [chosen])


_SPLIT_KEYS = {key for keys in SPLIT_SETS.values() for key in keys.known}


def _mapping(subject: str, node: Any) -> Mapping[str, Any]:
    """The node, {} for none.  Raises ConfigError for anything but a mapping."""
    if not isinstance(node, Mapping | None):
        raise ConfigError(f"{subject} must be a mapping, not {as_word(node)}")
    return node or {}


def _check_keys(subject: str, node: Any, keys: Keys) -> None:
    node = _mapping(subject, node)
    if absent := [key for key in keys.required if node.get(key) in (None, "", [], {})]:
        raise ConfigError(f"{subject} lacks {', '.join(absent)}")
    if unknown := [str(key) for key in node if key not in keys.known]:
        raise ConfigError(f"{subject} has an unknown key {unknown[0]!r}; {nearest(unknown[0], keys.known)}")
    for key in filter(RANGES.__contains__, node):
        parse(RANGES[key]).check(f"{subject}: {key}", node[key])


def _check_source(path: Path | str, source: Any) -> None:
    kind = str(_mapping(f"{path}: a source", source).get("kind"))
    if kind not in KINDS:
        raise ConfigError(f"{path}: source kind {kind!r} is none of {', '.join(KINDS)}")
    keys = KINDS[kind] | Keys(("kind",), ("labels", "note"))
    parse(RANGES["reader"]).check(f"{path}: the {kind} source: reader", source.get("reader"))
    if (name := reader(source)) is not None and "reader" in keys.known:
        if name not in READERS:
            raise ConfigError(f"{path}: unknown reader {name!r}: {nearest(str(name), READERS)}")
        keys |= READERS[name]
    _check_keys(f"{path}: the {kind} source", source, keys)
    for column, codes in (source.get("codes") or {}).items():
        _mapping(f"{path}: the codes of column {column!r}", codes)
    _check_labels(path, source)


def _check_labels(path: Path | str, node: Mapping[str, Any]) -> None:
    """Check that the codes of the classes are whole numbers."""
    for label, code in _mapping(f"{path}: labels", node.get("labels")).items():
        parse("integer").check(f"{path}: the code of label {label!r}", code)


def _check_read(path: Path | str, splits: Mapping[str, Any], sets: Iterable[str]) -> None:
    """Raise ConfigError for a key of `splits` that one of our split sets reads, and none of `sets` does."""
    for key in sorted(_SPLIT_KEYS & splits.keys() - {key for name in sets for key in SPLIT_SETS[name].known}):
        readers = either(name for name, keys in SPLIT_SETS.items() if key in keys.known)
        hint = f"the split set {either(sets)} does not read it ({readers} does); leave it out"
        raise ConfigError(f"{path}: splits.{key}={as_word(splits[key])}: {hint}")


def _check_splits(path: Path | str, splits: Mapping[str, Any]) -> None:
    sets = _mapping(f"{path}: splits.sets", splits.get("sets")) or {"random90": 20}
    _check_keys(f"{path}: splits.sets", sets, Keys((), tuple(SPLIT_SETS)))
    _check_read(path, splits, sets)
    keys = functools.reduce(Keys.__or__, (SPLIT_SETS[name] for name in sets))
    _check_keys(f"{path}: splits", splits, keys | Keys((), ("set", "sets")))
    if (chosen := splits.get("set")) not in (None, *sets):
        raise ConfigError(f"{path}: no split set {chosen!r}; {nearest(str(chosen), sets)}")
    for name, count in sets.items():
        parse("count").check(f"{path}: splits.sets.{name}", count)


def read_indices_as_int8(card: dict[str, Any]) -> None:
    """Puts the split set `hla_int8` in the place of `hla`: the index files read as 8-bit integers (paper `aep_dgp`).

    Raises ConfigError for a card whose split set has no index files that the fault concerned.
    """
    splits = card.get("splits") or {}
    if splits.get("set") != "hla":
        raise ConfigError(
            f"protocol.split_indices=int8: {card['name']} has no index files of Hernández-Lobato and"
            " Adams (2015); leave it at correct, or choose a data set of the split set hla"
        )
    card["splits"] = {**splits, "set": "hla_int8", "sets": {**splits["sets"], "hla_int8": splits["sets"]["hla"]}}
