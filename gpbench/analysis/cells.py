"""Cells of a table: runs of one configuration on one data set, their means over splits without diverged runs, and
caveats."""

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from statistics import fmean

from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import counted, natural
from gpbench.analysis.provenance import DEGENERATE, LEAKED, SHIPPED, is_degenerate, run_caveats
from gpbench.analysis.statistics import INDEPENDENT, UNTESTED, mean_stderr
from gpbench.metrics import better
from gpbench.own_metrics import COUNTED
from gpbench.papers.published import UNRANKED, Published, lookup
from gpbench.records.absences import absences, absences_text
from gpbench.records.record import Record

BAND = 2.0
"""Number of joint standard errors within which our number and the printed one are equal."""
_DIAGNOSTICS = "diagnostics."
_DEFAULT_METRICS = (("nll",), ("rmse", "test_ll"))  # classification, regression
_LABEL_FIELDS = ("protocol", "precision", "preset")
_OF_CELL = attrgetter("dataset", "output", "method", "setting", "protocol", "precision", "data_checksum", "cell")
_WORDS = {"split_set": "set"}  # names of fields in labels, where a command line has another word


@dataclass(frozen=True)
class CellRuns:
    """The recorded runs of a cell, which differ in split and seed only."""

    dataset: str  # name of the data set
    output: str  # name of the output; "" for a data set with one
    method: str
    setting: str  # settings in which the runs differ from the method's defaults
    label: str  # the setting, and the fields that distinguish this cell from the others of the same selection
    preset: str  # presets of the runs, joined by "+"
    held_out: bool  # false where test rows are training rows
    records: tuple[Record, ...]  # the records of the runs

    @property
    def split_set(self) -> str:
        return self.records[0].split_set or ""

    @property
    def data_key(self) -> tuple[str, str | None]:
        """Split set and checksum of the data: cells with other ones are of other rows, and not compared."""
        return self.split_set, self.records[0].data_checksum

    @functools.cached_property
    def ratio(self) -> float | None:
        """Mean of n_test / n_train over the runs that did not fail, by which tests correct variances; 0 for splits that
        share no rows.  None where a record lacks either number, and for splits without a correction (`UNTESTED`)."""
        if self.split_set in UNTESTED:
            return None
        if self.split_set in INDEPENDENT:
            return 0.0
        sizes = [(record.train_rows, record.test_rows) for record in self.records if record.status != "failed"]
        ratios = [test / train for train, test in sizes if train and test]
        return fmean(ratios) if ratios and len(ratios) == len(sizes) else None

    @functools.cached_property
    def known(self) -> dict[str, Mapping[int, float]]:
        """The metrics by split that were asked for (`by_split`)."""
        return {}

    @functools.cached_property
    def diverged(self) -> int:
        return sum(record.diverged for record in self.records)

    @functools.cached_property
    def caveats(self) -> list[str]:
        """Lines on the runs, whatever the metric."""
        return run_caveats(self.records)

    @property
    def imported(self) -> bool:
        return any(record.imported for record in self.records)


@dataclass(frozen=True)
class Entry:
    """One metric of one cell."""

    cell: CellRuns
    metric: str
    values: Mapping[int, float]  # values by split, averaged over seeds, without runs that have none
    mean: float | None  # mean over splits; None without values
    stderr: float | None  # standard error of the mean over splits, not corrected for shared rows; None below two values
    diverged: int  # number of runs that diverged
    published: Published | None  # the published value, or None
    mark: str = ""  # "best", "tied" (not significantly different from the best) or ""
    undefined: Mapping[str, int] = field(default_factory=dict)
    row_stderr: float | None = None

    @property
    def n_splits(self) -> int:
        return len(self.values)

    @property
    def joint_stderr(self) -> float | None:
        """The standard error of our mean minus the published value, as of independent splits, or None."""
        ours, printed = self.stderr, self.published.stderr if self.published else None
        return None if ours is None or printed is None else math.hypot(ours, printed) or None

    @property
    def delta_se(self) -> float | None:
        """(Ours - published) in joint standard errors, or None."""
        joint, printed = self.joint_stderr, self.published
        return (self.mean - printed.value) / joint if joint and printed and self.mean is not None else None

    @property
    def band(self) -> float | None:
        """Half the width in which our mean equals the published value, in % of that, or None."""
        joint, value = self.joint_stderr, self.published.value if self.published else None
        return 100 * BAND * joint / abs(value) if joint and value else None

    @property
    def lost(self) -> str:
        """The runs that are not in the mean, in words: diverged, and undefined with the reason; "" without any."""
        diverged = f"{counted(self.diverged, 'run')} diverged" if self.diverged else ""
        return ", ".join(filter(None, [diverged, absences_text(self.undefined)]))

    @property
    def no_value(self) -> str:
        """A word in place of the mean of runs without a value: "diverged" or "undefined"; "" without such runs."""
        return "diverged" if self.diverged else "undefined" if self.undefined else ""

    @functools.cached_property
    def better(self) -> str | None:
        return better(self.metric, self.cell.records)

    @functools.cached_property
    def notes(self) -> list[str]:
        return caveats(self.cell, self.metric, self.published)


def caveats(cell: CellRuns, metric: str, published: Published | None) -> list[str]:
    """Lines on one metric of a cell, from its records and its published value, each once."""
    first = [line for line in cell.caveats if line in (LEAKED, SHIPPED)]
    lines = [
        *first,
        published.note if published else "",
        UNRANKED.get(cell.dataset, ""),
        *(line for line in cell.caveats if line not in first),
        DEGENERATE if metric.startswith("vlb") and any(map(is_degenerate, cell.records)) else "",
    ]
    return [line for line in dict.fromkeys(lines) if line]


def entry_notes(entries: Sequence[Entry]) -> list[str]:
    """The caveats of these entries, each once, in order."""
    return list(dict.fromkeys(note for entry in entries for note in entry.notes))


def group_runs(records: Iterable[Record], *, by_preset: bool = False) -> list[CellRuns]:
    """The cells of records in natural order of data set, output, method and label, which tells each from the others."""
    groups = gather((cell_key(record, by_preset=by_preset), record) for record in records)
    label_fields = _LABEL_FIELDS if by_preset else _LABEL_FIELDS[:-1]
    labels = _labels({key: group[0] for key, group in groups.items()}, label_fields)
    cells = [
        CellRuns(
            dataset=own[0].dataset,
            output="" if own[0].output is None else str(own[0].output),
            method=own[0].method,
            setting=own[0].setting,
            label=labels[key],
            preset="+".join(sorted({record.preset for record in own if record.preset})),
            held_out=own[0].held_out is not False,
            records=tuple(own),
        )
        for key, own in groups.items()
    ]
    return sorted(cells, key=lambda c: [natural(text) for text in (c.dataset, c.output, c.method, c.label)])


def entries(cells: Sequence[CellRuns], metrics: Sequence[str] = ()) -> list[Entry]:
    """The entries of each cell by each metric, without metrics that no run on the data set has."""
    recorded: dict[str, set[str]] = {}
    diagnosed: dict[str, set[str]] = {}
    for cell in cells:
        recorded.setdefault(cell.dataset, set()).update(*(record.metrics for record in cell.records))
        numbers = (f"{_DIAGNOSTICS}{name}" for record in cell.records for name in record.diagnostics or ())
        diagnosed.setdefault(cell.dataset, {"seconds", "objective"}).update(numbers)
    selected: dict[str, Sequence[str]] = {}
    for dataset, names in recorded.items():
        default = next((usual for usual in _DEFAULT_METRICS if usual[0] in names), None) or sorted(names) or ["seconds"]
        selected[dataset] = [*sorted(names), "seconds"] if "all" in metrics else metrics or default
    return [
        entry(cell, metric)
        for cell in cells
        for metric in selected[cell.dataset]
        # where every run diverged no metric was recorded, and the cell still shows
        if metric in recorded[cell.dataset] | diagnosed[cell.dataset] or not recorded[cell.dataset]
    ]


def entry(cell: CellRuns, metric: str) -> Entry:
    """A cell by one metric: mean and standard error over splits of means over seeds; of one split over test rows."""
    entry = summarise(cell, metric, by_split(cell, metric), cell.diverged)
    finished = [record for record in cell.records if _value(record, metric) is not None and not record.diverged]
    errors = [(record.row_stderr or {}).get(metric) for record in finished]
    known = [error for error in errors if error is not None]
    is_known = len({record.split for record in finished}) == 1 and len(known) == len(errors)
    return replace(entry, undefined=absences(cell.records, metric), row_stderr=fmean(known) if is_known else None)


def by_split(
    cell: CellRuns, metric: str, value_of: Callable[[Record], float | None] | None = None
) -> Mapping[int, float]:
    """The metric by split, averaged over the seeds that have one; `value_of` gives one that records do not have."""
    if metric not in cell.known:
        value_of = value_of or functools.partial(_value, metric=metric)
        pairs = ((record.split, value_of(record)) for record in cell.records if not record.diverged)
        values = gather((split, value) for split, value in pairs if value is not None)
        cell.known[metric] = {split: fmean(seeds) for split, seeds in values.items()}
    return cell.known[metric]


def summarise(cell: CellRuns, metric: str, values: Mapping[int, float], diverged: int = 0) -> Entry:
    """The entry of these values by split, beside the published value."""
    mean, stderr = mean_stderr([*values.values()]) if values else (None, None)
    published = lookup(cell.dataset, cell.method, cell.setting, metric, cell.output)
    return Entry(cell, metric, values, mean, stderr, diverged, published)


def cell_key(record: Record, *, by_preset: bool = False) -> tuple:
    """The fields that all records of a cell share; the preset is one of them if `by_preset` is set."""
    preset = record.preset if by_preset else None
    return (*_OF_CELL(record), preset, record.held_out is not False)  # a run that failed does not say it


def _labels(firsts: dict[tuple, Record], fields: Sequence[str]) -> dict[tuple, str]:
    """The setting and the fields that differ within the selection; equal labels get their rows, or their age."""
    labels = _add_differing({key: record.setting for key, record in firsts.items()}, firsts, fields)
    namesakes = gather(((r.dataset, r.output, r.method, labels[key]), key) for key, r in firsts.items())
    for keys in namesakes.values():
        for names in (("split_set",), ("data_checksum", "held_out")):
            if len({labels[key] for key in keys}) < len(keys):
                labels |= _add_differing({key: labels[key] for key in keys}, firsts, names)
        for alike in gather((labels[key], key) for key in keys).values():
            for k, key in enumerate(sorted(alike, key=lambda key: firsts[key].age, reverse=True) if alike[1:] else ()):
                word = "newest" if k == 0 else "older" if k == 1 else f"older {k}"
                labels[key] = ", ".join(filter(None, [labels[key], f"defaults={word}"]))
    return labels


def _add_differing(labels: dict[tuple, str], firsts: dict[tuple, Record], fields: Sequence[str]) -> dict[tuple, str]:
    """The labels, each followed by its values of the fields that are not the same for all, unless it has them."""
    differing = [name for name in fields if len({getattr(firsts[key], name) for key in labels}) > 1]
    extended = {}
    for key, label in labels.items():
        words = {name: str(getattr(firsts[key], name) or "none")[:12] for name in differing}
        values = [f"{_WORDS.get(name, name)}={word}" for name, word in words.items()]
        extended[key] = ", ".join(filter(None, [label, *(value for value in values if value not in label.split(", "))]))
    return extended


def _value(record: Record, metric: str) -> float | None:
    if metric == "seconds":
        return record.seconds.get("train")
    if metric.startswith(_DIAGNOSTICS):
        return record.value(metric)
    return getattr(record, metric) if metric in ("objective", *COUNTED) else record.metrics.get(metric)
