"""Plain YAML, read as OmegaConf reads it, and by libyaml where it is installed, which is ten times faster."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from gpbench import limits
from gpbench.errors import ConfigError, require

_FLOAT = re.compile(
    r"""^(?:[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+)
    |\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?
    |[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*
    |[-+]?\.(?:inf|Inf|INF)
    |\.(?:nan|NaN|NAN))$""",
    re.X,
)

_NUMBER = "tag:yaml.org,2002:float"
_CONTEXT = "while constructing a mapping"
_DEEPEST, _LARGEST = 100, 20_000
"""Limits of levels and of entries: libyaml's recursion ends the process, and few aliases stand for billions."""
_OPENERS = re.compile(r"[\[{&]|[-?] ")


@cache
def loader(*, fast: bool = True) -> Any:
    """Loader class for PyYAML: plain data, in which 1e-5 is a number, a date is a text, and a key stands once."""
    import yaml

    scalars = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}

    class Loader(getattr(yaml, "CSafeLoader" if fast else "SafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key for key, _ in node.value if key.tag in scalars]
            values = [self.construct_object(key) for key in keys]
            if len({*values}) < len(values):  # 1E2 and 100 are one number, of which a mapping keeps the last
                k = next(k for k, value in enumerate(values) if value in values[:k])
                key, first = keys[k], keys[values.index(values[k])].value
                fault = f"found duplicate key {key.value}"
                fault += f", which is {first}: quote both to tell them apart" if first != key.value else ""
                raise yaml.constructor.ConstructorError(_CONTEXT, node.start_mark, fault, key.start_mark)
            return super().construct_mapping(node, deep=deep)

    timestamp = "tag:yaml.org,2002:timestamp"
    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != timestamp]
        for first, resolvers in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(_NUMBER, _FLOAT, list("-+0123456789."))
    tags = {None, *scalars, "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}
    Loader.yaml_constructors = {tag: make for tag, make in Loader.yaml_constructors.items() if tag in tags}
    return Loader


def load(text: str | bytes) -> Any:
    """Parses one document.  Raises yaml.YAMLError, or ValueError where it is no text, too deep or too large."""
    import yaml

    text = text.decode() if isinstance(text, bytes) else text
    if "&" in text or len(text) > 10 * _LARGEST or len(_OPENERS.findall(text)) > _DEEPEST:
        _check_size(text)
    return yaml.load(text, Loader=loader())


def _check_size(text: str) -> None:
    """Raises ValueError where parsing this would take too many levels or entries; reads it event by event."""
    import yaml

    anchors: dict[str, int] = {}
    nodes = [("", 0)]  # anchor, and entries so far, of the document and of each collection that is open
    for event in yaml.parse(text, Loader=loader()):
        anchor, entries = getattr(event, "anchor", None) or "", 1
        if isinstance(event, yaml.CollectionStartEvent):
            nodes.append((anchor, 1))
            require(len(nodes) <= _DEEPEST, f"more than {_DEEPEST} levels", ValueError)
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, entries = nodes.pop()
        elif isinstance(event, yaml.AliasEvent):
            is_part = anchor in (name for name, _ in nodes)
            require(not is_part, f"the alias *{anchor} is a part of itself", ValueError)
            entries = anchors.get(anchor, 1)
        anchors |= {anchor: entries} if anchor else {}
        nodes[-1] = (nodes[-1][0], nodes[-1][1] + entries)
        require(nodes[-1][1] <= _LARGEST, f"more than {_LARGEST:,} entries", ValueError)


def read(path: Path) -> Any:
    """Parses the document in a file.  Raises ConfigError where it is no YAML, no file, or too large."""
    import yaml

    try:
        text = limits.read(path, limits.YAML).decode("utf-8-sig")
        try:
            return load(text)
        except yaml.YAMLError:
            return yaml.load(text, Loader=loader(fast=False))  # its message says more
    except (OSError, ValueError, yaml.YAMLError) as error:
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise ConfigError(f"{path} cannot be read as YAML in UTF-8: {reason}") from error
        parts = filter(None, [getattr(error, "context", None), getattr(error, "problem", None)])
        reason = " ".join(" ".join(parts).replace(r"'\t'", "of a tab").split())
        hint = "; write spaces for tabs" if "tab" in reason.split() else ""
        raise ConfigError(f"{path}, line {mark.line + 1}: not YAML: {reason}{hint}") from error


def dump(content: Any, **options: Any) -> str:
    """Writes plain data as YAML that `load` reads as it was: the text 1E2 is quoted, unlike by PyYAML."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    Dumper.add_implicit_resolver(_NUMBER, _FLOAT, list("-+0123456789."))
    return yaml.dump(content, Dumper=Dumper, sort_keys=False, **options)


def is_section(content: Any) -> bool:
    """Recognises a mapping of texts to values."""
    return isinstance(content, dict) and all(isinstance(key, str) for key in content)
