"""Sections of the page of ranks: the diagram of the methods with the most data sets, and the data for any others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from gpbench.analysis.caveats import imported_note
from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.analysis.rank_tests import nemenyi_quantile
from gpbench.analysis.ranks import Ranking, by_dataset, diverged_runs, labels, method_of, rank_table, ranking_notes
from gpbench.errors import ConfigError
from gpbench.metrics import METRICS, better
from gpbench.papers.published import UNRANKED
from gpbench.records.record import Record
from gpbench.report.figures.rank_diagram import MAX_NAME


@dataclass(frozen=True)
class RankSection:
    """The methods under one protocol and precision, ranked by one metric.

    quick: whether runs of the quick preset are among these.
    data: values by data set, method and split, for site.js.
    ranking, names, notes: of the methods with the most data sets; the names are those of the diagram.
    settings: the settings of methods whose labels omit them.
    """

    title: str
    quick: bool
    data: dict[str, Any]
    ranking: Ranking
    names: Sequence[str]
    notes: Sequence[str]
    settings: Sequence[str]


def rank_sections(records: Sequence[Record]) -> list[RankSection]:
    """A section for each protocol, precision and metric by which two methods can be ranked on two data sets."""
    groups: dict[tuple, list[Record]] = {}
    for record in records:
        groups.setdefault((record.protocol, record.precision or ""), []).append(record)
    sections = []
    for (protocol, precision), group in groups.items():
        cells = group_runs(group, by_preset=False)
        for metric in (name for name in METRICS if any(name in record.metrics for record in group)):
            title = f"{metric}, protocol {protocol}, {precision}".removesuffix(", ")
            if section := _section(cells, metric, title):
                sections.append(section)
    return sections


def _section(cells: Sequence[CellRuns], metric: str, title: str) -> RankSection | None:
    cells = [cell for cell in cells if cell.dataset not in UNRANKED]
    n_datasets = Counter(method_of(cell) for cell in cells if by_split(cell, metric))
    cells = [cell for cell in cells if n_datasets[method_of(cell)] > 1]  # one data set ranks nothing
    table = by_dataset(cells, metric)
    count = Counter(name for row in table.values() for name in row)
    most = {name for name in count if count[name] == max(count.values())}
    default = {dataset: {name: row[name] for name in row if name in most} for dataset, row in table.items()}
    diverged = diverged_runs(cells)
    try:
        ranking = rank_table(default, metric, diverged=diverged)
    except ConfigError:
        return None
    labelled = [(name, cell) for name, cell in zip(labels(cells), cells) if name in count]
    quick = sorted({name for name, cell in labelled if "quick" in cell.preset})
    pairs = [(name, *method_of(cell)) for name, cell in labelled]
    settings = sorted({f"{name} {label}" for name, method, label in pairs if name == method and label})
    names = [shorten(name, MAX_NAME, placeholder=" …") for name in ranking.methods]
    data = {
        "metric": metric,
        "higher": better(metric) == "higher",
        "quantiles": [nemenyi_quantile(k) for k in range(2, len(count) + 1)],
        "methods": list(count),
        "default": [name in most for name in count],
        "quick": quick,
        "diverged": [(*key, n) for key, n in diverged.items()],
        "datasets": table,
    }
    imported = imported_note(record for cell in cells for record in cell.records)
    notes = [*ranking_notes(ranking), *filter(None, [imported])]
    return RankSection(title, bool(quick), data, ranking, names, notes, settings)
