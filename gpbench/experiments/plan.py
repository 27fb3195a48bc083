"""Which runs an experiment or a sweep is made of: every job composed as `gpbench run` does it, into its `RunPlan`.

A plan is cached under hashes of its job and of all else that it depends on; jobs of a user's own configuration are
composed each time.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import gpbench
from gpbench import paths
from gpbench.errors import ConfigError, GpbenchError, nearest
from gpbench.experiments import definition
from gpbench.experiments.definition import PRESETS, Experiment, overrides
from gpbench.experiments.status import Cell, cells_of
from gpbench.records.plan import Records, RunPlan

_CODE = (
    "records/identity.py",
    "records/plan.py",
    "data/splits.py",
    "data/cards.py",
    "data/members.py",
    "config/cards.py",
    "config/choices.py",
    "config/compose.py",
    "config/values.py",
    "ranges.py",
    "experiments/plan.py",
)


def load(id: str, preset: str | None, config_dirs: Sequence[Path], records: Records) -> tuple[Experiment, list[Cell]]:
    """An experiment and its cells with their records; without a preset those of the first, "quick"."""
    folders = [folder.expanduser().resolve() for folder in config_dirs]
    experiment = definition.read(id, folders)
    return experiment, plan(experiment, preset or PRESETS[0], folders, records)


def plan(
    experiment: Experiment, preset: str, config_dirs: Sequence[Path] = (), records: Records | None = None
) -> list[Cell]:
    """The cells of a preset with what is recorded of them, in the order of its jobs.

    `records` is a store, or a dict of records by id.  Raises ConfigError for an unknown preset and a job that cannot be
    composed, DataError where an identity needs data that are unavailable.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset {preset!r}; {nearest(preset, PRESETS)}")
    jobs = experiment.jobs(preset)
    cells: list[Cell] = []
    for job, outcome in zip(jobs, plans([overrides(job) for job in jobs], config_dirs), strict=True):
        if isinstance(outcome, GpbenchError):
            raise outcome
        cells += cells_of(job, outcome, {} if records is None else records)
    return cells


def plans(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path] = ()) -> list[RunPlan | GpbenchError]:
    """The plan of each job (words of `gpbench run`), or the error of one whose runs are unknown.

    Raises ConfigError where any cannot be composed.
    """
    if config_dirs:
        return _composed(jobs, config_dirs)
    folder = paths.cache_dir() / "plans" / _digest_of_sources()
    files = [folder / f"{_digest(words)}.json" for words in jobs]
    known = {path: plan for path in dict.fromkeys(files) if (plan := _read(path)) is not None}
    missing = {path: words for path, words in zip(files, jobs, strict=True) if path not in known}
    outcomes: dict[Path, RunPlan | GpbenchError] = {**known}
    if missing:
        outcomes |= zip(missing, _composed(list(missing.values()), ()), strict=True)
    for path in missing:
        if isinstance(outcome := outcomes[path], RunPlan):
            text = outcome.to_json()
            _write(path, f"{_digest(text)}\n{text}")
    return [outcomes[path] for path in files]


def _composed(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path]) -> list[RunPlan | GpbenchError]:
    from gpbench.config import compose

    with compose.hydra(config_dirs) as composer:
        configurations = [composer.compose(job) for job in jobs]
    outcomes: list[RunPlan | GpbenchError] = []
    for cfg in configurations:
        try:
            outcomes.append(RunPlan.of(cfg))
        except GpbenchError as error:
            outcomes.append(error)
    return outcomes


def _write(path: Path, text: str) -> None:
    """Writes beside and renames into place; a cache that cannot be written only costs time."""
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text)
        beside.replace(path)


def _read(path: Path) -> RunPlan | None:
    """The plan that is cached here; None where none is, or one that was changed after it was written."""
    try:
        digest, _, text = path.read_text().partition("\n")
    except (OSError, ValueError):
        return None
    return RunPlan.from_json(text) if digest == _digest(text) else None


def _digest_of_sources() -> str:
    """A hash of every file of our configuration, and of the code that makes plans of configurations."""
    package = Path(gpbench.__file__).parent
    files = [package / name for name in _CODE]
    files += sorted(path for path in paths.conf_dir().rglob("*.yaml") if "experiment" not in path.parts)
    contents = [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
    return _digest([gpbench.__version__, str(paths.results_dir()), contents])


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
