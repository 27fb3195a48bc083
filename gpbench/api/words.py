"""Keyword arguments of Python as words of the command line, and the configuration that they compose."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.config.words import require_once, word
from gpbench.errors import ConfigError

Folders = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A folder, or several."""


def words(keys: Mapping[str, Any], overrides: Iterable[str] = ()) -> list[str]:
    """The words KEY=VALUE of these keys, in which two underscores stand for a dot, followed by others."""
    texts = [*(f"{key.replace('__', '.')}={word(value)}" for key, value in keys.items()), *overrides]
    require_once(texts)
    return texts


def with_results(
    keys: Mapping[str, Any], overrides: Iterable[str], results: str | PathLike[str] | None
) -> dict[str, Any]:
    """The keys with the results folder, absolute.  Raises ConfigError where another key or word names one too."""
    if results is None:
        return dict(keys)
    names = [*(key.replace("__", ".") for key in keys), *(text.partition("=")[0].lstrip("+") for text in overrides)]
    if "run.results" in names:
        raise ConfigError("results and run.results both name the results folder: leave one of them out")
    return {**keys, "run.results": paths.expanded(results).resolve()}


def folders(config_dir: Folders) -> list[Path]:
    """These folders, absolute; the modules in them are found, and allowed as targets."""
    several = [config_dir] if isinstance(config_dir, str | PathLike) else config_dir
    return targets.add_folders(several)


def with_cards(texts: Sequence[str], config_dirs: Sequence[Path]) -> tuple[list[str], list[Path]]:
    """The words, in which cards replace tables as in dataset=PATH target=NAME (`gpbench.data.first_look`)."""
    if not any(text.startswith("dataset=") and ("." in text or ":" in text) for text in texts):
        return [*texts], [*config_dirs]
    from gpbench.data import first_look

    return first_look.with_cards(texts, config_dirs)
