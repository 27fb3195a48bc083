"""Sweeps: Hydra's grammar says which jobs there are, and each runs as `gpbench run` in a process of its own.  Records
that exist are not made again: the same command resumes where a sweep stopped."""

import itertools
import re
from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpbench import paths, plugins
from gpbench.config import merge
from gpbench.config.compose import Composer
from gpbench.config.words import GROUPS, parse, read, require_launcher
from gpbench.errors import ConfigError, require
from gpbench.schema import Range
from gpbench.schema import parse as range_of
from gpbench.sweep.display import preview
from gpbench.sweep.jobs import Jobs

if TYPE_CHECKING:
    from hydra.core.override_parser.types import Override

_RANGES: Mapping[str, Any] = {
    **dict.fromkeys(("timeout_min", "checkpoint_s", "array_parallelism", "pack"), "count"),
    **dict.fromkeys(("nodes", "tasks_per_node", "cpus_per_task"), "count or null"),
    "gpus_per_node": "whole or null",
    "resubmit": "whole",
    "setup": Range(lambda value: isinstance(value, list) and all(isinstance(line, str) for line in value), "a list"),
    "additional": Range(lambda value: isinstance(value, Mapping), "a mapping, as {constraint: h100}"),
}
"""Ranges of the settings of launchers."""
_MOST_JOBS = 100_000
"""A sweep of more jobs is refused: a list of them all would fill the memory, and a typing error is likelier."""


def sweep(overrides: Sequence[str], config_dirs: Sequence[Path], *, dry: bool = False) -> int:
    """Runs all jobs of a sweep, after all of them were composed; 0 if every job is done."""
    parsed = parse(overrides)
    launcher = chosen_launcher([str(word.input_line) for word in parsed if word.is_hydra_override()], config_dirs)
    composer = Composer(config_dirs)
    shared, own = _sorted([word for word in parsed if not word.is_hydra_override()])
    cfg = merge.choose(dict.fromkeys(GROUPS), ())  # no method yet: it is that of a job
    for change in read([str(word.input_line) for word in shared]):
        cfg = merge.changed(cfg, change)
    run = merge.resolved(cfg)["run"]
    words = [*own, *(word for word in shared if word.key_or_group != "run.jobs")]
    values = [_values(word, composer.folders) for word in words]
    settled, lines = composer.applicable([list(job) for job in itertools.product(*values)])
    jobs = None if dry else Jobs(config_dirs, run, *launcher)
    print("\n".join([*_hints(overrides), *lines, ""]), end="", flush=True)
    if jobs is None:
        return preview(settled, config_dirs)
    jobs.launch(settled)
    return jobs.conclude()


def _sorted(parsed: "Sequence[Override]") -> "tuple[list[Override], list[Override]]":
    """The words of the sections of a whole sweep, and those of its jobs, which may fit one method and not another."""
    lengths = list(map(_length, parsed))
    if 0 in lengths:
        raise ConfigError(f"{parsed[lengths.index(0)].input_line} has no values; range(START,STOP) ends before STOP")
    if prod(lengths) > _MOST_JOBS:
        key = parsed[lengths.index(max(lengths))].key_or_group
        raise ConfigError(f"the sweep has more than {_MOST_JOBS:,} jobs; give {key} fewer values")
    sections = [word.key_or_group.partition(".")[0] if not word.is_sweep_override() else "" for word in parsed]
    of_sweep = [section in ("run", "data") for section in sections]
    shared, own = ([w for w, is_shared in zip(parsed, of_sweep) if is_shared == kind] for kind in (True, False))
    return shared, own


def _length(word: "Override") -> float:
    """The number of values of a word; 1 where its files say so, as of `method=glob(*)`."""
    from hydra.core.override_parser.types import ChoiceSweep, RangeSweep

    value = word.value()
    if isinstance(value, ChoiceSweep):
        return len(value.list)
    if isinstance(value, RangeSweep) and value.start is not None and value.stop is not None and value.step:
        length = (value.stop - value.start) / value.step
        return max(0, ceil(length)) if isfinite(length) else inf
    return 1


def _values(word: "Override", config_dirs: Sequence[Path]) -> list[str]:
    """A word of a single job for each value of one of a sweep."""
    from hydra.core.override_parser.types import Glob, Transformer

    key, value = word.get_key_element(), word.value()
    if not word.is_sweep_override():
        return [f"{key}={word.get_value_element_as_str()}"]
    if isinstance(value, Glob):  # glob(*), of the names of files
        return [f"{key}={name}" for name in value.filter([*paths.yaml_files(key, config_dirs)])]
    if not word.is_discrete_sweep():
        raise ConfigError(f"{word.input_line}: an interval has no list of values; write range(START,STOP,STEP)")
    return [f"{key}={Transformer.str(each)}" for each in word.sweep_iterator()]


def _hints(overrides: Sequence[str]) -> list[str]:
    """A line for each of `split=0,1` and `output=0,1`, which are jobs, though one job could have all of them."""
    pattern = re.compile(r"(split|output)=(\d+(?:,\d+)+)")
    matches = filter(None, map(pattern.fullmatch, overrides))
    return [f"hint: {m[0]} is {m[2].count(',') + 1} jobs; {m[1]}=[{m[2]}] is one, and faster" for m in matches]


def chosen_launcher(words: Sequence[str], config_dirs: Sequence[Path]) -> tuple[str, dict[str, Any]]:
    """The name of the `hydra/launcher` that a command line chooses, and its settings, for `Jobs`."""
    for text in words:
        require_launcher(text)
    parsed = read(words)
    name = next((str(word.value) for word in parsed if word.key == "hydra/launcher"), "basic")
    settings = merge.member("hydra/launcher", name, plugins.folders(config_dirs)) if name != "basic" else {}
    cfg = {"hydra": {"launcher": settings}}
    for word in (word for word in parsed if word.key != "hydra/launcher"):
        require(settings, f"{word.text}: name its launcher too, as in hydra/launcher=slurm", ConfigError)
        cfg = merge.changed(cfg, word)
    settings = merge.resolved(cfg)["hydra"]["launcher"]
    for key in settings.keys() & _RANGES.keys():
        range_of(_RANGES[key]).check(f"hydra.launcher.{key}", settings[key])
    return name, settings
