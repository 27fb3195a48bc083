"""A configuration as a merge: config.yaml, a file of each chosen group, the changes of a command line, and `${...}`.

Hydra and OmegaConf define the result.  What a merge of mappings does not do (a word that removes a key, a header
`@package`, a resolver such as `${oc.env:HOME}`), and every mistake, is left to them: the functions raise `Unusual`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpbench import yamls
from gpbench.config.words import Word
from gpbench.errors import ConfigError

Node = dict[str, Any]
_PLAIN = (str, int, float, type(None))
_REFERENCE = re.compile(r"\$\{([\w-]+(?:\.[\w-]+)*)\}", re.A)


class Unusual(Exception):
    """More than a merge."""


def choose(choices: Mapping[str, str], folders: Sequence[Path]) -> Node:
    """The unresolved configuration that these choices of groups give; the first of `folders` is that of config.yaml."""
    values, entries = _file(folders[0] / "config.yaml")
    whole: Node = {}
    for entry in entries:
        if entry == "_self_":
            whole = merged(whole, values)
            continue
        ((group, default),) = entry.items()
        whole = merged(whole, {group: _member(choices.get(group, default), [folder / group for folder in folders])})
    whole.pop("hydra", None)
    return whole


def changed(values: Node, word: Word) -> Node:
    """The configuration with the change of one word.

    A key below a `${...}`, such as method.optimiser.learning_rate, changes a copy of the section that it names.
    """
    return _changed(values, word, word.key.split("."), values)


def merged(below: Any, above: Any) -> Any:
    """The value `above` in the place of `below`; of two mappings, their merge."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: merged(below[key], value) if key in below else value for key, value in above.items()}}


def resolved(values: Node) -> Node:
    """The configuration with the values that its interpolations name in their places."""
    return {key: _resolved(value, values, 0) for key, value in values.items()}


def _member(name: str, folders: Sequence[Path]) -> Node:
    """The contents of NAME.yaml in the first of these folders that has it, above those that its defaults list."""
    path = next((path for folder in folders if (path := folder / f"{name}.yaml").is_file()), None)
    if path is None or name.endswith(".yaml"):
        raise Unusual
    values, entries = _file(path)
    member: Node = {}
    for entry in entries:
        if not isinstance(entry, str) or not re.fullmatch(r"[\w-]+", entry) or entry == name:
            raise Unusual
        member = merged(member, values if entry == "_self_" else _member(entry, folders))
    return member


def _file(path: Path) -> tuple[Node, list[Any]]:
    stat = os.stat(path)
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1000)
def _read(path: Path, *_: int) -> tuple[Node, list[Any]]:
    """The contents of a file, and its defaults list.  Raises ConfigError for one that is no mapping in YAML."""
    content = yamls.read(path)
    if content is not None and not yamls.is_section(content):
        raise ConfigError(f"{path}: must be a mapping, with lines of KEY: VALUE")
    if not isinstance(content, dict) or _has_header(path):
        raise Unusual
    values = {key: value for key, value in content.items() if key != "defaults"}
    entries = content.get("defaults", [])
    if not isinstance(entries, list) or entries.count("_self_") > 1:
        raise Unusual
    return values, entries if "_self_" in entries else [*entries, "_self_"]


def _has_header(path: Path) -> bool:
    return "@package" in path.read_text(encoding="utf-8").partition(":")[0]


def _changed(node: Any, word: Word, path: Sequence[str], root: Node) -> Node:
    key, *rest = path
    if not isinstance(node, dict) or (rest and key not in node):
        raise Unusual
    if rest:
        below = node[key] if isinstance(node[key], dict) else _referred(node[key], root)
        return {**node, key: _changed(below, word, rest, root)}
    value, below = list(word.value) if isinstance(word.value, tuple) else word.value, node.get(key)
    is_addition = key not in node or (isinstance(value, dict) and _adds(below, value))
    is_plain = word.sign == "++" or is_addition == (word.sign == "+")
    if word.sign not in ("", "+", "++") or not is_plain or (isinstance(value, list) and isinstance(below, dict)):
        raise Unusual
    _require_plain(value)
    return {**node, key: merged(below, value)}


def _adds(below: Any, above: Mapping) -> bool:
    """True if the merge of these has a key that `below` does not have."""
    if not isinstance(below, dict):
        return False
    return any(
        key not in below or (isinstance(value, dict) and _adds(below[key], value)) for key, value in above.items()
    )


def _require_plain(value: Any) -> None:
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _require_plain(entry)
    if isinstance(value, str) and (value == "???" or ("${" in value and not _REFERENCE.fullmatch(value))):
        raise Unusual


def _resolved(value: Any, root: Node, depth: int) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(entry, root, depth) for key, entry in value.items()}
    if isinstance(value, list):
        return [_resolved(entry, root, depth) for entry in value]
    if isinstance(value, str) and "${" in value:
        return _resolved(_referred(value, root, depth), root, depth + 1)
    if not isinstance(value, _PLAIN):
        raise Unusual
    return value


def _referred(value: Any, root: Node, depth: int = 0) -> Any:
    """The value, itself unresolved, of the key that "${KEY}" names."""
    if depth > 20 or not isinstance(value, str) or (match := _REFERENCE.fullmatch(value)) is None:
        raise Unusual
    node: Any = root
    for key in match[1].split("."):
        node = _referred(node, root, depth + 1) if isinstance(node, str) else node
        if not isinstance(node, dict) or key not in node:
            raise Unusual
        node = node[key]
    return node
