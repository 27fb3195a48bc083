"""Progress of an experiment: its cells, the records of each, and what is missing."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpbench.errors import AbsentError, require
from gpbench.records.plan import Records, Run, RunPlan
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
