"""The page docs/results/reproduced.md: for each table and figure of the five papers, what its records reproduce.

python scripts/reproduced.py            # writes it, from results/*/records.parquet
python scripts/reproduced.py --check    # exit code 1 where it is not current
"""

import sys
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpbench.analysis.reproduction import Reproduction, recorded_presets, reproductions
from gpbench.experiments import definition
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Planner, plan
from gpbench.experiments.status import Cell
from gpbench.papers import PAPERS
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
- **targets**: those of them that are of held-out rows and have a standard error: equal (within two joint standard
  errors) / better / worse.
- **no target**: the other printed numbers, with letters of the reasons below the table.
- **hours**: seconds of the recorded runs from initialisation to evaluation, on the machines that made them.
"""
_NUMBERED = ("Table", "Figure")


def page(records: Sequence[Record], planner: Planner) -> str:
    """The text of the page.

    Args:
        records: All committed records.
        planner: Plans the runs of the experiments.
    """
    return "\n".join([_HEAD, *(section(paper, records, planner) for paper in PAPERS)])


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
    return "\n".join([*lines, "", *reasons, ""] if reasons else [*lines, ""])


def _planned(
    experiment: Experiment, by_id: Mapping[str, Record], planner: Planner
) -> Sequence[tuple[Experiment, str, Sequence[Cell]]]:
    """An experiment's recorded presets, or its quick one where nothing is recorded."""
    recorded = recorded_presets(experiment, by_id, planner)
    return recorded or [(experiment, "quick", plan(experiment, "quick", (), by_id, planner))]


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
