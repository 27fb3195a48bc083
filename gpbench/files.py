"""Reading of files: plain YAML, and the errors of damaged archives.  Imports nothing before it is asked."""

from typing import Any


def yaml_loader() -> Any:
    """The class that PyYAML's functions take as `Loader`: mappings, lists, texts, numbers and null alone.

    It is libyaml's where that is installed, which is ten times faster.
    """
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(text: str | bytes) -> Any:
    """The value of one YAML document.  Raises yaml.YAMLError, and ValueError for bytes that are no text."""
    import yaml

    return yaml.load(text, Loader=yaml_loader())


def damaged() -> tuple[type[Exception], ...]:
    """The errors of `numpy.load` and of its archives' arrays on a damaged file: which one depends on the byte."""
    import struct
    import zipfile
    import zlib

    arrays = (OSError, KeyError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError, SyntaxError)
    return (*arrays, struct.error, zlib.error, zipfile.BadZipFile, MemoryError)
