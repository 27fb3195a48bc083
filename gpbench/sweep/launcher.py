"""Sweeps: Hydra's grammar says which jobs there are, and each runs as `gpbench run` in a process of its own.  That
keeps XLA's flags, caches and memory of one job away from the next.  Records that exist are not made again, so run the
same command to resume where a sweep stopped."""

import itertools
import re
from collections.abc import Sequence
from math import ceil, inf, isfinite, prod
from pathlib import Path
from typing import Any

from hydra import compose
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from omegaconf import DictConfig

from gpbench.config import bridge, optional
from gpbench.config.compose import Composer, folders
from gpbench.config.words import require_launcher
from gpbench.errors import ConfigError
from gpbench.sweep.display import preview
from gpbench.sweep.jobs import Jobs

_MOST_JOBS = 100_000
"""A sweep of more jobs is refused: a list of them all would fill the memory, and a typing error is likelier."""


def sweep(overrides: Sequence[str], config_dirs: Sequence[Path], *, dry: bool = False) -> int:
    """Runs all jobs of a sweep; 0 if every job is done.  Raises ConfigError: there are no jobs or more than
    `_MOST_JOBS`, or one cannot be composed; none has started then; SweepError: jobs failed, as `Jobs.conclude` raises
    it."""
    with bridge.hydra(folders(config_dirs)) as (_, searchpath):
        parsed_words = OverridesParser.create(GlobalHydra.instance().config_loader()).parse_overrides([*overrides])
        _require_jobs(overrides, parsed_words)
        of_hydra, of_sweep, of_jobs = _sorted(overrides, parsed_words)
        cfg = compose("config", [*searchpath, *of_hydra, *of_sweep], return_hydra_config=True)
        jobs = [list(job) for job in itertools.product(*of_jobs.values())]
    settled, lines = optional.applicable(jobs, Composer(config_dirs))
    sweep = None if dry else Jobs(config_dirs, bridge.plain(cfg.run), *_launcher(cfg))
    print("\n".join([*_hints(overrides), *lines, ""]), end="", flush=True)
    if sweep is None:
        return preview(settled, config_dirs)
    sweep.launch(settled)
    return sweep.conclude()


def _sorted(
    overrides: Sequence[str], parsed_words: Sequence[Override]
) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """The words that are Hydra's own, those of the sections of a whole sweep, and by key the words of its jobs.  A
    job's words may fit one choice of `method=a,b` and not the default's method, so only jobs are composed with them."""
    of_hydra, of_sweep, own, shared = [], [], {}, {}
    for text, word in zip(overrides, parsed_words, strict=True):
        key = word.get_key_element()
        if word.is_hydra_override():
            require_launcher(text)
            of_hydra.append(text)
        elif word.is_sweep_override():
            own[key] = [f"{key}={value}" for value in word.sweep_string_iterator()]
        elif word.key_or_group.partition(".")[0] not in ("run", "data"):
            own[key] = [f"{key}={word.get_value_element_as_str()}"]
        else:
            of_sweep.append(text)
            if key != "run.jobs":
                shared[key] = [f"{key}={word.get_value_element_as_str()}"]
    return of_hydra, of_sweep, own | shared


def _require_jobs(overrides: Sequence[str], parsed_words: Sequence[Override]) -> None:
    """Raises ConfigError where the words make no jobs, or more than `_MOST_JOBS`."""
    lengths = list(map(_length, parsed_words))
    if 0 in lengths:
        raise ConfigError(f"{overrides[lengths.index(0)]} has no values; range(START,STOP) ends before STOP")
    if prod(lengths) > _MOST_JOBS:
        longest = overrides[lengths.index(max(lengths))]
        raise ConfigError(f"the sweep has more than {_MOST_JOBS:,} jobs; give {longest.partition('=')[0]} fewer values")


def _length(word: Override) -> float:
    """The number of values of a word; 1 where Hydra alone knows, as of `method=glob(*)`."""
    value = word.value()
    if isinstance(value, ChoiceSweep):
        return len(value.list)
    if isinstance(value, RangeSweep) and value.start is not None and value.stop is not None and value.step:
        length = (value.stop - value.start) / value.step
        return max(0, ceil(length)) if isfinite(length) else inf
    return 1


def _hints(overrides: Sequence[str]) -> list[str]:
    """A line for each of `split=0,1` and `output=0,1`, which are jobs, though one job could have all of them.  None
    where there is a budget, for then each run is a job of its own."""
    if any(word.startswith("run.budget=") for word in overrides):
        return []
    pattern = re.compile(r"(split|output)=(\d+(?:,\d+)+)")
    matches = filter(None, map(pattern.fullmatch, overrides))
    return [f"hint: {m[0]} is {m[2].count(',') + 1} jobs; {m[1]}=[{m[2]}] is one, and faster" for m in matches]


def chosen_launcher(words: Sequence[str], config_dirs: Sequence[Path]) -> tuple[str, dict[str, Any]]:
    """The name of the `hydra/launcher` that a command line chooses, and its settings, for `Jobs`."""
    for text in filter(lambda text: text.startswith("hydra"), words):
        require_launcher(text)
    with bridge.hydra(folders(config_dirs)) as (_, searchpath):
        return _launcher(compose("config", [*searchpath, *words], return_hydra_config=True))


def _launcher(cfg: DictConfig) -> tuple[str, dict[str, Any]]:
    return cfg.hydra.runtime.choices["hydra/launcher"], bridge.plain(cfg.hydra.launcher)
