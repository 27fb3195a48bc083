"""Which runs an experiment or a sweep is made of: every job composed as `gpbench run` does it, down to its identities.

What came out is kept in the cache folder, under a hash of all it depends on; jobs of a user's own configuration are
composed each time.
"""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gpbench
from gpbench import paths
from gpbench.errors import ConfigError, GpbenchError, nearest
from gpbench.experiments import definition
from gpbench.experiments.definition import PRESETS, Experiment, overrides
from gpbench.experiments.status import Cell, find
from gpbench.records.collected import open_store

_CODE = (
    "records/identity.py", "data/splits.py", "data/cards.py", "data/members.py", "config/compose.py",
    "experiments/plan.py",
)  # fmt: skip


def found(
    id: str, preset: str | None, config_dirs: Sequence[Path], results: Path | None
) -> tuple[Experiment, list[Cell]]:
    """An experiment and its cells with what is recorded of them; without a preset those of the first, "quick"."""
    folders = [folder.expanduser().resolve() for folder in config_dirs]
    experiment = definition.read(id, folders)
    cells = plan(experiment, preset or PRESETS[0], folders)
    return experiment, find(cells, open_store(results or paths.results_dir()).all())


def plan(experiment: Experiment, preset: str, config_dirs: Sequence[Path] = ()) -> list[Cell]:
    """The cells of a preset, in the order of its jobs.

    Raises ConfigError for an unknown preset and a job that cannot be composed, DataError where an identity needs data
    that cannot be had.
    """
    if preset not in PRESETS:
        raise ConfigError(f"no preset {preset!r}; {nearest(preset, PRESETS)}")
    jobs = experiment.jobs(preset)
    told = identified([overrides(job) for job in jobs], config_dirs)
    for fault in (facts for facts in told if isinstance(facts, GpbenchError)):
        raise fault
    return [Cell(job=job, **cell) for job, facts in zip(jobs, told, strict=True) for cell in facts["cells"]]


def identified(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path] = ()) -> list[Any]:
    """The `facts` of each job (words of `gpbench run`), or the GpbenchError of one that has no identity.

    Raises ConfigError where any cannot be composed.
    """
    return _identified(jobs, config_dirs) if config_dirs else _cached(jobs)


def facts(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """What of a resolved configuration says which runs it is made of; plain JSON.

    `cells` is what records of one output have in common, as a `Cell` takes it; `runs` their ids; `results`, `again` and
    `keep` say which of them are there already.  Data are loaded only where a card has no checksum.  Raises ConfigError
    for splits and outputs that there are not, and what loading raises.
    """
    from gpbench.data import cards
    from gpbench.data.members import called, members, outputs
    from gpbench.records import identity

    card, run = cards.checked(cfg["dataset"]), cfg["run"]
    places = json.dumps([cfg["dataset"], cfg["data"], cfg["config_dirs"]])
    configuration = identity.of(cfg, card.get("checksum") or _checksum(places))
    wanted = members(card, cfg["split"], cfg["output"])
    told = {"dataset": card["name"], "method": cfg["method"].get("name"), "seed": cfg["seed"], "keep": run["keep"]}
    cells = []
    for output in outputs(card, cfg["output"]):
        of_output = [member for member in wanted if member.output == output]
        id = identity.cell_id(**configuration, **of_output[0].cell)
        cells.append(
            {"id": id, "output": called(card, output), "splits": [member.split for member in of_output], **told}
        )
    runs = [identity.run_id(**configuration, **member.identity, seed=cfg["seed"]) for member in wanted]
    return {"cells": cells, "runs": runs, **{key: run[key] for key in ("results", "again", "keep")}}


def recorded(facts: Mapping[str, Any]) -> dict[str, dict]:
    """The records that need not be made again, by their ids."""
    store = open_store(facts["results"])
    kept = [] if facts["again"] else [store.get(id) for id in facts["runs"]]
    return {record["id"]: record for record in kept if record and (record.get("kept") or not facts["keep"])}


def lacking(facts: Mapping[str, Any]) -> list[str]:
    """The ids of the runs that are to be made."""
    there = recorded(facts)
    return [id for id in facts["runs"] if id not in there]


@functools.cache
def _checksum(told: str) -> str:
    """That of a data set whose card has none; of many jobs on it the first alone loads it."""
    from gpbench.data import configured

    return configured(dict(zip(("dataset", "data", "config_dirs"), json.loads(told)))).checksum


def _identified(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path] = ()) -> list[Any]:
    from gpbench.config import compose

    with compose.hydra(config_dirs) as composer:
        configurations = [composer.compose(job) for job in jobs]
    told: list[Any] = []
    for cfg in configurations:
        try:
            told.append(facts(cfg))
        except GpbenchError as fault:
            told.append(fault)
    return told


def _cached(jobs: Sequence[Sequence[str]]) -> list[Any]:
    """What these jobs come to, from the cache or for it; a cache that cannot be written only costs time."""
    kept = paths.cache_dir() / "plans" / f"{_digest(jobs)}.json"
    try:
        return json.loads(kept.read_bytes())
    except (OSError, ValueError):
        told = _identified(jobs)
    with contextlib.suppress(OSError, TypeError):  # a fault is no JSON
        text = json.dumps(told)
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(f".{os.getpid()}.tmp")
        beside.write_text(text)
        beside.replace(kept)
    return told


def _digest(jobs: Sequence[Sequence[str]]) -> str:
    """A hash of the jobs, of every file of our configuration, and of the code that turns the ones into the others."""
    package = Path(gpbench.__file__).parent
    files = [package / name for name in _CODE]
    files += sorted(path for path in paths.conf_dir().rglob("*.yaml") if "experiment" not in path.parts)
    told = [gpbench.__version__, str(paths.results_dir()), [list(job) for job in jobs]]
    digest = hashlib.sha256(json.dumps(told).encode())
    for path in files:
        digest.update(f"{path}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:32]
