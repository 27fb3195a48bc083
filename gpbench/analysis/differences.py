"""Paired differences of two methods, protocols, presets, precisions or commits, on the splits that both have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.analysis.printing import abridge
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import TTest, common_splits, largest_ratio, paired_t_test
from gpbench.errors import ConfigError
from gpbench.metrics import better
from gpbench.papers.published import terms
from gpbench.records.absences import absences
from gpbench.records.record import Record

_Contexts = dict[tuple, tuple[list[CellRuns], list[CellRuns]]]
"""Cells of both sides by the fields that a pair must share."""


@dataclass(frozen=True)
class Difference:
    """The difference A - B of one metric on one data set."""

    a: CellRuns
    b: CellRuns
    metric: str
    mean_a: float
    mean_b: float
    test: TTest  # corrected t test of the differences
    n: int  # number of common splits
    ratio: float | None  # n_test / n_train; None where unknown
    diverged: int  # number of diverged runs of both sides
    undefined: Mapping[str, int] = field(default_factory=dict)
    shared: Sequence[str] = ()  # terms of the settings that all cells of the comparison have, which names leave out

    @property
    def records(self) -> tuple[Record, ...]:
        """Records of both sides."""
        return (*self.a.records, *self.b.records)

    @property
    def winner(self) -> str:
        """The side that is significantly better: "A", "B" or ""."""
        direction = better(self.metric, self.records) if self.test.significant else None
        if not direction:
            return ""
        return "A" if (self.test.mean < 0) == (direction == "lower") else "B"

    @property
    def location(self) -> str:
        """Data set and output."""
        return f"{self.a.dataset} {self.a.output}".rstrip()

    @property
    def settings(self) -> str:
        """The terms of both sides, then those of A | those of B, without the terms that all have."""
        a, b = ([term for term in side if term not in self.shared] for side in self.terms)
        own = (", ".join(term for term in side if term not in other) for side, other in ((a, b), (b, a)))
        return ", ".join(filter(None, [*(term for term in a if term in b), " | ".join(filter(None, own))]))

    @property
    def terms(self) -> tuple[list[str], list[str]]:
        """The terms of the settings of A and of B, and the protocol and precision that both have."""
        first, second = self.a.records[0], self.b.records[0]
        fields = [
            f"{name}={value}"
            for name in ("protocol", "precision")
            if (value := getattr(first, name)) and value == getattr(second, name)
        ]
        own = (
            [t for t in terms(cell.label) if not t.startswith(("protocol=", "precision="))] for cell in (self.a, self.b)
        )
        a, b = ([*side, *fields] for side in own)
        return a, b

    @property
    def name(self) -> str:
        """Data set, output and settings."""
        return f"{self.location} {self.settings}".rstrip()


def paired_differences(
    a: Side, b: Side, records: Sequence[Record], metric: str
) -> tuple[list[Difference], list[CellRuns]]:
    """The differences of all pairs of cells that differ in the side alone.

    Settings that both sides have are paired; the only setting of one side is paired with all of the other.  Returns the
    differences, and the cells without a partner.  Raises ConfigError: no pair has a common split; the message has the
    reason.
    """
    contexts: _Contexts = {}
    for k, side in enumerate((a, b)):
        for cell in group_runs((r for r in records if side.includes(r)), by_preset=a.kind == "preset"):
            contexts.setdefault(_context(cell, a.kind), ([], []))[k].append(cell)
    matches = [_match(*cells) for cells in contexts.values()]
    differences = [d for pairs, _ in matches for pair in pairs if (d := _difference(*pair, metric))]
    if not differences:
        paired = any(pairs for pairs, _ in matches)
        reason = "" if paired else _settings_apart(a, b, contexts) or _split_sets_apart(a, b, contexts)
        raise ConfigError(
            reason or f"{a.kind} {a.value} and {b.value} have no common split of any data set with {metric}"
        )
    first, *others = [side for d in differences for side in d.terms]
    shared = [term for term in first if all(term in other for other in others)]
    pairs = [replace(d, shared=shared) for d in differences]
    return pairs, [cell for _, unmatched in matches for cell in unmatched]


def _context(cell: CellRuns, kind: str) -> tuple:
    """The fields that a pair of cells must share, besides the setting; the last one is the split set."""
    first = cell.records[0]
    shared = [getattr(first, name) for name in ("method", "protocol", "precision") if name != kind]
    return (cell.dataset, cell.output, first.data_checksum, cell.held_out, *shared, cell.split_set)


def _settings_apart(a: Side, b: Side, contexts: _Contexts) -> str:
    """Explains why cells that share all but the setting have no partner; "" without such cells."""
    shared = {context[0]: cells for context, cells in contexts.items() if all(cells)}
    if not shared:
        return ""
    sides = [
        f"{side.value} ({len({cell.setting for cells in shared.values() for cell in cells[k]})} settings)"
        for k, side in enumerate((a, b))
    ]
    return (
        f"{' and '.join(sides)} share {abridge([*shared])}, but no setting is on both sides: choose one with --setting"
    )


def _split_sets_apart(a: Side, b: Side, contexts: _Contexts) -> str:
    """Explains why cells that share all but the split set have no partner; "" without such cells."""
    sets: dict[tuple, tuple[list[str], list[str]]] = {}
    for (*context, split_set), cells in contexts.items():
        for names, cells_of_side in zip(sets.setdefault(tuple(context), ([], [])), cells):
            names += [split_set or "an unknown split set"] * bool(cells_of_side)
    for (dataset, *_), (of_a, of_b) in sets.items():
        if of_a and of_b:
            return (
                f"{a.value} has {dataset} on {' and '.join(of_a)}, {b.value} on {' and '.join(of_b)}:"
                " split sets are not compared"
            )
    return ""


def _match(a: Sequence[CellRuns], b: Sequence[CellRuns]) -> tuple[list[tuple[CellRuns, CellRuns]], list[CellRuns]]:
    """Pairs of cells, and the cells in none."""
    pairs = [(x, y) for x in a for y in b if x.setting == y.setting]
    if not pairs and a and b and 1 in (len(a), len(b)):
        return [(x, y) for x in a for y in b], []
    settings = {x.setting for x, _ in pairs}
    return pairs, [cell for cell in (*a, *b) if cell.setting not in settings]


def _difference(a: CellRuns, b: CellRuns, metric: str) -> Difference | None:
    values_a, values_b = by_split(a, metric), by_split(b, metric)
    common = common_splits([values_a, values_b])
    if not common:
        return None
    mean_a, mean_b = (fmean(values[split] for split in common) for values in (values_a, values_b))
    ratio = largest_ratio([a.ratio, b.ratio])
    test = paired_t_test([values_a[split] - values_b[split] for split in common], ratio)
    records = (*a.records, *b.records)
    diverged, undefined = sum(record.diverged for record in records), absences(records, metric)
    return Difference(a, b, metric, mean_a, mean_b, test, len(common), ratio, diverged, undefined)
