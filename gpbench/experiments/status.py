"""What is recorded of an experiment: its cells, the records of each, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


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
    keep: bool = False
    records: Sequence[Mapping[str, Any]] = field(default=())

    @property
    def missing(self) -> list[int]:
        """The splits that no record has."""
        recorded = {record["split"] for record in self.records}
        return [k for k in self.splits if k not in recorded]

    @property
    def done(self) -> list[Mapping[str, Any]]:
        """The records that did not diverge."""
        return [record for record in self.records if record["status"] == "done"]


def find(cells: Sequence[Cell], records: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """The cells with their records: of the cell's identity, seed and splits, and with what pictures need if it must."""
    by_cell: dict[str | None, list[Mapping[str, Any]]] = {}
    for record in records:
        by_cell.setdefault(record.get("cell"), []).append(record)
    found = []
    for cell in cells:
        fits = [
            record
            for record in by_cell.get(cell.id, ())
            if record["seed"] == cell.seed and record["split"] in cell.splits and (record.get("kept") or not cell.keep)
        ]
        found.append(Cell(**{**vars(cell), "records": tuple(sorted(fits, key=lambda r: r["split"]))}))
    return found


def names(cell: Cell, cells: Sequence[Cell]) -> str:
    """What sets a cell apart from the other cells, in words of a command line."""
    telling = [key for key in cell.job if not key.startswith("run.") or key == "run.devices"]
    varying = [key for key in telling if len({other.job.get(key) for other in cells}) > 1]
    words = [f"{key}={cell.job[key]}" for key in varying] + ([f"output {cell.output}"] if cell.output else [])
    return " ".join(words) or f"dataset={cell.dataset} method={cell.method}"


def absent(cells: Sequence[Cell], limit: int | None = 6) -> str:
    """One line that says which runs are missing, "" if none is; at most `limit` cells are named."""
    lacking = [cell for cell in cells if cell.missing]
    if not lacking:
        return ""
    runs, wanted = sum(len(cell.missing) for cell in lacking), sum(len(cell.splits) for cell in cells)
    named = [f"{names(cell, cells)} ({len(cell.missing)} of {len(cell.splits)})" for cell in lacking[:limit]]
    more = [] if limit is None or len(lacking) <= limit else [f"and {len(lacking) - limit} more"]
    return f"MISSING: {runs} of {wanted} runs, in {len(lacking)} of {len(cells)} cells: " + "; ".join([*named, *more])


def preset_line(cells: Sequence[Cell], preset: str, told: str) -> str:
    """The preset asked for, and whether any of the records were made with another one."""
    counts: dict[str, int] = {}
    for record in (record for cell in cells for record in cell.records):
        name = record.get("preset") or "none"
        counts[name] = counts.get(name, 0) + 1
    line = f"preset {preset}" + (f": {told}" if told else "")
    if set(counts) <= {preset}:
        return line.replace("preset quick", "QUICK PRESET") if preset == "quick" else line
    mixed = ", ".join(f"{name} ({n})" for name, n in sorted(counts.items()))
    return f"{line}; MIXED presets: runs were made with {mixed}"
