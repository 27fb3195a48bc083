"""Runs of an experiment or a sweep: every job is composed as `gpbench run` does it, into its `RunPlan`; the cells of an
experiment, the records of each, and what is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from gpbench.config import words
from gpbench.config.compose import Composer
from gpbench.config.declared import check_task
from gpbench.config.values import Config, check_values
from gpbench.errors import AbsentError, ConfigError, GpbenchError, require, require_known
from gpbench.experiments.definition import PRESETS, Experiment, overrides
from gpbench.records.plan import Loaded, Records, Run, RunPlan
from gpbench.records.record import Record


@dataclass(frozen=True)
class Cell:
    """One job of an experiment, or an output of it.  `job` has its configuration keys; `id` is its records' `cell`."""

    job: Mapping[str, str]
    id: str
    dataset: str
    method: str
    seed: int
    splits: Sequence[int]
    output: str = ""
    records: Sequence[Record] = ()

    @cached_property
    def missing(self) -> list[int]:
        """The splits that no record has."""
        recorded = {record.split for record in self.records}
        return [k for k in self.splits if k not in recorded]

    @property
    def finished(self) -> list[Record]:
        """The records that did not diverge."""
        return [record for record in self.records if not record.diverged]


def require_recorded(id: str, preset: str, cells: Sequence[Cell]) -> None:
    """Raises AbsentError unless a run of an experiment is recorded."""
    mend = f"make it with gpbench reproduce {id} --preset {preset}"
    is_there = any(cell.finished for cell in cells)
    require(is_there, f"nothing is recorded of {id} in preset {preset}; {mend}", AbsentError)


def cells_of(job: Mapping[str, str], plan: RunPlan, records: Records) -> list[Cell]:
    """The cells of a job, one for each output, with those of these records that stand for runs of its plan."""
    recorded = plan.recorded(records)
    by_cell: dict[str, list[Run]] = {}
    for run in plan.runs:
        by_cell.setdefault(run.cell, []).append(run)
    return [
        Cell(
            job=job,
            id=id,
            dataset=plan.cfg["dataset"]["name"],
            method=plan.cfg["method"].get("name", ""),
            seed=plan.cfg["seed"],
            splits=tuple(run.split for run in runs),
            output=runs[0].output_name,
            records=tuple(recorded[run.id] for run in sorted(runs, key=lambda run: run.split) if run.id in recorded),
        )
        for id, runs in by_cell.items()
    ]


def names(cell: Cell, cells: Sequence[Cell]) -> str:
    """Differences of a cell from the other cells, in words of a command line."""
    return next(all_names([cell], cells))


def all_names(some: Iterable[Cell], cells: Sequence[Cell]) -> Iterator[str]:
    """`names` of some of the cells, which looks for the differences once."""
    keys = {key for cell in cells for key in cell.job if not key.startswith("run.") or key == "run.devices"}
    varying = {key for key in keys if len({cell.job.get(key) for cell in cells}) > 1}
    for cell in some:
        words = [f"{key}={value}" for key, value in cell.job.items() if key in varying]
        words += [f"output {cell.output}"] if cell.output else []
        yield " ".join(words) or f"dataset={cell.dataset} method={cell.method}"


def absent(cells: Sequence[Cell], limit: int | None = 6) -> str:
    """One line that says which runs are missing, "" if none is; at most `limit` cells are named."""
    incomplete = [cell for cell in cells if cell.missing]
    if not incomplete:
        return ""
    missing, total = sum(len(cell.missing) for cell in incomplete), sum(len(cell.splits) for cell in cells)
    parts = [f"{names(cell, cells)} ({len(cell.missing)} of {len(cell.splits)})" for cell in incomplete[:limit]]
    parts += [] if limit is None or len(incomplete) <= limit else [f"and {len(incomplete) - limit} more"]
    return f"MISSING: {missing} of {total} runs, in {len(incomplete)} of {len(cells)} cells: {'; '.join(parts)}"


def preset_lines(cells: Sequence[Cell], preset: str) -> list[str]:
    """A sentence on the preset, if it is quick, and one on runs that were made with another one."""
    counts = Counter(record.preset for cell in cells for record in cell.records if record.preset)
    mixed = ", ".join(f"{name} ({n:,})" for name, n in sorted(counts.items())) if counts.keys() - {preset} else ""
    return [*(["Quick preset."] if preset == "quick" else []), *([f"Mixed presets: {mixed}."] if mixed else [])]


def load_recorded(
    experiment: Experiment, preset: str | None, config_dirs: Sequence[Path], records: Records
) -> tuple[str, list[Cell]]:
    """The preset of which a larger share is recorded, "full" of equals, unless one is given, and its cells."""
    planner = Planner(config_dirs)
    planned = {name: plan(experiment, name, planner, records) for name in ([preset] if preset else PRESETS)}
    count = lambda field, cells: sum(len(getattr(cell, field)) for cell in cells)
    shares = {name: count("records", cells) / max(1, count("splits", cells)) for name, cells in planned.items()}
    name = max(reversed(shares), key=lambda name: shares[name]) if any(shares.values()) else next(iter(shares))
    require_recorded(experiment.id, name, planned[name])
    return name, planned[name]


class Planner:
    """Plans jobs with the files of the same folders, each once: many experiments share jobs."""

    def __init__(self, config_dirs: Sequence[Path] = ()) -> None:
        self._composer = Composer(config_dirs)
        self._known: dict[tuple[str, ...], RunPlan | GpbenchError] = {}
        self._bases: dict[tuple[str, ...], Config] = {}
        self._loaded: Loaded = {}

    def plans(self, jobs: Sequence[Sequence[str]]) -> list[RunPlan | GpbenchError]:
        """The plan of each job, or the error of one whose runs are unknown."""
        configurations = {}
        for job in dict.fromkeys(tuple(job) for job in jobs if tuple(job) not in self._known):
            try:
                configurations[job] = self._composed(job)
                check_task(configurations[job]["method"], configurations[job]["dataset"])
            except ConfigError as error:
                hint = self._composer.advice(jobs)
                raise ConfigError(hint or f"{error}{job_note(job, jobs)}") from error
        for job, cfg in configurations.items():
            try:
                self._known[job] = RunPlan.from_config(cfg, self._loaded)
            except GpbenchError as error:
                self._known[job] = error
        return [self._known[tuple(job)] for job in jobs]

    def _composed(self, job: Sequence[str]) -> Config:
        """The configuration of a job; of jobs that differ in their splits alone only the first is composed."""
        splits = [text for text in job if text.startswith("split=")]
        rest = tuple(text for text in job if text not in splits)
        if rest not in self._bases or len(splits) != 1:
            self._bases[rest] = self._composer.compose(job)
            return self._bases[rest]
        (word,) = words.read(splits)
        split = {"split": list(word.value) if isinstance(word.value, tuple) else word.value}
        check_values(split)
        return cast(Config, {**self._bases[rest], **split})


def plan(experiment: Experiment, preset: str, planner: Planner, records: Records | None = None) -> list[Cell]:
    """The cells of a preset with what is recorded of them, in the order of its jobs."""
    require_known(preset, PRESETS, f"no preset {preset!r}")
    jobs = experiment.jobs(preset)
    cells: list[Cell] = []
    planned = planner.plans([overrides(job) for job in jobs])
    for job, outcome in zip(jobs, planned, strict=True):
        if isinstance(outcome, GpbenchError):
            raise outcome
        cells += cells_of(job, outcome, {} if records is None else records)
    return cells


def plans(jobs: Sequence[Sequence[str]], config_dirs: Sequence[Path] = ()) -> list[RunPlan | GpbenchError]:
    """The plan of each job, as `Planner.plans` makes it."""
    return Planner(config_dirs).plans(jobs)


def job_note(job: Sequence[str], jobs: Sequence[Sequence[str]]) -> str:
    """The end of a message about one job of several: the words that set it apart from others; "" for a single job."""
    shared = set(jobs[0]).intersection(*jobs)
    own = [word for word in job if word not in shared]
    return f" (job {' '.join(own)})" if own else ""


def words_of(record: Record, cfg: Mapping[str, Any]) -> list[str]:
    """The words that make a recorded run again.  Raises ConfigError where they name code: a file's is never run."""
    changes = cfg.get("changes", {})
    fault = f"run {record.id} names a class: a file's is never run; make its runs by hand"
    require("_target_" not in str(changes), fault, ConfigError)
    choices = {name: getattr(record, name) for name in ("dataset", "method", "protocol", "split", "seed")}
    return [f"{key}={words.word(value)}" for key, value in {**choices, **changes}.items()]
