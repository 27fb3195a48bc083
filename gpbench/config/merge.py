"""A configuration as a merge of files, words and `${...}` by Hydra's rules, but that objects are replaced."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpbench import paths, yamls
from gpbench.config import declared
from gpbench.config.cards import CARD
from gpbench.config.words import Word
from gpbench.errors import ConfigError, as_word, either, listed, nearest, refuse
from gpbench.log import log
from gpbench.registry import KINDS, TARGET

_Node = dict[str, Any]
_MISSING = "???"  # the value of a key that must have one
_PLAIN = (str, int, float, type(None))
_REFERENCE = re.compile(r"\$\{([\w-]+(?:\.[\w-]+)*)\}", re.A)


def choose(choices: Mapping[str, Any], folders: Sequence[Path]) -> _Node:
    """The unresolved configuration with these members of the groups, None for none, of our folder and of these."""
    values, entries = _file(paths.conf_dir() / "config.yaml")
    whole: _Node = {}
    for entry in entries:
        for group, name in entry.items() if isinstance(entry, dict) else ():
            if (name := choices.get(group, name)) is not None:
                whole |= {group: member(group, str(name), folders)}
        whole = merged(whole, values) if entry == "_self_" else whole
    return {key: value for key, value in whole.items() if key != "hydra"}


def member(group: str, name: str, folders: Sequence[Path]) -> _Node:
    """The contents of a group's file, above those that its defaults list.  Raises ConfigError where there is none."""
    path = next((p for root in (paths.conf_dir(), *folders) if (p := root / group / f"{name}.yaml").is_file()), None)
    if path is None:
        noun, hint = group.replace("dataset", "data set"), nearest(name, paths.yaml_files(group, folders))
        if group == "dataset" and "/" in name:
            noun, hint = "table", "a path names one by its ending, as in data/coffee.csv"
        elif hint.endswith(" more"):
            hint += f": `gpbench ls {group}s` lists them all"
        if noun == "data set" and not folders:
            hint += f"{'' if hint.endswith('?') else '.'} A card of yours needs --config-dir"
        raise ConfigError(f"{group}={name}: no such {noun}; {hint}")
    values, entries = _file(path)
    whole: _Node = {}
    for entry in entries:
        if not isinstance(entry, str) or not re.fullmatch(r"[\w-]+", entry) or entry == name:
            raise ConfigError(f"{path}: defaults: {as_word(entry)}: write the name of another {group}, or _self_")
        whole = merged(whole, values if entry == "_self_" else member(group, entry, folders))
    return whole


def _file(path: Path) -> tuple[_Node, list[Any]]:
    stat = os.stat(path)
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1000)
def _read(path: Path, *_: int) -> tuple[_Node, list[Any]]:
    """The contents of a file, and its defaults list.  Raises ConfigError for one that is no mapping in YAML."""
    content = yamls.read(path)
    log.debug("read %s", path)
    content = {} if content is None else content
    is_section = yamls.is_section(content)
    entries = (content.pop("defaults", None) or []) if is_section else []
    has_package = "@package" in path.read_text(encoding="utf-8").partition(":")[0]
    is_list = isinstance(entries, list) and entries.count("_self_") <= 1
    refuse(
        f"{path}: ",
        (not is_section, "must be a mapping, with lines of KEY: VALUE"),
        (has_package, "leave out the line `# @package`: a file is the section of its folder's name"),
        (not is_list, "defaults: must be a list of names, and _self_ once at most"),
    )
    return content, entries if "_self_" in entries else [*entries, "_self_"]


def merged(below: Any, above: Any) -> Any:
    """The value `above` in the place of `below`; of two mappings their merge, in which objects are replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{k: v if _is_object(k, v) else merged(below.get(k), v) for k, v in above.items()}}


def _is_object(key: Any, value: Any) -> bool:
    """Whether a value is a mapping with a `_target_`, or a kernel or likelihood with its options."""
    return isinstance(value, dict) and (TARGET in value or key in KINDS)


def changed(node: Any, word: Word, path: Sequence[str] = (), root: _Node | None = None) -> _Node:
    """The configuration with the change of one word; inside, the section `node` of `root` with that of `path` in it.  A
    key below a `${...}` changes a copy of the section that it names."""
    key, *rest = path or word.key.split(".")
    root = node if root is None else root
    is_added = word.sign in ("+", "++")
    if not isinstance(node, dict) or (key not in node and not is_added):
        raise _unknown_key(word.key.removesuffix("".join(f".{name}" for name in rest)), root)
    below = node.get(key, {} if rest else None)
    if rest:
        return {**node, key: changed(_section(below, root), word, rest, root)}
    if word.sign == "~":
        return {name: entry for name, entry in node.items() if name != key}
    value = list(word.value) if isinstance(word.value, tuple) else word.value
    if word.sign == "+" and below is not None and not isinstance(value, dict | list):
        raise ConfigError(f"{word.text}: {word.key} is there already: write {word.text[1:]}")
    for new in [] if is_added else _new_keys(below, value, word.key):
        raise _unknown_key(new, root)
    return merged(node, {key: value})


def _section(value: Any, root: _Node) -> Any:
    """The section that a `${...}` names, or the value itself."""
    try:
        return _referred(value, root)
    except LookupError:
        return value


def _new_keys(below: Any, above: Any, prefix: str) -> Iterator[str]:
    """The dotted keys that the merge of two mappings has, and `below` has not; an object is no merge."""
    is_merge = isinstance(below, dict) and isinstance(above, dict) and not _is_object(prefix.split(".")[-1], above)
    for key, value in above.items() if is_merge else ():
        if key not in below:
            yield f"{prefix}.{key}"
        yield from _new_keys(below.get(key), value, f"{prefix}.{key}")


def resolved(values: _Node, *, allow_missing: bool = False) -> _Node:
    """The configuration with the values that its interpolations name in their places."""
    try:
        cfg = {key: _resolved(value, values, 0) for key, value in values.items()}
    except LookupError:
        cfg = _by_omegaconf(values)
    missing = [key for key, value in leaves(cfg) if value == _MISSING] if repr(_MISSING) in repr(cfg) else []
    if missing and not allow_missing:
        raise ConfigError(f"{missing[0]}: no value is set, and it must have one")
    return cfg


def _by_omegaconf(values: _Node) -> _Node:
    """The resolved configuration by OmegaConf, which takes `${oc.env:HOME}` and `a-${seed}`, and explains mistakes."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        cfg: Any = OmegaConf.to_container(OmegaConf.create(values), resolve=True)
    except OmegaConfBaseException as error:
        line = str(error).partition("\n")[0]
        raise ConfigError(f"{error.full_key}: {line}" if error.full_key else line) from error
    return {str(key): value for key, value in cfg.items()}


def leaves(node: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is no section, with its dotted key."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _resolved(value: Any, root: _Node, depth: int) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(entry, root, depth) for key, entry in value.items()}
    if isinstance(value, list):
        return [_resolved(entry, root, depth) for entry in value]
    if isinstance(value, str) and "${" in value:
        return _resolved(_referred(value, root, depth), root, depth + 1)
    if not isinstance(value, _PLAIN):
        raise LookupError(value)
    return value


def _referred(value: Any, root: _Node, depth: int = 0) -> Any:
    """The value, itself unresolved, of the key that "${KEY}" names.  Raises LookupError for other values."""
    if depth > 20 or not isinstance(value, str) or (match := _REFERENCE.fullmatch(value)) is None:
        raise LookupError(value)
    node: Any = root
    for key in match[1].split("."):
        node = _referred(node, root, depth + 1) if isinstance(node, str) else node
        if not isinstance(node, dict):
            raise LookupError(value)
        node = node[key]
    return node


def _unknown_key(full_key: str, root: _Node) -> ConfigError:
    """The error of a key that a configuration has not, with the nearest ones or the place that has it."""
    section, _, key = full_key.rpartition(".")
    node: Any = root
    for name in section.split(".") if section else ():
        node = _section(node[name], root)
    sections = {name: _section(below, root) for name, below in node.items()} if isinstance(node, dict) else {}
    nodes = [name for name, below in sections.items() if isinstance(below, dict) and key in below]
    inside = [".".join(filter(None, [section, name, key])) for name in nodes]
    hint = "it has none of its own: one value, or the protocol's section"
    if inside:
        hint = f"did you mean {either(inside)}?"
    elif sections:
        hint = nearest(key, [str(name) for name in sections if name not in ("_target_", "implied", "name")])
    if section == "method" and not str(sections.get("_target_")).startswith("gpbench."):
        hint += f"; +{full_key}=VALUE sets a field that its file lacks"
    if section == "dataset" and key in CARD.keys:
        hint = f"the card has none: write +{full_key}=VALUE"
    if section == "protocol":
        files = sorted((paths.conf_dir() / "protocol").glob("*.yaml"))
        if others := [path.stem for path in files if key in _file(path)[0]]:
            hint = f"it is one of protocol={' and protocol='.join(others)}"
    if section == "method" and (names := declared.methods(lambda entry: key in entry["settings"])):
        hint = f"it is one of method={listed(names, 20)}"
    return ConfigError(f"no key {key!r}{' in ' if section else ''}{section}; {hint}")
