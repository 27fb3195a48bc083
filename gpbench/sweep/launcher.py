"""Sweeps: Hydra's sweeper says which jobs there are, and each runs as `gpbench run` in a process of its own.

That keeps XLA's flags, caches and memory of one job away from the next.  Records that exist are not made
again, so run the same command to resume where a sweep stopped.
"""

import re
import tempfile
from collections.abc import Sequence
from math import ceil, inf, isfinite, prod
from pathlib import Path
from typing import Any

from hydra._internal.callbacks import Callbacks
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, RunMode
from omegaconf import DictConfig

from gpbench.config import bridge, optional
from gpbench.config.compose import Composer, folders
from gpbench.config.words import require_launcher
from gpbench.errors import ConfigError
from gpbench.sweep.display import preview
from gpbench.sweep.jobs import Jobs

MOST_JOBS = 100_000
"""A sweep of more jobs is refused: a list of them all would fill the memory, and a typing error is likelier."""


def sweep(overrides: Sequence[str], config_dirs: Sequence[Path], *, dry: bool = False) -> int:
    """Runs all jobs of a sweep.  Returns 0 if every job is done.  Raises ConfigError: there are no jobs or more than
    `MOST_JOBS`, or one cannot be composed; none has started then; SweepError: jobs failed, as `Jobs.conclude` raises
    it.
    """
    listing = JobList()
    with bridge.hydra(folders(config_dirs)) as (core, searchpath), tempfile.TemporaryDirectory() as scratch:
        of_hydra, of_sweep, of_jobs = _sorted(overrides)
        # Hydra's sweeper insists on writing a multirun.yaml somewhere
        words = [*searchpath, f"hydra.sweep.dir='{scratch}'", *of_hydra, *of_sweep]
        cfg = core.compose_config("config", words, run_mode=RunMode.MULTIRUN)
        launcher = _launcher(cfg)
        cfg.hydra.launcher = {"_target_": "hydra._internal.core_plugins.basic_launcher.BasicLauncher"}
        context = HydraContext(config_loader=core.config_loader, callbacks=Callbacks(cfg))
        sweeper = Plugins.instance().instantiate_sweeper(config=cfg, hydra_context=context, task_function=_no_task)
        # By hand: Hydra instantiates launchers from the package hydra_plugins only, and whatever is in there is
        # imported by every other Hydra program of the same environment.
        sweeper.launcher = listing
        # It would compose all jobs to see whether they can be; `Jobs` does so too, and ten times faster.
        sweeper.validate_batch_is_legal = lambda batch: None  # type: ignore[method-assign]
        sweeper.sweep([*of_jobs, *(word for word in of_sweep if not word.startswith("run.jobs="))])
    settled, lines = optional.applicable(listing.jobs, Composer(config_dirs))
    jobs = None if dry else Jobs(config_dirs, bridge.plain(cfg.run), *launcher)
    print("\n".join([*_hints(overrides), *lines, ""]), end="", flush=True)
    if jobs is None:
        return preview(settled, config_dirs)
    jobs.launch(settled)
    return jobs.conclude()


def _sorted(overrides: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The words that are Hydra's own, those of the sections of a whole sweep, and those of its jobs.

    A job's words may fit one choice of `method=a,b` and not the default's method, so only jobs are composed with them.
    """
    parts: tuple[list[str], list[str], list[str]] = [], [], []
    parsed_words = OverridesParser.create().parse_overrides(list(overrides))
    _require_jobs(overrides, parsed_words)
    for word, parsed in zip(overrides, parsed_words, strict=True):
        shared = parsed.key_or_group.partition(".")[0] in ("run", "data") and not parsed.is_sweep_override()
        if parsed.is_hydra_override():
            require_launcher(word)
        parts[0 if parsed.is_hydra_override() else 1 if shared else 2].append(word)
    return parts


def _require_jobs(overrides: Sequence[str], parsed_words: Sequence[Override]) -> None:
    """Raises ConfigError where the words make no jobs, or more than `MOST_JOBS`."""
    lengths = list(map(_length, parsed_words))
    if 0 in lengths:
        raise ConfigError(f"{overrides[lengths.index(0)]} has no values; range(START,STOP) ends before STOP")
    if prod(lengths) > MOST_JOBS:
        longest = overrides[lengths.index(max(lengths))]
        raise ConfigError(f"the sweep has more than {MOST_JOBS:,} jobs; give {longest.partition('=')[0]} fewer values")


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
    """A line for each of `split=0,1` and `output=0,1`, which are jobs, though one job could have all of them.

    None where there is a budget, for then each run is a job of its own.
    """
    if any(word.startswith("run.budget=") for word in overrides):
        return []
    pattern = re.compile(r"(split|output)=(\d+(?:,\d+)+)")
    matches = filter(None, map(pattern.fullmatch, overrides))
    return [f"hint: {m[0]} is {m[2].count(',') + 1} jobs; {m[1]}=[{m[2]}] is one, and faster" for m in matches]


def chosen_launcher(words: Sequence[str], config_dirs: Sequence[Path]) -> tuple[str, dict[str, Any]]:
    """Returns the name of the `hydra/launcher` that a command line chooses, and its settings, for `Jobs`."""
    for text in filter(lambda text: text.startswith("hydra"), words):
        require_launcher(text)
    with bridge.hydra(folders(config_dirs)) as (core, searchpath):
        return _launcher(core.compose_config("config", [*searchpath, *words], run_mode=RunMode.MULTIRUN))


def _launcher(cfg: DictConfig) -> tuple[str, dict[str, Any]]:
    return cfg.hydra.runtime.choices["hydra/launcher"], bridge.plain(cfg.hydra.launcher)


class JobList(Launcher):
    """Hydra's launcher interface to a list of jobs, which are launched when Hydra has named them all."""

    def __init__(self) -> None:
        self.jobs: list[list[str]] = []

    def setup(self, **_: Any) -> None:
        """Nothing is needed of Hydra."""

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Add to the list.  What becomes of the jobs is reported at the end of the sweep, and does not reach Hydra."""
        self.jobs += map(list, job_overrides)
        return [JobReturn(overrides=job, status=JobStatus.COMPLETED) for job in job_overrides]


def _no_task(cfg: DictConfig) -> None:
    """Hydra hands a sweep to its launcher as a function to call; ours starts processes instead."""
    raise NotImplementedError
