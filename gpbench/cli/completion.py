"""Completion of command lines by the shell, through argcomplete: verbs, options, methods, data sets and settings."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from gpbench import paths, plugins
from gpbench.cli.parser import Parser
from gpbench.cli.verbs import ACTIONS, VERBS, split_words, verb_of
from gpbench.errors import GpbenchError

_GROUPS = ("method", "dataset", "protocol")
_CHOICES = {"method": "method", "dataset": "dataset", "names": "dataset"}  # parameters with names of such a group


def complete() -> None:
    """Answers the shell that asks for completions, and ends the process."""
    import argcomplete
    from argcomplete.lexers import split_line

    start = int(os.environ["_ARGCOMPLETE"])  # number of words of the line that are the program's name
    words = split_line(os.environ["COMP_LINE"], int(os.environ["COMP_POINT"]))[3][start:]
    actions = ACTIONS.get(words[0]) if words else VERBS
    if actions and len(words) < 2:
        parser, rest = Parser(), list[str]()
        parser.add_argument("name", choices=[*actions])
    else:
        try:
            name, rest = split_words(words)
            parser = verb_of(name).parser
        except (GpbenchError, ImportError):  # no such verb
            os._exit(1)
    os.environ["_ARGCOMPLETE"] = str(start + len(words) - len(rest))  # words of a verb are to its parser the program
    folders = plugins.folders([Path(word) for option, word in pairwise(words) if option == "--config-dir"])
    for action in parser._actions:
        if action.dest == "overrides":
            action.completer = partial(_settings, rest, folders)  # type: ignore[attr-defined]
        elif action.dest in _CHOICES:
            names = paths.yaml_files(_CHOICES[action.dest], folders)
            action.completer = _listed(names)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser, append_space=None)


def _listed(names: Iterable[str], head: str = "") -> Callable[..., list[str]]:
    """Completes the last of some values with commas between them."""

    def complete(prefix: str, **_: Any) -> list[str]:
        before, comma, _last = prefix.removeprefix(head).rpartition(",")
        return [f"{head}{before}{comma}{name}" for name in names]

    return complete


def _settings(words: Sequence[str], folders: Sequence[Path], prefix: str, **_: Any) -> list[str]:
    """Completes `method=sep` by the names of files, `run.jobs=` by the keys that the words so far leave, and values."""
    from gpbench.config import merge

    key, equals, _value = prefix.partition("=")
    names = {group: paths.yaml_files(group, folders) for group in _GROUPS}
    if equals:
        return _listed(names.get(key) or _values(*key.partition(".")[::2]), f"{key}=")(prefix)
    choices = dict(word.split("=", 1) for word in words if word.count("=") == 1)
    node = merge.choose({group: choices[group] for group in _GROUPS if choices.get(group) in names[group]}, folders)
    node = {name: node[name] for name in node if name != "dataset"}
    keys = [name for name, _ in merge.leaves(node) if not name.endswith(("_target_", ".name"))]
    return [f"{name}=" for name in (*_GROUPS, *keys)]


def _values(section: str, key: str) -> Iterable[str]:
    """The values of a setting that has few."""
    from gpbench import registry
    from gpbench.config import declared
    from gpbench.config.values import PROTOCOL

    ranges = declared.ranges() if section in ("method", "protocol") else {}
    words = PROTOCOL[key][0] if section == "protocol" and key in PROTOCOL else ranges.get(key, "")
    families = {"kernel": registry.KERNELS, "likelihood": ("auto", *registry.LIKELIHOODS), "flag": ("true", "false")}
    return map(str, words) if isinstance(words, list) else families.get(str(words), ())
