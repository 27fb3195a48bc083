"""Cards of data sets: the check that they have what they must have and nothing unknown.  No NumPy."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import data_registry, limits, paths
from gpbench.config.card_keys import CARD, KINDS, NAME, READER, SOURCE, SPLITS
from gpbench.data_registry import READERS, SPLIT_SETS
from gpbench.errors import ConfigError, as_word, either, nearest, refuse, require, require_known
from gpbench.keys import TEXT, Keys, optional
from gpbench.schema import parse

_COUNTED = [name for name, entry in SPLIT_SETS.items() if entry.count({})]
"""Split sets that need no number of splits."""
_SPLIT_KEYS = {key for entry in SPLIT_SETS.values() for key in entry.options.known}


def reader(source: Mapping[str, Any]) -> str | Mapping[str, Any] | None:
    """The reader of a source; None for an address whose file people can read, but gpbench cannot."""
    return source.get("reader", "table" if source["kind"] == "file" else None)


def check(card: Any, path: Path | str = "the card", folders: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Checks a card, and returns its sources, in which custom readers are named by `_target_`."""
    CARD.check(card, f"{path}: the card")
    # the name becomes a folder of the store
    fault = f"{path}: the name {card['name']!r} may hold letters, digits, '_', '-' and '.' only"
    require(NAME.fullmatch(str(card["name"])), fault, ConfigError)
    _check_labels(path, card)
    sources = [_checked_source(path, source, folders) for source in card["sources"]]
    if variants := card.get("variants"):
        keys = Keys({name: optional(key.range) for name, key in CARD.keys.items()})
        for entry in variants.values():
            keys.check(entry, f"{path}: a variant")
        variant = str(card.get("variant"))
        require_known(variant, variants, f"{card['name']} has no variant {variant!r}:")
    _check_splits(path, card)
    return sources


def check_file(path: Path, name: Any) -> None:
    """Checks that a user's file of a group is found by its name, which is the file's, and none of gpbench's."""
    fault = f"name: {as_word(name)} is not the file's name, by which records are found"
    is_ours = (paths.conf_dir() / path.parent.name / path.name).exists()
    refuse(
        f"{path}: ",
        (is_ours, f"the name {path.stem} is built in; rename the file"),
        (name not in (None, path.stem), f"{fault}: write `name: {path.stem}`, or rename the file"),
    )


def resolved(card: Mapping[str, Any]) -> dict[str, Any]:
    """The card of the variant in use: what a variant says (rows, counts, checksum) is then the card's."""
    variants = card.get("variants")
    return {**card, **variants[card["variant"]]} if variants else dict(card)


def split_sets(card: Mapping[str, Any]) -> dict[str, int]:
    """The number of splits of each split set of a card; the set in use is `split_set(card)`."""
    splits = card.get("splits") or {}
    name, sets = split_set(card), {str(key): int(count) for key, count in (splits.get("sets") or {}).items()}
    if name not in sets and name in SPLIT_SETS and (count := SPLIT_SETS[name].count(splits)):
        sets[name] = count
    if name not in sets:
        hint = nearest(name, {*sets, *_COUNTED})
        raise ConfigError(f"{card.get('name', 'dataset')} has no split set {name!r}: {hint}")
    return sets


def split_set(card: Mapping[str, Any]) -> str:
    """The split set in use: the card's, or 90/10 splits at random, which keep the shares of classes."""
    splits = card.get("splits") or {}
    default = "random90" if card.get("task", "regression") in ("regression", "count") else "stratified90"
    return str(splits.get("set") or next(iter(splits.get("sets") or [default])))


def check_changes(card: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    """Checks that the split set in use reads the keys of `splits` that a command line sets."""
    settings = {key: changes[f"dataset.splits.{key}"] for key in _SPLIT_KEYS if f"dataset.splits.{key}" in changes}
    _check_read("dataset", settings, [split_set(card)])


def _checked_source(path: Path | str, source: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """The source with a custom reader named by its `_target_`."""
    kind = str(source.get("kind"))
    require(kind in KINDS, f"{path}: source kind {kind!r} is none of {', '.join(KINDS)}", ConfigError)
    subject, keys = f"{path}: the {kind} source", SOURCE | KINDS[kind]
    if "reader" in keys.known:
        READER.check(f"{subject}: reader", source.get("reader"))
        name = data_registry.expand(reader(source), folders, str(path))
        if isinstance(name, str):
            keys |= READERS[name].options
        elif name:
            source = {**source, "reader": name}
    keys.check(source, subject)
    _check_labels(path, source)
    return dict(source)


def _check_labels(path: Path | str, node: Mapping[str, Any]) -> None:
    """Checks that the codes of the classes are whole numbers."""
    for label, code in (node.get("labels") or {}).items():
        parse("integer").check(f"{path}: the code of label {label!r}", code)


def _check_read(path: Path | str, splits: Mapping[Any, Any], sets: Iterable[str]) -> None:
    """Raises ConfigError for a key of `splits` that one of our split sets reads, and none of `sets` does."""
    for key in sorted(_SPLIT_KEYS & splits.keys() - {key for name in sets for key in SPLIT_SETS[name].options.known}):
        readers = either(name for name, entry in SPLIT_SETS.items() if key in entry.options.known)
        hint = f"the split set {either(sets)} does not read it ({readers} does); leave it out"
        raise ConfigError(f"{path}: splits.{key}={as_word(splits[key])}: {hint}")


def _check_splits(path: Path | str, card: Mapping[str, Any]) -> None:
    splits = card.get("splits") or {}
    counts = Keys(dict.fromkeys(SPLIT_SETS, optional("count"))).check(splits.get("sets"), f"{path}: splits.sets")
    TEXT.check(f"{path}: splits: set", splits.get("set"))
    if (name := split_set(card)) not in counts and (name not in SPLIT_SETS or not SPLIT_SETS[name].count({})):
        hint = nearest(name, {*counts, *_COUNTED})
        if name in SPLIT_SETS and not counts:
            hint = f"give the number of its splits, as in sets: {{{name}: 1}}"
        raise ConfigError(f"{path}: no split set {name!r}; {hint}")
    sets = dict.fromkeys([*counts, name])
    _check_read(path, splits, sets)
    keys = SPLITS
    for entry in sets:
        keys |= SPLIT_SETS[entry].options
    keys.check(splits, f"{path}: splits")
    most = max(split_sets(card).values())
    refuse(
        f"{path}: splits",
        (
            most > limits.SPLITS,
            f": one set has {most:,}, and {limits.SPLITS:,} are the most: lower `sets`, `folds` or `repeats`",
        ),
        (
            "repeats" in splits and name in counts,
            f".repeats and splits.sets.{name}: both say how many splits there are; give one",
        ),
    )


def read_indices_as_int8(card: dict[str, Any]) -> None:
    """Puts the split set `hla_int8` in the place of `hla`: the index files read as 8-bit integers (paper `aep_dgp`)."""
    splits = card.get("splits") or {}
    fault = "has no index files of Hernández-Lobato and Adams (2015); leave it at correct, or choose a data set of the"
    is_indexed = splits.get("set") == "hla"
    require(is_indexed, f"protocol.split_indices=int8: {card['name']} {fault} split set hla", ConfigError)
    card["splits"] = {**splits, "set": "hla_int8", "sets": {**splits["sets"], "hla_int8": splits["sets"]["hla"]}}
