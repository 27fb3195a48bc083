"""Keyword arguments of Python as words of the command line, and the configuration that they compose."""

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gpbench import paths, targets
from gpbench.config.words import require_once
from gpbench.errors import ConfigError

Folders = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A folder, or several."""

_PLAIN = re.compile(r"[\w./%+-]+")


def words(keys: Mapping[str, Any], overrides: Iterable[str] = ()) -> list[str]:
    """The words KEY=VALUE of these keys, in which two underscores stand for a dot, followed by others.  Raises
    ConfigError where two have one key.
    """
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


def word(value: Any) -> str:
    """A value as a command line has it: true, null, 0.15, [0, 1], {a: 1}, and quoted text where it needs quotes."""
    if hasattr(value, "item") and not getattr(value, "shape", None):  # a scalar of NumPy
        value = value.item()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {word(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(word, value)) + "]"
    text = str(value)
    # backslashes before a quote are escaped, and no others
    return text if _PLAIN.fullmatch(text) else "'" + re.sub(r"(\\*)('|$)", _escaped, text) + "'"


def _escaped(match: re.Match) -> str:
    return match[1] * 2 + match[2].replace("'", r"\'")


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
