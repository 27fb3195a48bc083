"""Which values the keys of `conf/config.yaml` may have."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from gpbench.errors import ConfigError, nearest


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _some(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(map(_whole(0), value)) and len(set(value)) == len(value)
    return value == "all" or _whole(0)(value)


def _optional(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


_SOME = "a number from 0, a list of different ones such as [0,3], or all"
_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "split": (_some, _SOME),
    "output": (_some, _SOME),
    "seed": (_whole(0), "a whole number from 0"),
    "run.results": (_optional(_text), "a folder, or null"),
    "run.again": (_flag, "true or false"),
    "run.time_limit": (_optional(lambda v: _number(v) and v > 0), "a number of seconds above 0, or null"),
    "run.jobs": (_whole(1), "a whole number from 1"),
    "run.trace_every": (_whole(1), "a whole number of steps from 1"),
    "run.checkpoint_every": (_optional(lambda v: _number(v) and v > 0), "a number of seconds above 0, or null"),
    "run.device": (lambda v: v in (None, "cpu", "gpu"), "cpu, gpu, or null"),
    "run.devices": (_optional(_whole(1)), "a whole number from 1, or null"),
    "run.processes": (lambda v: v == "cluster" or _whole(1)(v), "a whole number from 1, or cluster"),
    "run.cores": (_optional(_whole(1)), "a whole number from 1, or null"),
    "run.timing": (_flag, "true or false"),
    "run.memory_fraction": (_optional(lambda v: _number(v) and 0 < v <= 1), "a number above 0 and up to 1, or null"),
    "run.together": (lambda v: v == "auto" or _flag(v) or _whole(1)(v), "auto, true, false, or a whole number from 1"),
    "run.preset": (lambda v: v in (None, "quick", "full"), "quick, full, or null"),
    "run.keep": (_flag, "true or false"),
    "run.predictions": (lambda v: v == "auto" or _flag(v), "auto, true, or false"),
    "run.progress": (_flag, "true or false"),
    "data.mirror": (_optional(_text), "a folder, or null"),
    "data.store": (_optional(_text), "a folder, or null"),
    "data.offline": (_flag, "true or false"),
}


def check_values(cfg: dict[str, Any]) -> None:
    """Raise ConfigError for the first of our own values in `cfg` that is not of its kind, or unknown in its section."""
    for section in ("run", "data"):
        if not isinstance(values := cfg.get(section, {}), dict):
            raise ConfigError(f"{section}={as_word(values)}: is a section; set its keys, as in {section}.KEY=VALUE")
        for name in values:
            if f"{section}.{name}" not in _CHECKS:
                raise ConfigError(f"no key {section}.{name}; {nearest(f'{section}.{name}', _CHECKS)}")
    for key, (fits, kind) in _CHECKS.items():
        section, _, name = key.rpartition(".")
        values = cfg.get(section, {}) if section else cfg
        if name in values and not fits(values[name]):
            raise ConfigError(f"{key}={as_word(values[name])}: must be {kind}")


def as_word(value: Any) -> str:
    """A value as one writes it on a command line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_word(of)}" for key, of in value.items()) + "}"
    return value if isinstance(value, str) else json.dumps(value)
