"""Data cards: one YAML file per data set, in `conf/dataset` or `dataset/` of any folder named by `--config-dir`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpbench import paths, plugins, yamls
from gpbench.config.cards import check, check_file, resolved
from gpbench.errors import ConfigError, require_known


def _files(config_dirs: Sequence[Path | str]) -> dict[str, Path]:
    """The card of each data set; of a name that occurs twice the first.  A user's with a name of ours is refused."""
    cards: dict[str, Path] = {}
    for folder in (*config_dirs, paths.conf_dir()):
        for path in (Path(folder) / "dataset").glob("*.yaml"):
            cards.setdefault(path.stem, path)
    return dict(sorted(cards.items()))


def names(config_dirs: Sequence[Path | str] = ()) -> list[str]:
    """All known data sets, in alphabetical order."""
    return list(_files(config_dirs))


def read(name: str, config_dirs: Sequence[Path | str] = ()) -> dict:
    """Reads the card of a data set.  Raises ConfigError: an unknown name, or a file that is no card."""
    files = _files(config_dirs)
    require_known(name, files, f"unknown data set {name!r}:")
    return _read(files[name], config_dirs)


def location(name: str, config_dirs: Sequence[Path | str] = ()) -> str:
    """The file of a user's card, as messages name it; for a card of gpbench, or one that is no file, its name."""
    path = _files(config_dirs).get(name)
    return name if path is None or path.parent.parent == paths.conf_dir() else str(path)


def readable(config_dirs: Sequence[Path | str] = ()) -> tuple[dict[str, dict], list[ConfigError]]:
    """Every card by name, in alphabetical order, and the errors of faulty ones, which are left out."""
    cards: dict[str, dict] = {}
    faults: list[ConfigError] = []
    for name, path in _files(config_dirs).items():
        try:
            cards[name] = _read(path, config_dirs)
        except ConfigError as error:
            faults.append(error)
    return cards, faults


def _read(path: Path, config_dirs: Sequence[Path | str]) -> dict:
    card = yamls.read(path)
    if path.parent.parent != paths.conf_dir():
        check_file(path, card.get("name") if isinstance(card, dict) else None)
    return checked(card, path, config_dirs)


def checked(card: Any, path: Path | str = "the card", config_dirs: Sequence[Path | str] = ()) -> dict:
    """Checks a card and takes the variant in use."""
    sources = check(card, path, plugins.folders([*map(Path, config_dirs)]))
    return resolved({**card, "sources": sources})
