"""The words of a command line, such as `method.steps=20`, as changes of a configuration: Hydra's grammar reads them."""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gpbench import paths
from gpbench.errors import ConfigError, either, require

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

GROUPS = ("dataset", "method", "protocol")
OPTIONAL = "optional."
"""The prefix of a word that counts only where its key exists, as in `optional.method.inducing=0.1`."""
LAUNCHER = ("hydra/launcher=", "hydra.launcher.")
"""Beginnings of the words that choose where the jobs of a sweep run; gpbench reads no other keys of Hydra."""

_SHORT = re.compile(r"(\+{0,2})([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)=(?:([-\d.,[\]]+)|([A-Za-z_][\w-]*))", re.A)
"""A key with a name, a number, or lists of numbers, as nearly all words of experiments are.  Importing Hydra takes a
fifth of a second, which tables are spared; a test compares what both read."""
_UNQUOTED = re.compile(r"[\w./%+-]+")
_NAMED = {"true": True, "false": False, "null": None, "inf": float("inf"), "nan": float("nan")}
_SIGNS = {"CHANGE": "", "ADD": "+", "FORCE_ADD": "++", "DEL": "~"}


class Word(NamedTuple):
    """A word as it was written, its sign, its key and its value.  The sign "" changes a key, "+" adds one, "++" does
    either, "~" removes one; "@" is that of a word with a package, as in `a@b=c`."""

    text: str
    sign: str
    key: str
    value: Any


def read(texts: Sequence[str]) -> list[Word]:
    """The words of a single job.  Raises ConfigError for a text that is no word, or one of a sweep."""
    return [_read(text) for text in texts]


@lru_cache(maxsize=200_000)  # Hydra takes a millisecond for a word, and the jobs of a sweep have many in common
def _read(text: str) -> Word:
    if match := _SHORT.fullmatch(text):
        sign, key, numbers, name = match.groups()
        with contextlib.suppress(ValueError, RecursionError):
            return _frozen(text, sign, key, _NAMED.get(name.lower(), name) if name else json.loads(numbers))
    (parsed,) = parse([text])
    is_sweep = parsed.is_sweep_override()
    mend = "add -m, or write a list as in split=[0,3], or a text in quotes of its own"
    require(not is_sweep, f"{text} is a sweep: {mend}", ConfigError)
    sign = "@" if parsed.package is not None else _SIGNS[parsed.type.name]
    return _frozen(text, sign, parsed.key_or_group, parsed.value())


def _frozen(text: str, sign: str, key: str, value: Any) -> Word:
    return Word(text, sign, key, tuple(value) if isinstance(value, list) else value)


def parse(texts: Sequence[str]) -> "list[Override]":
    """The words of a sweep, as Hydra reads them.  Raises ConfigError for a text that is no word."""
    from hydra.errors import OverrideParseException

    try:
        return _parser().parse_overrides(list(texts))
    except OverrideParseException as error:
        text = error.override
    except (RecursionError, ValueError):  # brackets too deep, or a number too long
        text = max(texts, key=len)
    if choices := [f"{group}={text}" for group in GROUPS if text in paths.yaml_files(group)]:
        raise ConfigError(f"cannot read {text!r}; did you mean {either(choices)}?")
    hint = "a text with other characters than letters from a to z, digits and ._-/%+ in quotes, as in key=\"'a b'\""
    raise ConfigError(f"cannot read {text!r}; write key=value, as in method=sep, and {hint}")


@cache
def _parser() -> Any:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create()


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
    fault = "gpbench reads only hydra/launcher=NAME and hydra.launcher.KEY of Hydra's keys, and those in sweeps"
    mend = "records go to run.results=DIR, and --config-dir DIR has your own files"
    require(text.lstrip("+").startswith(LAUNCHER), f"{text}: {fault}; {mend}", ConfigError)


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
    escaped = re.sub(r"(\\*)('|$)", lambda match: match[1] * 2 + match[2].replace("'", r"\'"), text)
    return text if _UNQUOTED.fullmatch(text) else f"'{escaped}'"
