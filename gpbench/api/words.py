"""Keyword arguments of Python as words of the command line, and the configuration that they compose."""

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from gpbench import targets
from gpbench.errors import ConfigError

Folders = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A folder, or several."""

_PLAIN = re.compile(r"[\w./%+-]+")


def words(keys: Mapping[str, Any], overrides: Iterable[str] = ()) -> list[str]:
    """The words KEY=VALUE of these keys, followed by `overrides`.

    Args:
        keys: a value for each key.  In a key two underscores stand for a dot: `method__inducing` is
            `method.inducing`.
        overrides: words as on the command line; of two words with one key the later counts.

    Raises:
        ConfigError: `overrides` is one text.
    """
    if isinstance(overrides, str):
        raise ConfigError(f"overrides is a list of words, as in [{overrides!r}]")
    return [*(f"{key.replace('__', '.')}={word(value)}" for key, value in keys.items()), *overrides]


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
    return text if _PLAIN.fullmatch(text) else "'" + text.replace("'", r"\'") + "'"


def folders(config_dir: Folders) -> list[Path]:
    """These folders, absolute; the modules in them are found, and allowed as targets."""
    several = [config_dir] if isinstance(config_dir, str | PathLike) else config_dir
    return targets.add_folders(several)


def composed(overrides: Sequence[str], config_dirs: Sequence[Path]) -> dict[str, Any]:
    """The resolved configuration of these words.  Raises ConfigError for a key or value that is wrong."""
    from gpbench.config.compose import compose

    return compose(overrides, config_dirs)
