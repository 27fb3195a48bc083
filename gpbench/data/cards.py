"""Data cards: one YAML file per data set, in `conf/dataset` or `dataset/` of any folder named by `--config-dir`.

A card states the task, sizes, labels, columns, split sets, licence and oddities of its data set, and its `sources` in
the order they are tried.  See `docs/data.md` for how to write one.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from gpbench import paths
from gpbench.errors import ConfigError, nearest

# What a source of each kind must have.  official: the original address; copy: a repository at a fixed commit; file: the
# user's own.
KINDS = {
    "mirror": ("files", "reader"),
    "official": ("at", "files"),
    "copy": ("at", "files", "reader"),
    "file": ("path",),  # its reader is table unless it names another
    "sklearn": ("loader",),
    "generated": ("generator", "seed", "rows"),
}

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where libyaml is there


def _files(config_dirs: Sequence[Path | str]) -> dict[str, Path]:
    """Name -> card; where a name occurs twice the first folder wins, the shipped one before all others."""
    cards: dict[str, Path] = {}
    for folder in (paths.conf_dir(), *config_dirs):
        for path in sorted((Path(folder) / "dataset").glob("*.yaml")):
            cards.setdefault(path.stem, path)
    return cards


def names(config_dirs: Sequence[Path | str] = ()) -> list[str]:
    """All known data sets, in alphabetical order."""
    return sorted(_files(config_dirs))


def read(name: str, config_dirs: Sequence[Path | str] = ()) -> dict:
    """The card of a data set.  Raises ConfigError for an unknown name or a card that is no card."""
    files = _files(config_dirs)
    if name not in files:
        raise ConfigError(f"unknown data set {name!r}: {nearest(name, files)}")
    try:
        card = yaml.load(files[name].read_text(encoding="utf-8"), Loader=_Loader)
    except yaml.YAMLError as error:
        raise ConfigError(f"{files[name]} is not YAML: {' '.join(str(error).split())}") from None
    return checked(card, files[name])


def reader(source: Mapping) -> str | None:
    """The reader of a source; None for an address whose file people can read, but we cannot."""
    return source.get("reader", "table" if source["kind"] == "file" else None)


def checked(card, path: Path | str = "the card") -> dict:
    """The card, if it has what every card must have; else ConfigError.

    A data set that has `variants` (other rows of one source) is that of its key `variant`: what a variant says (rows,
    counts, checksum) is then the card's.
    """
    if not isinstance(card, dict):
        raise ConfigError(f"{path}: a card is a mapping with name, task and sources")
    if absent := [key for key in ("name", "task", "sources") if not card.get(key)]:
        raise ConfigError(f"{path}: the card lacks {', '.join(absent)}")
    # the name becomes a folder of the store
    if not re.fullmatch(r"\w[\w.-]*", str(card["name"])):
        raise ConfigError(f"{path}: the name {card['name']!r} may hold letters, digits, '_', '-' and '.' only")
    for source in card["sources"]:
        kind = source.get("kind") if isinstance(source, dict) else None
        if kind not in KINDS:
            raise ConfigError(f"{path}: source kind {kind!r} is none of {', '.join(KINDS)}")
        needed = (*KINDS[kind], *(("target",) if reader(source) == "table" else ()))
        if absent := [key for key in needed if source.get(key) is None]:
            raise ConfigError(f"{path}: the {kind} source lacks {', '.join(absent)}")
    variants = card.get("variants", {})
    if variants and (chosen := str(card.get("variant"))) not in variants:
        raise ConfigError(f"{card['name']} has no variant {chosen!r}: {nearest(chosen, variants)}")
    return {**card, **variants[card["variant"]]} if variants else card
