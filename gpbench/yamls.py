"""Plain YAML, read as OmegaConf reads it, and by libyaml where it is installed, which is ten times faster."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from gpbench.errors import ConfigError

_FLOAT = re.compile(
    r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
    |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
    |[-+]?\.(?:inf|Inf|INF)
    |\.(?:nan|NaN|NAN))$""",
    re.X,
)

_CONTEXT = "while constructing a mapping"


@cache
def loader(*, fast: bool = True) -> Any:
    """Loader class for PyYAML's functions: mappings, lists, texts, numbers and null alone.

    It differs from PyYAML's own as OmegaConf's does: 1e-5 is a number, a date is a text, and a key stands once.

    Args:
        fast: Uses libyaml where it is installed; its messages say less.
    """
    import yaml

    scalars = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}

    class Loader(getattr(yaml, "CSafeLoader" if fast else "SafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key for key, _ in node.value if key.tag in scalars]
            if len({(key.tag, key.value) for key in keys}) < len(keys):
                names = [(key.tag, key.value) for key in keys]
                key = next(key for k, key in enumerate(keys) if names[k] in names[:k])
                fault = f"found duplicate key {key.value}"
                raise yaml.constructor.ConstructorError(_CONTEXT, node.start_mark, fault, key.start_mark)
            return super().construct_mapping(node, deep=deep)

    timestamp, number = "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:float"
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != timestamp]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(number, _FLOAT, list("-+0123456789."))
    return Loader


def load(text: str | bytes) -> Any:
    """Parses one document.

    Args:
        text: The document.

    Raises:
        yaml.YAMLError: It is no YAML.
        ValueError: Its bytes are no text.
    """
    import yaml

    return yaml.load(text, Loader=loader())


def read(path: Path) -> Any:
    """Parses the document in a file.

    Args:
        path: The file.

    Raises:
        ConfigError: It is not YAML in UTF-8.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        try:
            return load(text)
        except yaml.YAMLError:
            return yaml.load(text, Loader=loader(fast=False))  # its message says more
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path | str, error: Exception) -> ConfigError:
    """Describes an error of reading YAML by file, line and cause.

    Args:
        path: The file.
        error: The error that reading it raised.

    Returns:
        The error for the user.
    """
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        return ConfigError(f"{path} cannot be read as YAML in UTF-8: {reason}")
    parts = filter(None, [getattr(error, "context", None), getattr(error, "problem", None)])
    reason = " ".join(" ".join(parts).replace(r"'\t'", "of a tab").split())
    hint = "; write spaces for tabs" if "tab" in reason.split() else ""
    return ConfigError(f"{path}, line {mark.line + 1}: not YAML: {reason}{hint}")
