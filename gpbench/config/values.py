"""Ranges of the keys of `conf/config.yaml`."""

from collections.abc import Mapping
from typing import Any

from gpbench.errors import ConfigError, as_word, require_known
from gpbench.schema import Range, Words, is_whole, parse

_is_count = parse("count").contains


def _is_some(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(is_whole(v) and v >= 0 for v in value) and len(set(value)) == len(value)
    return value == "all" or (is_whole(value) and value >= 0)


_SOME = Range(_is_some, "a number from 0, a list of different ones such as [0,3], or all")
_RANGES: Mapping[str, Range | Words] = {
    "split": _SOME,
    "output": _SOME,
    "seed": Range(lambda value: is_whole(value) and 0 <= value < 2**32, "a whole number from 0 to 4294967295"),
    "run.results": "text or null",
    "run.again": "flag",
    "run.time_limit": "positive or null",
    "run.jobs": "count",
    "run.trace_every": "count or null",
    "run.checkpoint_every": "positive or null",
    "run.device": ["cpu", "gpu", None],
    "run.devices": "count or null",
    "run.processes": Range(lambda value: value == "cluster" or _is_count(value), "a whole number from 1, or cluster"),
    "run.cores": "count or null",
    "run.budget": "positive or null",
    "run.timing": "flag",
    "run.memory_fraction": "fraction or null",
    "run.together": Range(
        lambda value: value == "auto" or isinstance(value, bool) or _is_count(value),
        "auto, true, false, or a whole number from 1",
    ),
    "run.stream": "auto or flag",
    "run.preset": ["quick", "full", None],
    "run.keep": "flag",
    "run.save": "flag",
    "run.gap": "flag",
    "run.predictions": "auto or flag",
    "run.progress": "flag",
    "data.mirror": "text or null",
    "data.store": "text or null",
    "data.offline": "flag",
}


def check_values(cfg: dict[str, Any]) -> None:
    """Checks the values that belong to no group: `split`, `output`, `seed`, and the sections `run` and `data`."""
    for section in ("run", "data"):
        if not isinstance(values := cfg.get(section, {}), dict):
            raise ConfigError(f"{section}={as_word(values)}: is a section; set its keys, as in {section}.KEY=VALUE")
        for name in values:
            require_known(f"{section}.{name}", _RANGES, f"no key {section}.{name}")
    for key, words in _RANGES.items():
        section, _, name = key.rpartition(".")
        if name in (values := cfg.get(section, {}) if section else cfg):
            parse(words).check(key, values[name])
