"""Cards of data sets: their keys, those of sources and splits, and the check that a card has what it must have and
nothing unknown.  No NumPy."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpbench import limits, paths, targets
from gpbench.data_registry import READERS, SPLIT_SETS
from gpbench.errors import ConfigError, as_word, either, nearest, refuse, require, require_known
from gpbench.registry import TARGET
from gpbench.schema import MAPPING, MAPPINGS, TEXT, TEXTS, Keys, Range, is_whole, optional, parse, required

_COUNT = "count or null"
_LABELS = optional(MAPPING, "Code of each class: -1 and 1, or 0 to C-1; else in numerical or alphabetical order.")
READER = Range(lambda value: isinstance(value, str | Mapping | None), "the name of a reader, or its _target_")
"""Values of the key `reader` of a source."""
CENTRES = Range(
    lambda value: all(
        v in ("mean", "median", None) for v in (value.values() if isinstance(value, Mapping) else [value])
    ),
    "mean or median, or a mapping from inputs to mean or median",
)
_MIRROR_FILES = required(MAPPING, "Files with their SHA-256.")

NAME = re.compile(r"\w[\w.-]*")
"""Names of data sets, which become folders of the store."""

CARD = Keys(
    {
        "name": required(TEXT, "Name of the data set: that of the file."),
        "task": required(["binary", "multiclass", "regression", "count"], "Kind of targets; count: 0, 1, 2, ..."),
        "sources": required(MAPPINGS, "Sources of the data, in the order in which they are tried."),
        "title": optional(TEXT, "Title in lists."),
        "rows": optional(_COUNT, "Number of rows."),
        "inputs": optional(_COUNT, "Number of inputs."),
        "outputs": optional(_COUNT, "Number of outputs, where there are several."),
        "target": optional("any", "Description of the target."),
        "labels": _LABELS,
        "counts": optional(MAPPING, "Number of rows of each class."),
        "columns": optional(TEXTS, "Names of the inputs."),
        "output_names": optional(TEXTS, "Names of the outputs."),
        "exposure": optional(TEXT, "Input above 0 to which expected counts are proportional, such as person-years."),
        "threshold": optional("number or null", "Target of a regression above which `tail_ll` and `tail_crps` score."),
        "incomplete": optional(["drop", None], "`drop` leaves out rows with empty cells; else they are an error."),
        "impute": optional(CENTRES, "Values of empty cells of inputs, from the training rows."),
        "variant": optional("any", "Variant in use."),
        "variants": optional(MAPPING, "Other rows of one source, by name: the keys of the card that they change."),
        "checksum": optional(TEXT, "Checksum of the arrays."),
        "folds_checksum": optional(TEXT, "Checksum of the index arrays."),
        "splits": optional(MAPPING, "Split sets; see below.", "{set: random90}, of classes {set: stratified90}"),
        "oddities": optional(TEXTS, "Facts that a user of the data should know."),
        "licence": optional("any", "Licence."),
        "cite": optional("any", "References."),
        "published": optional("any", "Sizes in publications."),
        "suite": optional(["board", "development", None], "Suite; defaults are chosen on development sets alone."),
        "family": optional(TEXT, "Name that sets of one generator, or nearly one kind, share."),
    }
)
"""The keys of a card."""

SOURCE = Keys(
    {
        "kind": required("text", "Kind of source."),
        "labels": _LABELS,
        "note": optional("any", "Remark, which messages quote."),
    }
)
"""The keys that every source has, besides those of its kind and of its reader."""

_FILES = {"at": required(TEXT, "Address of the folder."), "files": _MIRROR_FILES}
_MEMBER = optional(TEXT, "Member of a zip or tar archive.")
_SPLITS = optional(TEXT, "Table of fixed splits: a column for each, a line for each row of the data.")
_READ = {"reader": optional(READER, "Reader of the files."), "member": _MEMBER}
_MUST_READ = {**_READ, "reader": required(READER, "Reader of the files.")}

_GENERATED = Range(lambda value: is_whole(value) and 1 <= value <= 2**21, "a whole number from 1 to 2,097,152")
_LOADERS = ["breast_cancer", "diabetes", "digits", "iris", "wine"]
"""Loaders of scikit-learn that read no file and no address of the card's."""
_ARGUMENTS = Range(
    lambda value: isinstance(value, Mapping | None) and {*(value or ())} <= {"scaled", "n_class"},
    "a mapping with `scaled` of diabetes or `n_class` of digits",
)

KINDS: Mapping[str, Keys] = {
    "mirror": Keys({"files": _MIRROR_FILES, **_MUST_READ}),
    "official": Keys({**_FILES, **_READ, "split_file": _SPLITS}),
    "copy": Keys({**_FILES, **_MUST_READ}),
    "file": Keys(
        {
            "path": required(TEXT, "Path, from the current folder, the card's or the store."),
            "reader": optional(READER, "Reader of the file.", "table"),
            "member": _MEMBER,
            "sha256": optional(TEXT, "SHA-256 of the file."),
            "split_file": _SPLITS,
        }
    ),
    "sklearn": Keys(
        {
            "loader": required(_LOADERS, "Name of the loader, without `load_`."),
            "arguments": optional(_ARGUMENTS, "Arguments of the loader."),
        }
    ),
    "generated": Keys(
        {
            "generator": required(TEXT, "Name of the generator."),
            "seed": required("whole", "Seed."),
            "rows": required(_GENERATED, "Number of rows."),
        }
    ),
    "rows": Keys(
        {
            "inputs": required(MAPPING, "Numbers of each input, by its name."),
            "target": required("list of number", "Numbers of the target."),
        }
    ),
}
"""The keys of each kind of source.

mirror: the folder GPBENCH_MIRROR; official: the original address; copy: a repository at a fixed commit; file: a file of
the user's own; sklearn: a loader of scikit-learn; generated: a function of gpbench; rows: the card
itself, which has the numbers."""

SPLITS = Keys(
    {
        "sets": optional(MAPPING, "Number of splits of each split set; by default that of the set in use."),
        "set": optional(TEXT, "Split set in use; by default the first of `sets`."),
    }
)
"""The keys of the section `splits`, besides those of the card's split sets."""

_COUNTED = [name for name, entry in SPLIT_SETS.items() if entry.count({})]
"""Split sets that need no number of splits."""
_SPLIT_KEYS = {key for entry in SPLIT_SETS.values() for key in entry.options.keys}


def reader(source: Mapping[str, Any]) -> str | Mapping[str, Any] | None:
    """The reader of a source; None for an address whose file people can read, but gpbench cannot."""
    return source.get("reader", "table" if source["kind"] == "file" else None)


def check(card: Any, path: Path | str = "the card", folders: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """Checks a card, and returns its sources, in which custom readers are named by `_target_`."""
    CARD.check(card, f"{path}: the card")
    # the name becomes a folder of the store
    fault = f"{path}: the name {card['name']!r} may hold letters, digits, '_', '-' and '.' only"
    require(NAME.fullmatch(str(card["name"])), fault, ConfigError)
    fault = f"{path}: `threshold` is a target of a regression, and the task is {card['task']}: leave it out"
    require(card["task"] == "regression" or card.get("threshold") is None, fault, ConfigError)
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
    if "reader" in keys.keys:
        READER.check(f"{subject}: reader", source.get("reader"))
        name = reader(source)
        name = (isinstance(name, str) and READERS.own(name, folders)) or name
        if isinstance(name, str):
            require_known(name, READERS, f"{path}: unknown reader {name!r}:")
            keys |= READERS[name].options
        elif name:
            targets.check_path(name.get(TARGET), "reader")
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
    for key in sorted(_SPLIT_KEYS & splits.keys() - {key for name in sets for key in SPLIT_SETS[name].options.keys}):
        readers = either(name for name, entry in SPLIT_SETS.items() if key in entry.options.keys)
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
