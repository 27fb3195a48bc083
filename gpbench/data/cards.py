"""Data cards: one YAML file per data set, in `conf/dataset` or `dataset/` of any folder named by `--config-dir`.

A card states the task, sizes, labels, columns, split sets, licence and oddities of its data set, and its `sources` in
the order they are tried.  See `docs/data.md` for how to write one.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml

from gpbench import paths
from gpbench.config.cards import check, unreadable
from gpbench.errors import ConfigError, nearest
from gpbench.files import load_yaml


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
        card = load_yaml(files[name].read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, OSError) as error:
        raise unreadable(files[name], error) from None
    return checked(card, files[name])


def readable(config_dirs: Sequence[Path | str] = ()) -> tuple[dict[str, dict], list[ConfigError]]:
    """Every card by name, in alphabetical order, and the errors of those that are no cards: one stops no other."""
    cards: dict[str, dict] = {}
    faults: list[ConfigError] = []
    for name in names(config_dirs):
        try:
            cards[name] = read(name, config_dirs)
        except ConfigError as error:
            faults.append(error)
    return cards, faults


def checked(card, path: Path | str = "the card") -> dict:
    """The card, if `gpbench.config.cards.check` accepts it; else ConfigError.

    A data set that has `variants` (other rows of one source) is that of its key `variant`: what a variant says (rows,
    counts, checksum) is then the card's.
    """
    check(card, path)
    variants = card.get("variants")
    return {**card, **variants[card["variant"]]} if variants else card
