"""Plain YAML, read by libyaml where it is there: ten times faster."""

from typing import Any


def loader() -> Any:
    """The class that PyYAML's functions take as `Loader`: mappings, lists, texts, numbers and null alone."""
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str | bytes) -> Any:
    """The value of one document.  Raises yaml.YAMLError, and ValueError for bytes that are no text."""
    import yaml

    return yaml.load(text, Loader=loader())
