"""The sheet of paired differences, with the notes that say how they are tested."""

from collections.abc import Sequence

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.differences import Difference
from gpbench.analysis.notes import correction, imported_note, split_notes
from gpbench.analysis.printing import abridge, counted, number
from gpbench.analysis.provenance import facts_of, seconds_lines
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import UNTESTED
from gpbench.analysis.tables import title
from gpbench.records.absences import absences_text


def note(differences: Sequence[Difference]) -> str:
    """The foot that says how differences are tested."""
    factor, source = correction(record for d in differences for record in d.records)
    return (
        "mean of the paired differences over n splits, with the 95 % interval and two-sided p of the corrected"
        f" resampled t test ({source}): variance times {factor}, n - 1 degrees of freedom"
    )


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
    """The numbers of a difference by name; None where one does not apply."""
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
