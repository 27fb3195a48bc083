"""Cells of a table: the runs of one configuration on one data set, averaged over splits, beside what was published.

A cell never mixes configurations, and never averages a run that diverged.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpbench.papers import published
from gpbench.papers.published import Published

LEAKED = "not held out: this run's test rows were among its training rows, as its configuration asks"
_DEFAULTS = (("nll",), ("rmse", "test_ll"))  # classification, regression
_SAID_APART = ("protocol", "precision", "preset")


@dataclass(frozen=True)
class Cell:
    """The runs that differ in split and seed only.  `label` is the setting with whatever else tells cells apart."""

    dataset: str
    output: str
    method: str
    setting: str
    label: str
    preset: str
    held_out: bool
    records: tuple[dict, ...]


@dataclass(frozen=True)
class Entry:
    """One metric of one cell.  `mean` is None without a finished split, `stderr` with fewer than two; `diverged` counts
    the runs that diverged or whose metric is not finite, which are in no mean; `delta_se` is (ours - published) over
    their joint standard error."""

    cell: Cell
    metric: str
    mean: float | None
    stderr: float | None
    n_splits: int
    diverged: int
    published: Published | None
    delta_se: float | None

    @property
    def held_out(self) -> bool:
        """Whether our number, and the published one beside it, are results on held-out rows."""
        return self.cell.held_out and (self.published is None or self.published.held_out)

    @property
    def notes(self) -> list[str]:
        """Lines a reader must know before comparing."""
        lines = [
            "" if self.cell.held_out else LEAKED,
            self.published.note if self.published else "",
            published.NOTES["naval"] if self.cell.dataset == "naval" else "",
        ]
        return [line for line in dict.fromkeys(lines) if line]


def cells(records: Iterable[dict], presets_apart: bool = True) -> list[Cell]:
    """Groups records into cells, in the order of data set, output, method and setting.

    Without `presets_apart` a cell has the runs of its configuration whichever preset asked for them, and its `preset`
    names all of these.
    """
    groups: dict[tuple, list[dict]] = {}
    for record in records:
        groups.setdefault(key(record if presets_apart else {**record, "preset": None}), []).append(record)
    apart = _SAID_APART if presets_apart else _SAID_APART[:-1]
    labels = _labels({key: group[0] for key, group in groups.items()}, apart)
    made = [
        Cell(
            dataset=first["dataset"],
            output="" if first.get("output") is None else str(first["output"]),
            method=first["method"],
            setting=first["setting"],
            label=labels[key],
            preset="+".join(sorted({record["preset"] for record in group if record.get("preset")})),
            held_out=first.get("held_out", True) is not False,
            records=tuple(group),
        )
        for key, group in groups.items()
        for first in group[:1]
    ]
    return sorted(made, key=lambda c: [natural(text) for text in (c.dataset, c.output, c.method, c.label)])


def entries(made: Sequence[Cell], metrics: Sequence[str] = ()) -> list[Entry]:
    """One entry per cell and metric; without `metrics` those of the task, and with "all" every one recorded."""
    found: dict[str, set[str]] = {}
    for cell in made:
        for record in cell.records:
            found.setdefault(cell.dataset, set()).update(record["metrics"])
    return [
        entry(cell, metric)
        for cell in made
        for metric in _wanted(metrics, found[cell.dataset])
        # where every run diverged nothing was recorded, and the cell still shows
        if metric in {"seconds", "objective", *found[cell.dataset]} or not found[cell.dataset]
    ]


def entry(cell: Cell, metric: str) -> Entry:
    """The statistics of one metric: seeds are averaged within a split, then the mean and standard error over splits."""
    found = by_split(cell, metric)
    failed = sum(_failed(record, metric) for record in cell.records)
    theirs = published.lookup(cell.dataset, cell.method, cell.setting, metric, cell.output)
    return summary(cell, metric, list(found.values()), theirs, failed)


def by_split(cell: Cell, metric: str) -> dict[int, float]:
    """The metric on each split, averaged over its seeds; what diverged is left out."""
    found: dict[int, list[float]] = {}
    for record in cell.records:
        value = _value(record, metric)
        if value is not None and not _failed(record, metric):
            found.setdefault(record["split"], []).append(value)
    return {split: fmean(seeds) for split, seeds in found.items()}


def summary(cell: Cell, metric: str, values: Sequence[float], theirs: Published | None, failed: int = 0) -> Entry:
    """The entry of these values, one per split, beside what was published."""
    ours = fmean(values) if values else None
    stderr = _stderr(values)
    return Entry(cell, metric, ours, stderr, len(values), failed, theirs, _delta(ours, stderr, theirs))


def provenance(records: Iterable[dict]) -> dict[str, dict[str, int]]:
    """How many runs were made with each protocol, preset, precision, device, version of JAX and commit."""
    told = ("protocol", "preset", "precision", "device", "jax", "commit")
    counts: dict[str, Counter] = {name: Counter() for name in told}
    for record in records:
        commit = (record.get("commit") or "unknown")[:12] + (" with changes" if record.get("dirty") else "")
        facts = {**record, "jax": (record.get("versions") or {}).get("jax"), "commit": commit}
        for name in told:
            counts[name][str(facts.get(name) or ("none" if name == "preset" else "unknown"))] += 1
    return {name: dict(counter.most_common()) for name, counter in counts.items()}


def natural(text: str) -> list[tuple[int, float, str]]:
    """A sorting key by which m=15% comes before m=100."""
    return [(0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in re.split(r"(\d+)", text) if part]


def key(record: dict) -> tuple:
    """What the records of one cell have in common."""
    names = ("dataset", "output", "method", "setting", *_SAID_APART, "held_out", "data_checksum", "cell")
    return tuple(record.get(name) for name in names)


def _labels(firsts: dict[tuple, dict], apart: Sequence[str]) -> dict[tuple, str]:
    """Setting texts: what differs within the selection is added to all, checksums where names are not enough."""
    labels = _with_differing({key: record["setting"] for key, record in firsts.items()}, firsts, apart)
    alike: dict[tuple, dict[tuple, str]] = {}
    for key, record in firsts.items():
        place = (record["dataset"], record.get("output"), record["method"], labels[key])
        alike.setdefault(place, {})[key] = labels[key]
    for group in alike.values():
        labels |= _with_differing(group, firsts, ("data_checksum", "cell", "held_out"))
    return labels


def _with_differing(labels: dict[tuple, str], firsts: dict[tuple, dict], names: Sequence[str]) -> dict[tuple, str]:
    """The labels, each with its values of those names that are not the same for all."""
    differ = [name for name in names if len({firsts[key].get(name) for key in labels}) > 1]
    return {
        key: ", ".join(filter(None, [label, *(f"{n}={str(firsts[key].get(n) or 'none')[:12]}" for n in differ)]))
        for key, label in labels.items()
    }


def _wanted(metrics: Sequence[str], found: set[str]) -> list[str]:
    if "all" in metrics:
        return [*sorted(found), "seconds"]
    if metrics:
        return list(metrics)
    default = next((names for names in _DEFAULTS if names[0] in found), None)
    return list(default) if default else sorted(found) or ["seconds"]


def _value(record: dict, metric: str) -> float | None:
    if metric == "seconds":
        return record["seconds"].get("train")
    return record.get("objective") if metric == "objective" else record["metrics"].get(metric)


def _failed(record: dict, metric: str) -> bool:
    return record["status"] == "diverged" or (metric in record["metrics"] and _value(record, metric) is None)


def _stderr(values: Sequence[float]) -> float | None:
    """Standard deviation (n - 1) over sqrt(n)."""
    n, centre = len(values), fmean(values or [0.0])
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (n - 1) / n) if n > 1 else None


def _delta(ours: float | None, stderr: float | None, theirs: Published | None) -> float | None:
    if ours is None or stderr is None or theirs is None or theirs.stderr is None:
        return None
    joint = math.hypot(stderr, theirs.stderr)
    return (ours - theirs.value) / joint if joint > 0 else None
