"""The text of a run's config.yaml as a mapping, whatever somebody put there."""

import json
from typing import Any

from gpbench import yamls

_DEEPEST = 32
_SECTIONS = ("run", "data", "dataset", "method", "protocol")


def text(content: bytes) -> str:
    """The text of the file.  Raises ValueError for other bytes."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ValueError("its config.yaml is no text") from None


def mapping(text: str) -> dict[str, Any]:
    """The configuration; empty for an empty text.

    Aliases are refused, since a few of them stand for billions of values, and we write none.  Raises ValueError that
    says what is wrong.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yamls.loader()):  # event by event, which needs no memory and no recursion
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
                raise ValueError("aliases" if depth <= _DEEPEST else f"more than {_DEEPEST} levels")
        config = yamls.load(text) or {}
        json.dumps(config, allow_nan=False)
    except (yaml.YAMLError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"it is no configuration ({' '.join(str(error).split())[:100]})") from None
    sections = isinstance(config, dict) and all(isinstance(config.get(name) or {}, dict) for name in _SECTIONS)
    if not sections or not all(isinstance(folder, str) for folder in config.get("config_dirs") or ()):
        raise ValueError("it is no configuration")
    return config
