"""Two methods, protocols, presets or commits: paired differences on the splits that both have, data set by data set."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from gpbench.errors import ConfigError, nearest
from gpbench.metrics import better
from gpbench.report.cells import Cell, by_split, cells
from gpbench.report.formats import Grid, Sheet
from gpbench.report.tables import runs_line, title
from gpbench.report.text import number

KINDS = ("method", "protocol", "preset", "precision", "commit")
LEVEL = 0.05
NOTE = (
    "mean of the paired differences over n splits, with the 95 % interval and two-sided p of Student's t; splits that"
    " share rows make such intervals too narrow"
)


@dataclass(frozen=True)
class Side:
    """What is compared: all records whose `kind` has this value; a commit by its first digits."""

    kind: str
    value: str

    def has(self, record: dict) -> bool:
        """Whether the record is on this side."""
        found = str(record.get(self.kind) or "none")
        return found.startswith(self.value) if self.kind == "commit" else found == self.value


@dataclass(frozen=True)
class Difference:
    """A - B of one metric on one data set.  `low`, `high`, `p` are None with fewer than two splits; `n` counts splits,
    `diverged` the runs of either side that diverged."""

    a: Cell
    b: Cell
    metric: str
    mean_a: float
    mean_b: float
    difference: float
    low: float | None
    high: float | None
    p: float | None
    n: int
    diverged: int

    @property
    def verdict(self) -> str:
        """ "A" or "B" where the interval is on one side of 0, else ""."""
        if self.low is None or self.high is None or self.low <= 0 <= self.high:
            return ""
        return "A" if (self.difference < 0) == (better(self.metric) == "lower") else "B"

    @property
    def name(self) -> str:
        """Data set, and the settings."""
        settings = " | ".join(dict.fromkeys(filter(None, [self.a.label, self.b.label])))
        return " ".join(filter(None, [self.a.dataset, self.a.output, settings]))


def sides(first: str, second: str, records: Sequence[dict]) -> tuple[Side, Side]:
    """The two sides named, as KIND:VALUE or a bare value that only one kind has.  Raises ConfigError where unclear."""
    a, b = _side(first, records), _side(second, records)
    if a.kind != b.kind:
        raise ConfigError(f"{a.kind} {a.value} and {b.kind} {b.value} are of different kinds; compare two of one kind")
    return a, b


def differences(a: Side, b: Side, records: Sequence[dict], metric: str) -> tuple[list[Difference], list[str]]:
    """Every pair that differs in nothing but the side, and the names of cells of one side without partner.

    Settings that both sides have are paired; the only setting of one side is paired with all of the other.
    Raises ConfigError where no pair has a split in common.
    """
    grouped: dict[tuple, tuple[list[Cell], list[Cell]]] = {}
    for at, side in enumerate((a, b)):
        for cell in cells((r for r in records if side.has(r)), presets_apart=a.kind == "preset"):
            grouped.setdefault(_context(cell, a.kind), ([], []))[at].append(cell)
    pairs, alone = [], []
    for left, right in grouped.values():
        made = [(x, y) for x in left for y in right if x.setting == y.setting]
        if not made and 1 in (len(left), len(right)):
            made = [(x, y) for x in left for y in right]
        paired = {id(cell) for pair in made for cell in pair}
        alone += [cell for cell in (*left, *right) if id(cell) not in paired]
        pairs += made
    found = [difference for pair in pairs if (difference := _difference(*pair, metric))]
    if not found:
        raise ConfigError(f"{a.kind} {a.value} and {b.value} have no split of a data set in common with {metric}")
    return found, [f"{cell.dataset} {cell.method} {cell.label}".rstrip() for cell in alone]


def paired(values: Sequence[float]) -> tuple[float, float | None, float | None, float | None]:
    """Mean, ends of the 95 % interval and two-sided p of the paired t test, for these differences."""
    from scipy.special import stdtr, stdtrit

    n, centre = len(values), fmean(values)
    if n < 2:
        return centre, None, None, None
    error = math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (n - 1) / n)
    half = error * float(stdtrit(n - 1, 1 - LEVEL / 2))
    p = 2 * float(stdtr(n - 1, -abs(centre) / error)) if error else float(centre == 0)
    return centre, centre - half, centre + half, p


def sheet(a: Side, b: Side, found: Sequence[Difference], alone: Sequence[str]) -> Sheet:
    """The table of differences, with how the runs of each side were made above it."""
    metric = found[0].metric
    header = ("data set", f"A: {a.value}", f"B: {b.value}", "A - B", "95 % interval", "p", "n", "better")
    lines = [
        (d.name, number(d.mean_a), number(d.mean_b), f"{d.difference:+.4g}", interval(d),
         "" if d.p is None else f"{d.p:.2g}", f"{d.n}" + (f" ({d.diverged} diverged)" if d.diverged else ""),
         {"A": a.value, "B": b.value, "": "-"}[d.verdict])
        for d in found
    ]  # fmt: skip
    made = [runs_line(r for d in found for r in cell(d).records) for cell in (lambda d: d.a, lambda d: d.b)]
    heads = [f"{letter}: {line}" for letter, of in zip("AB", made) for line in of]
    count = {side: sum(d.verdict == side for d in found) for side in ("A", "B", "")}
    feet = [f"{a.value} is better in {count['A']} of {len(found)}, {b.value} in {count['B']},"
            f" not told apart in {count['']}", NOTE]  # fmt: skip
    if alone:
        more = [f"and {len(alone) - 6} more"] if len(alone) > 6 else []
        feet.append(f"without partner: {'; '.join([*alone[:6], *more])}")
    return Sheet(heads, [Grid(title(metric), header, tuple(lines))], feet, [row(d) for d in found])


def row(d: Difference) -> dict:
    """One difference for programs; None where a column does not apply."""
    return {
        "dataset": d.a.dataset, "output": d.a.output or None, "method_a": d.a.method, "setting_a": d.a.label,
        "method_b": d.b.method, "setting_b": d.b.label, "metric": d.metric, "mean_a": d.mean_a, "mean_b": d.mean_b,
        "difference": d.difference, "low": d.low, "high": d.high, "p": d.p, "n_splits": d.n, "diverged": d.diverged,
        "better": d.verdict or None,
    }  # fmt: skip


def interval(d: Difference) -> str:
    """The interval as text, "" with one split."""
    return "" if d.low is None else f"[{d.low:+.4g}, {d.high:+.4g}]"


def _side(text: str, records: Iterable[dict]) -> Side:
    known: dict[str, set[str]] = {kind: {str(r.get(kind) or "none") for r in records} for kind in KINDS}
    kind, colon, value = text.partition(":")
    if colon and kind in KINDS:
        if not any(Side(kind, value).has({kind: name}) for name in known[kind]) or not value:
            raise ConfigError(f"no run has {kind} {value!r}; {nearest(value, known[kind])}")
        candidates = [Side(kind, value)]
    elif colon:
        raise ConfigError(f"{text}: {kind!r} is no kind; {nearest(kind, KINDS)}")
    else:
        candidates = [side for kind in KINDS for side in [Side(kind, text)]
                      if text and any(side.has({kind: name}) for name in known[kind])]  # fmt: skip
    if not candidates:
        raise ConfigError(f"no run has {text!r}; {nearest(text, set().union(*known.values()))}")
    if len(candidates) > 1:
        raise ConfigError(f"{text} is unclear: say {' or '.join(f'{side.kind}:{side.value}' for side in candidates)}")
    (side,) = candidates
    if side.kind == "commit" and len(full := {name for name in known["commit"] if name.startswith(side.value)}) > 1:
        raise ConfigError(f"{len(full)} commits start with {side.value!r}: {', '.join(sorted(full))}; give more digits")
    return side


def _context(cell: Cell, kind: str) -> tuple:
    """What both sides must share, settings apart."""
    first = cell.records[0]
    shared = [name for name in ("method", "protocol", "precision") if name != kind]
    checksum = first.get("data_checksum")
    return (cell.dataset, cell.output, checksum, cell.held_out, *(first.get(name) for name in shared))


def _difference(a: Cell, b: Cell, metric: str) -> Difference | None:
    left, right = by_split(a, metric), by_split(b, metric)
    common = sorted(left.keys() & right.keys())
    if not common:
        return None
    values = [left[split] - right[split] for split in common]
    mean_a, mean_b = (fmean(side[split] for split in common) for side in (left, right))
    diverged = sum(record["status"] == "diverged" for record in (*a.records, *b.records))
    return Difference(a, b, metric, mean_a, mean_b, *paired(values), n=len(common), diverged=diverged)
