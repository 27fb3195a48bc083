"""What the choices of groups in a command line give before its other words are set: few calls of Hydra for many jobs.

Hydra takes a tenth of a second and more for each combination of choices.  The sections of the groups seldom depend on
one another before interpolations are resolved, so that a combination is put together from its choices one by one.
"""

import copy
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra import compose as hydra_compose
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

Node = dict[str, Any]
_PLAIN = re.compile(r"(dataset|method|protocol)=[\w-]+")
_REFERENCE = re.compile(r"\$\{([\w.]+)\}")


@dataclass(frozen=True)
class Chosen:
    """A composed configuration, and its values.

    `resolved` is None where some value cannot be resolved as it is; `references`: the keys that interpolations name.
    """

    cfg: DictConfig
    resolved: Node | None
    references: frozenset[str]

    def with_values(self, overrides: Sequence[Override]) -> Node | None:
        """The resolved values with those of the overrides in their places.

        None where OmegaConf has to do it: an override of a section, of a key that another value refers to or that does
        not exist, a value that is not plain, a value that is still missing.
        """
        if self.resolved is None:
            return None
        values = copy.deepcopy(self.resolved)
        for override in overrides:
            if not self._set(values, override):
                return None
        return None if "???" in _leaves(values) else values

    def _set(self, values: Node, override: Override) -> bool:
        key, (*path, name) = override.key_or_group, override.key_or_group.split(".")
        for part in path:
            values = values.get(part)  # type: ignore[assignment]
            if not isinstance(values, dict):
                return False
        if override.type != OverrideType.CHANGE or override.package or isinstance(values.get(name, {}), dict):
            return False
        if any(f"{key}.".startswith(f"{used}.") or used.startswith(f"{key}.") for used in self.references):
            return False
        value = override.value()
        if not all(_is_plain(item) for item in (value if isinstance(value, list) else [value])):
            return False
        values[name] = value
        return True


class Choices:
    """Composes the choices of groups by Hydra, with the folders of `searchpath`, and remembers them."""

    def __init__(self, searchpath: Sequence[str], plain: Callable[[DictConfig], Node]):
        self.searchpath, self.plain = searchpath, plain
        self._chosen: dict[tuple[str, ...], Chosen] = {}
        self._sections: dict[str, Node] = {}

    def compose(self, words: tuple[str, ...]) -> Chosen:
        """The configuration that these words choose.  Raises as Hydra does."""
        if words not in self._chosen:
            # the first by Hydra, for a single job: its sections one by one would be several calls
            cfg = (self._chosen and self._together(words)) or self._of_hydra(words)
            try:
                resolved = self.plain(cfg)
            except OmegaConfBaseException:
                resolved = None
            texts = [leaf for leaf in _leaves(_raw(cfg)) if isinstance(leaf, str)]
            references = frozenset(key for text in texts for key in _REFERENCE.findall(text))
            # a resolver, or a relative key
            strange = any(text.count("${") != len(_REFERENCE.findall(text)) for text in texts)
            self._chosen[words] = Chosen(cfg, None if strange else resolved, references)
        return self._chosen[words]

    def _of_hydra(self, words: Sequence[str]) -> DictConfig:
        return hydra_compose("config", [*self.searchpath, *words])

    def _together(self, words: tuple[str, ...]) -> DictConfig | None:
        """Put together from what each word gives alone; None where any of them changes other sections than its own."""
        groups = [word.partition("=")[0] for word in words]
        if len(words) < 2 or len(set(groups)) < len(groups) or not all(map(_PLAIN.fullmatch, words)):
            return None
        whole = dict(self._section(""))
        for group, word in zip(groups, words, strict=True):
            alone = self._section(word)
            if any(alone.get(name) != section for name, section in self._section("").items() if name != group):
                return None
            whole[group] = alone[group]
        cfg = OmegaConf.create(whole)
        OmegaConf.set_struct(cfg, True)
        return cfg

    def _section(self, word: str) -> Node:
        if word not in self._sections:
            self._sections[word] = _raw(self._of_hydra([word] if word else []))
        return self._sections[word]


def _raw(cfg: DictConfig) -> Node:
    container = OmegaConf.to_container(cfg, resolve=False)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def _leaves(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)
    else:
        yield node


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and "${" not in value)
