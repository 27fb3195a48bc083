"""The words of a command line, such as `method.steps=20`, as changes of a configuration.

Hydra's grammar defines them.  Plain words are read here, since Hydra takes a fifth of a second to import and some
milliseconds a word; a test compares the two.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

OPTIONAL = "optional."
"""The prefix of a word that counts only where its key exists, as in `optional.method.inducing=0.1`."""

_SCALAR = r"(?:[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|[A-Za-z_][\w-]*|'[^'\\$]*')"
_LIST = rf"\[(?:{_SCALAR}(?:,{_SCALAR})*)?\]"
_PLAIN = re.compile(rf"(\+{{0,2}})([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)=({_SCALAR}|{_LIST})", re.A)
_NUMBER = re.compile(r"[+-]?\d", re.A)
_NAMED = {"true": True, "false": False, "null": None, "inf": float("inf"), "nan": float("nan")}


class Word(NamedTuple):
    """A word as it was written, its sign ("" changes a key, "+" adds one, "++" does either), its key and its value."""

    text: str
    sign: str
    key: str
    value: Any


def read(texts: Sequence[str]) -> list[Word]:
    """The words of a single job.

    Raises ConfigError for a text that is no word, or one of a sweep.
    """
    return [_plain(text) or _by_hydra(text) for text in texts]


@lru_cache(maxsize=10_000)
def _plain(text: str) -> Word | None:
    """The word, where its value is a number, a name, a text in single quotes, or a list of these."""
    if (match := _PLAIN.fullmatch(text)) is None:
        return None
    sign, key, value = match.groups()
    if value.startswith("["):
        return Word(text, sign, key, tuple(map(_scalar, re.findall(_SCALAR, value[1:-1], re.A))))
    return Word(text, sign, key, _scalar(value))


def _scalar(text: str) -> Any:
    if text.startswith("'"):
        return text[1:-1]
    if _NUMBER.match(text):
        return float(text) if re.search("[.eE]", text) else int(text)
    return _NAMED.get(text.lower(), text)


@lru_cache(maxsize=10_000)
def _by_hydra(text: str) -> Word:
    from gpbench.config import bridge

    return Word(text, *bridge.parse(text))
