"""Data cards: one YAML file per data set, in `conf/dataset` or `dataset/` of any folder named by `--config-dir`.

A card states the task, sizes, labels, columns, split sets, licence and oddities of its data set, and its `sources` in
the order they are tried.  See `docs/data.md` for how to write one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, plugins, yamls
from gpbench.config.cards import check, resolved
from gpbench.errors import ConfigError, nearest


def names(config_dirs: Sequence[Path | str] = ()) -> list[str]:
    """All known data sets, in alphabetical order."""
    return list(paths.yaml_files("dataset", config_dirs))


def read(name: str, config_dirs: Sequence[Path | str] = ()) -> dict:
    """Reads the card of a data set.

    Args:
        name: the name of the data set.
        config_dirs: the user's folders with dataset/ files.

    Raises:
        ConfigError: an unknown name, or a file that is no card.
    """
    files = paths.yaml_files("dataset", config_dirs)
    if name not in files:
        raise ConfigError(f"unknown data set {name!r}: {nearest(name, files)}")
    return checked(yamls.read(files[name]), files[name], config_dirs)


def readable(config_dirs: Sequence[Path | str] = ()) -> tuple[dict[str, dict], list[ConfigError]]:
    """Every card by name, in alphabetical order, and the errors of faulty ones, which are left out."""
    cards: dict[str, dict] = {}
    faults: list[ConfigError] = []
    for name, path in paths.yaml_files("dataset", config_dirs).items():
        try:
            cards[name] = checked(yamls.read(path), path, config_dirs)
        except ConfigError as error:
            faults.append(error)
    return cards, faults


def checked(card: Any, path: Path | str = "the card", config_dirs: Sequence[Path | str] = ()) -> dict:
    """Checks a card and takes the variant in use.

    Args:
        card: The card.
        path: Its file, for messages.
        config_dirs: The user's folders with reader/ files.

    Raises:
        ConfigError: The card is wrong (`gpbench.config.cards.check`).
    """
    sources = check(card, path, [*map(Path, config_dirs), *plugins.folders()])
    return resolved({**card, "sources": sources})
