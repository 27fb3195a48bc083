"""The words of a command line, such as `method.steps=20`, as changes of a configuration.

Hydra's grammar defines them.  Plain words are read here, since Hydra takes half a second to import and some
milliseconds a word; a test compares the two.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from gpbench.errors import ConfigError

OPTIONAL = "optional."
"""The prefix of a word that counts only where its key exists, as in `optional.method.inducing=0.1`."""

_NAME = r"[A-Za-z_][\w-]*"
_SCALAR = rf"(?:[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|{_NAME}(?:\.{_NAME})*|'[^'\\$]*'|\$\{{\w+(?:\.\w+)*\}})"
_TOKEN = re.compile(rf"{_SCALAR}|[\[\]{{}}]|, ?|: ?", re.A)
_PLAIN = re.compile(rf"(\+{{0,2}})({_NAME}(?:\.{_NAME})*)=((?>{_TOKEN.pattern})++)", re.A)  # possessive: linear in time
_NUMBER = re.compile(r"[+-]?\d", re.A)
_UNQUOTED = re.compile(r"[\w./%+-]+")
_NAMED = {"true": True, "false": False, "null": None, "inf": float("inf"), "nan": float("nan")}


LAUNCHER = ("hydra/launcher=", "hydra.launcher.")
"""Beginnings of the words that choose where the jobs of a sweep run; gpbench reads no other keys of Hydra."""


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


def require_once(texts: Sequence[str], both: str | None = None) -> None:
    """Raises ConfigError where two words of a command line have one key: the later would count, in silence."""
    firsts: dict[str, str] = {}
    for text in texts:
        key = text.partition("=")[0].lstrip("+").removeprefix(OPTIONAL)
        if (first := firsts.setdefault(key, text)) is not text:
            other = f", or write {first},{text.partition('=')[2]}{both}" if both is not None and "." not in key else ""
            raise ConfigError(f"{key} is given twice, {first} and {text}: leave one out{other}")


def require_launcher(text: str) -> None:
    """Raises ConfigError for a word of Hydra's own that chooses no launcher."""
    if not text.lstrip("+").startswith(LAUNCHER):
        raise ConfigError(
            f"{text}: gpbench reads only hydra/launcher=NAME and hydra.launcher.KEY of Hydra's keys, and those in"
            " sweeps; records go to run.results=DIR, and --config-dir DIR has your own files"
        )


@lru_cache(maxsize=10_000)
def _plain(text: str) -> Word | None:
    """The word of a number, a name, a text in single quotes, `${KEY}`, or lists and mappings of these."""
    if (match := _PLAIN.fullmatch(text)) is None:
        return None
    sign, key, value = match.groups()
    tokens = [*reversed(_TOKEN.findall(value))]
    try:
        value = _value(tokens)
    except (IndexError, ValueError, RecursionError):
        return None
    return None if tokens else Word(text, sign, key, tuple(value) if isinstance(value, list) else value)


def _value(tokens: list[str]) -> Any:
    """The value that the last tokens stand for, which are taken away.  Raises IndexError, ValueError for none."""
    token = tokens.pop()
    if token == "[":
        return _entries(tokens, "]", _value)
    if token == "{":
        return dict(_entries(tokens, "}", _item))
    if token in "]},: ":
        raise ValueError(token)
    return _scalar(token)


def _item(tokens: list[str]) -> tuple[str, Any]:
    """A key, which must be a name, and its value."""
    key = tokens.pop()
    if not re.fullmatch(_NAME, key, re.A) or key.lower() in _NAMED or tokens.pop().rstrip() != ":":
        raise ValueError(key)
    return key, _value(tokens)


def _entries(tokens: list[str], end: str, read_entry: Callable[[list[str]], Any]) -> list[Any]:
    """The entries of a list or mapping up to its end, between commas."""
    entries: list[Any] = []
    while tokens[-1] != end:
        entries.append(read_entry(tokens))
        if tokens[-1] != end and (tokens.pop().rstrip() != "," or tokens[-1] == end):
            raise ValueError(end)
    tokens.pop()
    return entries


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


def word(value: Any) -> str:
    """A value as a command line has it: true, null, 0.15, [0, 1], {a: 1}, and quoted text where it needs quotes."""
    if hasattr(value, "item") and not getattr(value, "shape", None):  # a scalar of NumPy
        value = value.item()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {word(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(word, value)) + "]"
    text = str(value)
    # backslashes before a quote are escaped, and no others
    return text if _UNQUOTED.fullmatch(text) else "'" + re.sub(r"(\\*)('|$)", _escaped, text) + "'"


def _escaped(match: re.Match) -> str:
    return match[1] * 2 + match[2].replace("'", r"\'")
