"""The page docs/results/reproduced.md: for each table and figure of the five papers, what its records reproduce.

python scripts/reproduced.py            # writes it, from results/*/records.parquet
python scripts/reproduced.py --check    # exit code 1 where it is not current
"""

import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpbench.analysis.agreement import outcome
from gpbench.analysis.cells import CellRuns, Entry, entry, group_runs
from gpbench.analysis.printing import number
from gpbench.analysis.reproduction import Reproduction, recorded_presets, reproductions, total
from gpbench.experiments import definition
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell, Planner, plan
from gpbench.papers import PAPERS
from gpbench.papers.published import UNRANKED, Published, later
from gpbench.records.collection import open_store
from gpbench.records.record import Record

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "results" / "reproduced.md"

_HEAD = """# What is reproduced

Rows for the tables and figures of the five papers, and then for what stands beside them.  `scripts/reproduced.py`
makes this page from the committed records.  Table 2 of svdgp has means of its Tables 3 and 5, and Figure 1 of qsgp
has no runs (`scripts/qsgp_variance.py`).  What is missing, with its hours, stands on the [page of each
paper](README.md).

- **runs**: the recorded runs among those of the preset.  An experiment has a row for its full preset where a
  run of that is recorded.  It has one for its quick preset where that has further runs, or where nothing is recorded.
  Runs of both presets count in both rows, and so do their hours; those that experiments share count in each.  So a
  row `full` with fewer runs than planned may have runs of the quick preset alone.
- **printed**: printed numbers with one of ours beside them.  A number counts once, in the first row that has it:
  the full preset's before the quick one's.
- **targets**: those of them that are of held-out rows and have a standard error: equal / better / worse.
- **no target**: the other printed numbers, with letters of the reasons below the table.
- **hours**: seconds of the recorded runs from initialisation to evaluation, on the machines that made them.

A second table has each target:

- **±, %**: the band.  Ours is *equal* where it is within two joint standard errors of the printed number, here in % of
  it; else it is *better* or *worse*.  Of log densities (test_ll) the % says little: their zero depends on the unit of
  the targets.  The joint variance is the sum of ours over splits, the printed one, and that of rounding: u²/12 for a
  value printed to the unit u, and v²/12 within the square of an error printed to the unit v.
- **printed**: ± as the paper has it, a standard deviation over splits in sep and qsgp and of dropout.
- **rivals**: the runs of other methods and settings, such as sizes, that the same table has on the same rows, and how
  many of them meet the target: lie in its band, in which ours is equal, or on its better side.  A target that none of
  them meets is *informative*: it tells the method from its rivals.  Rivals of qsgp have one fold, the targets five.
- Targets of aep_dgp are on the splits of the papers that printed them.  Errors of ours and of theirs are then
  correlated, and the band, which takes them as independent, is too wide: equal says less than it seems, better and
  worse more.  Papers print no values of single splits, so that errors of paired rows are not known.
"""
_NUMBERED = ("Table", "Figure")
_OTHER_DATA = {"svdgp"}  # papers whose printed numbers are of data that ours only resemble
_LATER = ("dsdgp", "m=100, hidden=[inputs], batch=200", ("DSDGP layers 2", "DSDGP 2 layers"))
"""A method, its setting, and the names of the same model in later papers."""
_AHEAD = ("odsvgp", "m=2048+128, batch=1024", "svgp", "m=512, batch=1000")
"""A method, its setting, and the method and setting behind which it should not be."""
_MARGIN = 2  # per cent of a printed number without a standard error, by which ours must differ to be listed
_OUTSIDE = (
    "Numbers that can be believed and that the count of targets leaves out, because a test needs errors that they or"
    " ours lack, or because they are of other splits. Of {total} printed numbers without such an error {better} of"
    " our means are better by over {margin} %, and {worse} are worse, none of them by a test:"
)


def page(records: Sequence[Record], planner: Planner) -> str:
    """The text of the page.

    Args:
        records: All committed records.
        planner: Plans the runs of the experiments.
    """
    return "\n".join([_HEAD, *(section(paper, records, planner) for paper in PAPERS), outside(records, planner)])


def section(paper: str, records: Sequence[Record], planner: Planner) -> str:
    """The part of the page about a paper: its name, its rows, and the reasons that they refer to.

    Args:
        paper: Name of the paper, as in `PAPERS`.
        records: All committed records.
        planner: Plans the runs of the experiments.
    """
    by_id = {record.id: record for record in records}
    named = {
        experiment.id: experiment for id in definition.names() if (experiment := definition.read(id)).paper == paper
    }
    in_order = sorted(named.values(), key=lambda experiment: not experiment.title.startswith(_NUMBERED))
    planned = [entry for experiment in in_order for entry in _planned(experiment, by_id, planner)]
    compared = reproductions(planned)
    counts = Counter(comparison.exclusion for comparison in compared if comparison.exclusion)
    letters = {reason: chr(ord("a") + k) for k, (reason, _) in enumerate(counts.most_common())}
    lines = [f"## {paper}", "", *textwrap.wrap(f"{PAPERS[paper]}.", 120), ""]
    lines += ["| table or figure | preset | runs | printed | targets | no target | hours |"]
    lines += ["|---|---|---:|---:|---|---|---:|"]
    for experiment, preset, cells in planned:
        own = [each for each in compared if (each.experiment, each.preset) == (experiment.id, preset)]
        lines.append(_row(experiment, preset, cells, own, letters))
    reasons = [f"- {letter}: {reason}" for reason, letter in letters.items()]
    targets = [each for each in compared if not each.exclusion]
    return "\n".join([*lines, "", *([*reasons, ""] if reasons else []), *_targets(targets)])


def _targets(targets: Sequence[Reproduction]) -> list[str]:
    """The table of targets, below their count; no line without any."""
    if not targets:
        return []
    header = ("target", "ours", "printed", "difference, se", "±, %", "", "rivals that meet it")
    rows = [
        (
            f"{each.row}, {each.column} {each.published.setting}".rstrip() + f": {each.entry.metric}",
            number(each.entry.mean, each.entry.stderr),
            f"{each.published.text} ± {each.published.err:.{each.published.decimals}f}",
            f"{each.entry.delta_se:+.1f}",
            f"{each.entry.band:.1f}",
            each.outcome,
            f"{sum(each.rivals)} of {len(each.rivals)}" + (", informative" if each.informative else ""),
        )
        for each in targets
    ]
    return [f"{total(targets)}.", "", *_table(header, rows), ""]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows)]


def outside(records: Sequence[Record], planner: Planner) -> str:
    """The part of the page about numbers that are no targets and yet can be believed.

    Args:
        records: All committed records.
        planner: Plans the runs of the experiments.
    """
    by_id = {record.id: record for record in records}
    experiments = map(definition.read, definition.names())
    compared = reproductions(planned for e in experiments for planned in _planned(e, by_id, planner))
    untested = [each for each in compared if _is_untested(each)]
    gains = [_gain(each.entry, each.published) for each in untested]
    worse = [each for each, gain in zip(untested, gains) if gain < -_MARGIN]
    better = sum(gain > _MARGIN for gain in gains)
    rows = [
        (
            f"`{each.experiment}` {each.row}, {each.column}: {each.entry.metric}",
            number(each.entry.mean, each.entry.stderr),
            each.published.text,
            each.exclusion,
        )
        for each in worse
    ]
    cells = group_runs(records)
    text = _OUTSIDE.format(total=len(untested), better=better, worse=len(worse), margin=_MARGIN)
    lines = [*textwrap.wrap(text, 120), "", *_table(("number", "ours", "printed", "no target because"), rows)]
    return "\n".join(["## Outside the count", "", *lines, "", *_later_lines(cells), "", *_ahead_lines(cells), ""])


def _is_untested(each: Reproduction) -> bool:
    """Whether a number is no target for want of an error or of runs alone."""
    has_order = each.published.held_out and each.entry.cell.held_out and each.entry.better
    return bool(each.exclusion and has_order and not each.published.note and each.paper not in _OTHER_DATA)


def _gain(ours: Entry, printed: Published) -> float:
    """By how much ours is better than the printed number, in % of that."""
    assert ours.mean is not None
    return 100 * (ours.mean - printed.value) / abs(printed.value) * (1 if ours.better == "higher" else -1)


def _later_lines(cells: Sequence[CellRuns]) -> list[str]:
    """The lines on a method beside later papers."""
    method, setting, names = _LATER
    rows = []
    for cell in cells:
        if (cell.method, cell.setting) == (method, setting) and cell.dataset not in UNRANKED:
            for ours in (entry(cell, metric) for metric in ("test_ll", "rmse")):
                for printed in later(cell.dataset, ours.metric):
                    if printed.method in names:
                        bare = replace(printed, stderr=printed.stderr or 0.0, n=None, note="")
                        words = number(ours.mean, ours.stderr), printed.text, outcome(replace(ours, published=bare))
                        rows.append((cell.dataset, ours.metric, *words, printed.source))
    lead = (
        f"Later papers print numbers of doubly stochastic deep GPs of two layers; ours are {method} ({setting}). Equal"
        " is within two standard errors, joint where the source has one, else ours alone:"
    )
    return [*textwrap.wrap(lead, 120), "", *_table(("data set", "metric", "ours", "printed", "", "source"), rows)]


def _ahead_lines(cells: Sequence[CellRuns]) -> list[str]:
    """The lines on a method that its paper has ahead of another one."""
    method, setting, other, of_other = _AHEAD
    found = {(c.method, c.setting, c.dataset): entry(c, "rmse") for c in cells if c.records[0].protocol == "evans2020"}
    rows = [
        (dataset, number(ours.mean), number(found[other, of_other, dataset].mean))
        for (name, its_setting, dataset), ours in found.items()
        if (name, its_setting) == (method, setting)
    ]
    lead = f"{method} has other bases and steps than {other} ({setting}; {of_other}), and is behind it; RMSE of fold 0:"
    return [*textwrap.wrap(lead, 120), "", *_table(("data set", method, other), rows)]


def _planned(
    experiment: Experiment, by_id: Mapping[str, Record], planner: Planner
) -> Sequence[tuple[Experiment, str, Sequence[Cell]]]:
    """An experiment's recorded presets, or its quick one where nothing is recorded."""
    recorded = recorded_presets(experiment, by_id, planner)
    return recorded or [(experiment, "quick", plan(experiment, "quick", planner, by_id))]


def _row(
    experiment: Experiment,
    preset: str,
    cells: Sequence[Cell],
    compared: Sequence[Reproduction],
    letters: Mapping[str, str],
) -> str:
    """A line of a table: an experiment's runs, its comparisons, and the letters of the reasons against targets."""
    records = {record.id: record for cell in cells for record in cell.records}
    outcomes = Counter(comparison.outcome for comparison in compared if not comparison.exclusion)
    excluded = Counter(comparison.exclusion for comparison in compared if comparison.exclusion)
    hours = sum(sum(record.seconds.values()) for record in records.values()) / 3600
    entries = [
        f"`{experiment.id}` {experiment.title.partition(':')[0]}",
        preset,
        f"{len(records):,} of {sum(len(cell.splits) for cell in cells):,}",
        str(len(compared) or ""),
        " / ".join(str(outcomes[name]) for name in ("equal", "better", "worse")) if outcomes else "",
        ", ".join(f"{excluded[reason]} {letter}" for reason, letter in letters.items() if excluded[reason]),
        "" if not records else "under 0.1" if hours < 0.05 else f"{hours:.1f}",
    ]
    return f"| {' | '.join(entries)} |"


def main() -> int:
    """Runs the command; returns its exit code."""
    paths = sorted(ROOT.glob("results/*/records.parquet"))
    text = page([record for path in paths for record in open_store(path).all()], Planner())
    if sys.argv[1:] == ["--check"]:
        return int(PAGE.read_text() != text)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
