"""Which runs an experiment is made of: every job composed as `gpbench run` composes it, down to its identity.

Composing a job takes a tenth of a second, so what came out is kept in the cache folder, under a hash of all it depends
on; jobs of a user's own configuration are composed each time.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gpbench
from gpbench import paths
from gpbench.errors import ConfigError, nearest
from gpbench.papers import experiments
from gpbench.papers.experiments import PRESETS, Experiment, overrides
from gpbench.records.collected import open_store
from gpbench.report.found import Cell, find

_CODE = ("records/identity.py", "data/splits.py", "data/cards.py", "cli/compose.py", "cli/plan.py")


def found(
    id: str, preset: str | None, config_dirs: Sequence[Path], results: Path | None
) -> tuple[Experiment, list[Cell]]:
    """An experiment and its cells with what is recorded of them; without a preset those of the first, "quick"."""
    folders = [folder.expanduser().resolve() for folder in config_dirs]
    experiment = experiments.read(id, folders)
    cells = plan(experiment, preset or PRESETS[0], folders)
    return experiment, find(cells, open_store(results or paths.results_dir()).all())


def plan(experiment: Experiment, preset: str, config_dirs: Sequence[Path] = ()) -> list[Cell]:
    """The cells of a preset, in the order of its jobs.

    Raises ConfigError for an unknown preset and a job that cannot be composed.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset {preset!r}; {nearest(preset, PRESETS)}")
    jobs = experiment.jobs(preset)
    told = _identified(jobs, config_dirs) if config_dirs else _cached(jobs)
    return [Cell(job=job, **facts) for job, facts in zip(jobs, told, strict=True)]


def _identified(jobs: Sequence[dict[str, str]], config_dirs: Sequence[Path] = ()) -> list[dict[str, Any]]:
    """What the records of each job have in common; data are loaded only where a card has no checksum."""
    from gpbench.cli import compose
    from gpbench.data import cards, load, splits
    from gpbench.records import identity

    told = []
    with compose.hydra(config_dirs) as searchpath:
        for job in jobs:
            cfg = compose.resolved(overrides(job), config_dirs, searchpath)
            card = cards.checked(cfg["dataset"])
            checksum = card.get("checksum") or load(card, config_dirs=cfg["config_dirs"]).checksum
            facts = {
                "id": identity.cell_id(**identity.of(cfg, checksum)),
                "dataset": card["name"],
                "method": cfg["method"]["name"],
                "seed": cfg["seed"],
                "splits": splits.asked(card, cfg["split"]),
                "keep": cfg["run"]["keep"],
            }
            told.append(facts)
    return told


def _cached(jobs: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """What these jobs come to, from the cache or for it; a cache that cannot be written only costs time."""
    kept = paths.cache_dir() / "plans" / f"{_digest(jobs)}.json"
    try:
        return json.loads(kept.read_bytes())
    except (OSError, ValueError):
        told = _identified(jobs)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(f".{os.getpid()}.tmp")
        beside.write_text(json.dumps(told))
        beside.replace(kept)
    return told


def _digest(jobs: Sequence[dict[str, str]]) -> str:
    """A hash of the jobs, of every file of our configuration, and of the code that turns the ones into the others."""
    package = Path(gpbench.__file__).parent
    files = [package / name for name in _CODE]
    files += sorted(path for path in paths.conf_dir().rglob("*.yaml") if "experiment" not in path.parts)
    digest = hashlib.sha256(json.dumps([gpbench.__version__, jobs]).encode())
    for path in files:
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:32]
