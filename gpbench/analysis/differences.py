"""Paired differences between two methods, protocols, presets, precisions or commits, on the splits that both have."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from gpbench.analysis.cells import CellRuns, by_split, group_runs, imported_note
from gpbench.analysis.formats import Grid, Sheet, abridge, number
from gpbench.analysis.provenance import provenance_lines, seconds_lines
from gpbench.analysis.statistics import TTest, common_splits, largest_ratio, paired_t_test
from gpbench.analysis.tables import title
from gpbench.errors import ConfigError, either, nearest
from gpbench.metrics import better
from gpbench.records.record import Record

KINDS = ("method", "protocol", "preset", "precision", "commit")
NOTE = (
    "mean of the paired differences over n splits, with the 95 % interval and two-sided p of the corrected resampled t"
    " test (Nadeau and Bengio 2003): variance times 1/n + n_test/n_train, n - 1 degrees of freedom"
)


_Contexts = dict[tuple, tuple[list[CellRuns], list[CellRuns]]]
"""The cells of both sides by what the two of a pair must share."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: all records whose field `kind` has this value; commits match by their first digits."""

    kind: str
    value: str

    def has(self, record: Record) -> bool:
        """Whether the record is on this side."""
        return self.matches(str(getattr(record, self.kind) or "none"))

    def matches(self, value: str) -> bool:
        """Whether records with this value of the field are on this side."""
        return value.startswith(self.value) if self.kind == "commit" else value == self.value


@dataclass(frozen=True)
class Difference:
    """A - B of one metric on one data set, over `n` splits.

    `ratio` is n_test / n_train, None where unknown; `diverged` counts the diverged runs of both sides.
    """

    a: CellRuns
    b: CellRuns
    metric: str
    mean_a: float
    mean_b: float
    test: TTest
    n: int
    ratio: float | None
    diverged: int

    @property
    def winner(self) -> str:
        """Which side is significantly better: "A", "B" or ""."""
        if not self.test.significant or not better(self.metric):
            return ""
        return "A" if (self.test.mean < 0) == (better(self.metric) == "lower") else "B"

    @property
    def name(self) -> str:
        """Data set, output and settings."""
        settings = " | ".join(dict.fromkeys(filter(None, [self.a.label, self.b.label])))
        return " ".join(filter(None, [self.a.dataset, self.a.output, settings]))


def parse_sides(first: str, second: str, records: Sequence[Record]) -> tuple[Side, Side]:
    """The two sides that the user names, as KIND:VALUE or as a value of one kind only.

    Raises ConfigError for an unknown or ambiguous name, for two kinds, and where both sides have the same records.
    """
    a, b = _parse_side(first, records), _parse_side(second, records)
    if a.kind != b.kind:
        raise ConfigError(f"{a.kind} {a.value} and {b.kind} {b.value} are of different kinds; compare two of one kind")
    if all(a.has(record) == b.has(record) for record in records):
        raise ConfigError(f"{a.kind} {a.value} is on both sides; name two different ones")
    return a, b


def shared_metrics(a: Side, b: Side, records: Sequence[Record]) -> set[str]:
    """The metrics that both sides have on one of the data sets."""
    of_a, of_b = (
        {(record.dataset, metric) for record in records if side.has(record) for metric in record.metrics}
        for side in (a, b)
    )
    return {metric for _, metric in of_a & of_b}


def paired_differences(
    a: Side, b: Side, records: Sequence[Record], metric: str
) -> tuple[list[Difference], list[CellRuns]]:
    """The differences of all pairs of cells that differ in the side alone, and the cells without a partner.

    Settings that both sides have are paired; the only setting of one side is paired with all of the other.
    Raises ConfigError where no pair has a common split, with the reason.
    """
    contexts: _Contexts = {}
    for k, side in enumerate((a, b)):
        for cell in group_runs((r for r in records if side.has(r)), by_preset=a.kind == "preset"):
            contexts.setdefault(_context(cell, a.kind), ([], []))[k].append(cell)
    matches = [_match(*cells) for cells in contexts.values()]
    differences = [d for pairs, _ in matches for pair in pairs if (d := _difference(*pair, metric))]
    if not differences:
        paired = any(pairs for pairs, _ in matches)
        why = "" if paired else _settings_apart(a, b, contexts) or _split_sets_apart(a, b, contexts)
        raise ConfigError(why or f"{a.kind} {a.value} and {b.value} have no common split of any data set with {metric}")
    return differences, [cell for _, unmatched in matches for cell in unmatched]


def sheet(a: Side, b: Side, differences: Sequence[Difference], unmatched: Sequence[CellRuns]) -> Sheet:
    """The table of differences, with how the runs of each side were made above it."""
    sides = {"A": [r for d in differences for r in d.a.records], "B": [r for d in differences for r in d.b.records]}
    heads = [f"{letter}: {line}" for letter, records in sides.items() for line in provenance_lines(records)]
    header = ("data set", f"A: {a.value}", f"B: {b.value}", "A - B", "95 % interval", "p", "n", "better")
    grid = Grid(title(differences[0].metric), header, tuple(_line(d, a, b) for d in differences))
    winners = [d.winner for d in differences if d.test.possible]
    feet = [
        f"{a.value} is significantly better in {winners.count('A')} of {len(differences)}, {b.value} in"
        f" {winners.count('B')}; no significant difference in {winners.count('')}",
        NOTE,
        *untested(differences),
    ]
    if differences[0].metric == "seconds":
        feet += seconds_lines(record for records in sides.values() for record in records)
    feet += filter(None, [imported_note(record for records in sides.values() for record in records)])
    if unmatched:
        names = [f"{cell.dataset} {cell.method} {cell.label}".rstrip() for cell in unmatched]
        feet.append(f"without partner: {abridge(names)}")
    return Sheet(heads, [grid], feet, [row(d) for d in differences])


def untested(differences: Sequence[Difference]) -> list[str]:
    """A line for each reason why some of these have no test, with their names; none where all have one."""
    reasons = {
        "a single split": [d.name for d in differences if d.n == 1],
        "records without the numbers of training and test rows": [
            d.name for d in differences if d.n > 1 and d.ratio is None
        ],
    }
    return [f"no test ({reason}): {abridge(names)}" for reason, names in reasons.items() if names]


def row(d: Difference) -> dict:
    """One difference for CSV and JSON; None where a column does not apply."""
    return {
        "dataset": d.a.dataset,
        "output": d.a.output or None,
        "method_a": d.a.method,
        "setting_a": d.a.label,
        "method_b": d.b.method,
        "setting_b": d.b.label,
        "metric": d.metric,
        "mean_a": d.mean_a,
        "mean_b": d.mean_b,
        "difference": d.test.mean,
        "stderr": d.test.stderr,
        "low": d.test.low,
        "high": d.test.high,
        "p": d.test.p,
        "n_splits": d.n,
        "diverged": d.diverged,
        "better": d.winner or None,
    }


def _line(d: Difference, a: Side, b: Side) -> tuple[str, ...]:
    test = d.test
    return (
        d.name,
        number(d.mean_a),
        number(d.mean_b),
        f"{test.mean:+.4g}",
        "" if test.low is None else f"[{test.low:+.4g}, {test.high:+.4g}]",
        "" if test.p is None else f"{test.p:.2g}",
        f"{d.n}" + (f" ({d.diverged} diverged)" if d.diverged else ""),
        {"A": a.value, "B": b.value, "": "-" if test.possible else ""}[d.winner],
    )


def _parse_side(text: str, records: Sequence[Record]) -> Side:
    known: dict[str, set[str]] = {kind: {str(getattr(record, kind) or "none") for record in records} for kind in KINDS}
    kind, colon, value = text.partition(":")
    if colon and kind not in KINDS:
        raise ConfigError(f"{text}: cannot compare by {kind!r}; {nearest(kind, KINDS)}")
    sides = [Side(kind, value)] if colon else [Side(kind, text) for kind in KINDS]
    sides = [side for side in sides if side.value and any(side.matches(name) for name in known[side.kind])]
    if not sides and colon:
        raise ConfigError(f"no run has {kind} {value!r}; {nearest(value, known[kind])}")
    if not sides:  # commits are not listed: there are many, and nobody spells one nearly right
        names = set().union(*(known[kind] for kind in KINDS if kind != "commit"))
        raise ConfigError(f"no run has {text!r}; {nearest(text, names)}")
    if len(sides) > 1:
        raise ConfigError(f"{text} is ambiguous: use {either(f'{side.kind}:{side.value}' for side in sides)}")
    (side,) = sides
    if side.kind == "commit" and len(full := {name for name in known["commit"] if name.startswith(side.value)}) > 1:
        raise ConfigError(f"{len(full)} commits start with {side.value!r}: {', '.join(sorted(full))}; give more digits")
    return side


def _context(cell: CellRuns, kind: str) -> tuple:
    """What the two cells of a pair must share, besides the setting; the split set is the last of it."""
    first = cell.records[0]
    shared = [getattr(first, name) for name in ("method", "protocol", "precision") if name != kind]
    return (cell.dataset, cell.output, first.data_checksum, cell.held_out, *shared, cell.split_set)


def _settings_apart(a: Side, b: Side, contexts: _Contexts) -> str:
    """Why cells that share all but the setting have no partner; "" where there are none."""
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
    """Why cells that share all but the split set have no partner; "" where there are none."""
    sets: dict[tuple, tuple[list[str], list[str]]] = {}
    for (*context, split_set), cells in contexts.items():
        for names, of_side in zip(sets.setdefault(tuple(context), ([], [])), cells):
            names += [split_set or "an unknown split set"] * bool(of_side)
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
    diverged = sum(record.diverged for record in (*a.records, *b.records))
    return Difference(a, b, metric, mean_a, mean_b, test, n=len(common), ratio=ratio, diverged=diverged)
