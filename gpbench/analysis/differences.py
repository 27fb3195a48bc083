"""Paired differences of two methods, settings, protocols, presets, precisions or commits, and their sheet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpbench.analysis.cells import CellRuns, group_runs
from gpbench.analysis.comparison import Comparison
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import abridge, counted, number
from gpbench.analysis.provenance import correction, facts_of, imported_note, seconds_lines, split_notes
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import UNTESTED, TTest, common_splits, largest_ratio
from gpbench.analysis.tables import title
from gpbench.errors import ConfigError, listed, require
from gpbench.metrics import better
from gpbench.papers.published import shared_terms, terms
from gpbench.records.absences import absences, absences_text
from gpbench.records.record import Record

_Contexts = dict[tuple, tuple[list[CellRuns], list[CellRuns]]]
"""Cells of both sides by the fields that a pair must share besides the setting; the last one is the split set."""


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
    shared: Sequence[str] = ()  # terms of the settings that all cells of the comparison have, which names leave out

    @property
    def ratio(self) -> float | None:
        """The larger n_test / n_train of both sides; None where one is unknown."""
        return largest_ratio([self.a.ratio, self.b.ratio])

    @property
    def records(self) -> tuple[Record, ...]:
        return (*self.a.records, *self.b.records)

    @property
    def diverged(self) -> int:
        return self.a.diverged + self.b.diverged

    @cached_property
    def undefined(self) -> dict[str, int]:
        """Numbers of runs of both sides for which the metric is undefined, by reason."""
        return absences(self.records, self.metric)

    @property
    def winner(self) -> str:
        """The side that is significantly better: "A", "B" or ""."""
        direction = better(self.metric, self.records) if self.test.significant else None
        if not direction:
            return ""
        return "A" if (self.test.mean < 0) == (direction == "lower") else "B"

    @property
    def location(self) -> str:
        return f"{self.a.dataset} {self.a.output}".rstrip()

    @property
    def settings(self) -> str:
        """The terms of both sides, then those of A | those of B, without the terms that all have."""
        a, b = ([term for term in side if term not in self.shared] for side in self.terms)
        own = (", ".join(term for term in side if term not in other) for side, other in ((a, b), (b, a)))
        return ", ".join(filter(None, [*(term for term in a if term in b), " | ".join(filter(None, own))]))

    @property
    def terms(self) -> list[list[str]]:
        """The terms of the settings of A and of B, and the protocol and precision that both have."""
        names, (first, second) = ("protocol", "precision"), (self.a.records[0], self.b.records[0])
        pairs = [(name, getattr(first, name), getattr(second, name)) for name in names]
        fields = [f"{name}={value}" for name, value, other in pairs if value and value == other]
        labels = (terms(cell.label) for cell in (self.a, self.b))
        return [[*(t for t in own if not t.startswith(("protocol=", "precision="))), *fields] for own in labels]

    @property
    def name(self) -> str:
        return f"{self.location} {self.settings}".rstrip()


def paired_differences(
    a: Side, b: Side, records: Sequence[Record], metric: str
) -> tuple[list[Difference], list[CellRuns]]:
    """The differences of cells that differ in the side alone, by setting where both have it; the cells without."""
    contexts: _Contexts = {}
    for k, side in enumerate((a, b)):
        for cell in group_runs((r for r in records if side.includes(r)), by_preset=a.kind == "preset"):
            first = cell.records[0]
            shared = [getattr(first, name) for name in ("method", "protocol", "precision") if name != a.kind]
            context = (cell.dataset, cell.output, first.data_checksum, cell.held_out, *shared, cell.split_set)
            contexts.setdefault(context, ([], []))[k].append(cell)
    matches = [_match(*cells) for cells in contexts.values()]
    differences = [d for pairs, _ in matches for pair in pairs if (d := _difference(*pair, metric))]
    if not differences:
        paired = any(pairs for pairs, _ in matches)
        reason = "" if paired else _settings_apart(a, b, contexts) or _split_sets_apart(a, b, contexts)
        raise ConfigError(
            reason or f"{a.kind} {a.value} and {b.value} have no common split of any data set with {metric}"
        )
    methods = list(dict.fromkeys(d.a.method for d in differences))
    fault = f"settings are compared of one method, and these have {listed(methods)}: choose it with --method"
    require(a.kind != "setting" or len(methods) == 1, fault, ConfigError)
    common = shared_terms(side for d in differences for side in d.terms)
    return [replace(d, shared=common) for d in differences], [cell for _, unmatched in matches for cell in unmatched]


def _settings_apart(a: Side, b: Side, contexts: _Contexts) -> str:
    """Why cells that share all but the setting have no partner; "" without such cells."""
    shared = {context[0]: cells for context, cells in contexts.items() if all(cells)}
    counts = [len({cell.setting for cells in shared.values() for cell in cells[k]}) for k in (0, 1)]
    sides = " and ".join(f"{side.value} ({n} settings)" for side, n in zip((a, b), counts))
    reason = f"{sides} share {abridge([*shared])}, but no setting is on both sides: choose one with --setting"
    return reason if shared else ""


def _split_sets_apart(a: Side, b: Side, contexts: _Contexts) -> str:
    """Why cells that share all but the split set have no partner; "" without such cells."""
    groups = gather((tuple(context), (split_set, *cells)) for (*context, split_set), cells in contexts.items())
    names = lambda group, k: [names[0] or "an unknown split set" for names in group if names[k]]
    sets = [(context[0], names(group, 1), names(group, 2)) for context, group in groups.items()]
    dataset, of_a, of_b = next((both for both in sets if both[1] and both[2]), ("", [], []))
    sides = f"{a.value} has {dataset} on {' and '.join(of_a)}, {b.value} on {' and '.join(of_b)}"
    return f"{sides}: split sets are not compared" if dataset else ""


def _match(a: Sequence[CellRuns], b: Sequence[CellRuns]) -> tuple[list[tuple[CellRuns, CellRuns]], list[CellRuns]]:
    """Pairs of cells, and the cells in none."""
    pairs = [(x, y) for x in a for y in b if x.setting == y.setting]
    if not pairs and a and b and 1 in (len(a), len(b)):
        return [(x, y) for x in a for y in b], []
    settings = {x.setting for x, _ in pairs}
    return pairs, [cell for cell in (*a, *b) if cell.setting not in settings]


def _difference(a: CellRuns, b: CellRuns, metric: str) -> Difference | None:
    pair = Comparison.from_cells({("", "A"): a, ("", "B"): b}, metric)
    common = common_splits(pair.values[""].values()) if len(pair.values[""]) == 2 else []
    if not common:
        return None
    (mean_a, mean_b), test = pair.means({"": common}, ("A", "B"))[0], pair.test("", "A", "B", common)
    return Difference(a, b, metric, float(mean_a), float(mean_b), test, len(common))


def note(differences: Sequence[Difference]) -> str:
    """The foot that says how differences are tested."""
    factor, source = correction(record for d in differences for record in d.records)
    test = f"corrected resampled t test ({source}): variance times {factor}, n - 1 degrees of freedom"
    return f"mean of the paired differences over n splits, with the 95 % interval and two-sided p of the {test}"


def sheet(a: Side, b: Side, differences: Sequence[Difference], unmatched: Sequence[CellRuns]) -> Sheet:
    """The sheet of differences: a line for each pair of cells, below the provenance of both sides."""
    sides = {"A": [r for d in differences for r in d.a.records], "B": [r for d in differences for r in d.b.records]}
    records = [record for of_side in sides.values() for record in of_side]
    header = ("data set", "setting", f"A: {a.value}", f"B: {b.value}", "A - B", "95 % interval", "p", "n", "better")
    heading = title(differences[0].metric, [r for d in differences for r in d.records])
    grid = Grid(heading, header, tuple(_line(d, a, b) for d in differences), prose=True)
    if not any(d.settings for d in differences):
        grid = grid.select(range(2, len(header)))
    n_datasets = len({d.a.dataset for d in differences})
    winners = [d.winner for d in differences if d.test.possible]
    names = [f"{cell.dataset} {cell.method} {cell.label}".rstrip() for cell in unmatched]
    return Sheet(
        title=f"Paired differences {a.value} - {b.value} on {counted(n_datasets, 'data set')}.",
        summary=[
            f"{a.value} is significantly better in {winners.count('A')} of {len(differences)}, {b.value} in"
            f" {winners.count('B')}; no significant difference in {winners.count('')}."
        ],
        grids=[grid],
        remarks=[
            *feet(note(differences), differences, has_correction=True),
            *(seconds_lines(records) if differences[0].metric == "seconds" else []),
            *(f"{d.name}: {absences_text(d.undefined)}" for d in differences if d.undefined),
            *filter(None, [imported_note(records)]),
            *([f"without partner: {abridge(names)}"] if names else []),
        ],
        facts={f"{side}, {name}": text for side, own in sides.items() for name, text in facts_of(own).items()},
        rows=[_row(d) for d in differences],
    )


def feet(test: str, differences: Sequence[Difference], has_correction: bool = False) -> list[str]:
    """How differences are tested, what all settings share, and why some differences have no test or another one."""
    shared = differences[0].shared
    reasons = {
        "a single split": [d.name for d in differences if d.n == 1],
        "records without the numbers of training and test rows": [
            d.name for d in differences if d.n > 1 and d.ratio is None and d.a.split_set not in UNTESTED
        ],
    }
    return [
        test,
        *([f"all with {', '.join(shared)}"] if shared else []),
        *(f"no test ({reason}): {abridge(names)}" for reason, names in reasons.items() if names),
        *split_notes((record for d in differences for record in d.records), has_correction),
    ]


def pair_names(d: Difference) -> dict:
    """The data set, output, methods, settings and metric of a difference by name."""
    return {
        "dataset": d.a.dataset,
        "output": d.a.output or None,
        "method_a": d.a.method,
        "setting_a": d.a.label,
        "method_b": d.b.method,
        "setting_b": d.b.label,
        "metric": d.metric,
    }


def _row(d: Difference) -> dict:
    return {
        **pair_names(d),
        "mean_a": d.mean_a,
        "mean_b": d.mean_b,
        "difference": d.test.mean,
        "stderr": d.test.stderr,
        "low": d.test.low,
        "high": d.test.high,
        "p": d.test.p,
        "n_splits": d.n,
        "diverged": d.diverged,
        "undefined": sum(d.undefined.values()),
        "better": d.winner or None,
    }


def _line(d: Difference, a: Side, b: Side) -> tuple[str, ...]:
    test, counts = d.test, {"diverged": d.diverged, **d.undefined}
    lost = ", ".join(f"{n} {words.partition(' (')[0]}" for words, n in counts.items() if n)  # the foot has the reasons
    return (
        d.location,
        d.settings,
        number(d.mean_a),
        number(d.mean_b),
        f"{test.mean:+.4g}",
        "" if test.low is None else f"[{test.low:+.4g}, {test.high:+.4g}]",
        "" if test.p is None else f"{test.p:.2g}",
        f"{d.n} ({lost})" if lost else str(d.n),
        {"A": a.value, "B": b.value, "": "-" if test.possible else ""}[d.winner],
    )
