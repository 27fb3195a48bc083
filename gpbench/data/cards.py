"""Data cards: one YAML file per data set, in `conf/dataset` or `dataset/` of any folder named by `--config-dir`.

A card states the task, sizes, labels, columns, split sets, licence and oddities of its data set, and its `sources` in
the order they are tried.  See `docs/data.md` for how to write one.
"""

from collections.abc import Sequence
from pathlib import Path

from gpbench import paths, yamls
from gpbench.config.cards import check
from gpbench.errors import ConfigError, nearest


def _files(config_dirs: Sequence[Path | str]) -> dict[str, Path]:
    """The card of each data set; where a name occurs twice the first folder wins, the shipped one before all others."""
    cards: dict[str, Path] = {}
    for folder in (paths.conf_dir(), *config_dirs):
        for path in (Path(folder) / "dataset").glob("*.yaml"):
            cards.setdefault(path.stem, path)
    return dict(sorted(cards.items()))


def names(config_dirs: Sequence[Path | str] = ()) -> list[str]:
    """All known data sets, in alphabetical order."""
    return list(_files(config_dirs))


def read(name: str, config_dirs: Sequence[Path | str] = ()) -> dict:
    """Reads the card of a data set.

    Args:
        name: the name of the data set.
        config_dirs: the user's folders with dataset/ files.

    Raises:
        ConfigError: an unknown name, or a file that is no card.
    """
    files = _files(config_dirs)
    if name not in files:
        raise ConfigError(f"unknown data set {name!r}: {nearest(name, files)}")
    return checked(yamls.read(files[name]), files[name])


def readable(config_dirs: Sequence[Path | str] = ()) -> tuple[dict[str, dict], list[ConfigError]]:
    """Every card by name, in alphabetical order, and the errors of faulty ones, which are left out."""
    cards: dict[str, dict] = {}
    faults: list[ConfigError] = []
    for name, path in _files(config_dirs).items():
        try:
            cards[name] = checked(yamls.read(path), path)
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
