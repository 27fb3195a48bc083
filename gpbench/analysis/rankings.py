"""The rankings of an experiment: of all of its methods and of sets of them, by each metric, and their table."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.analysis.cells import LEAKED, Entry
from gpbench.analysis.experiment import by_dataset
from gpbench.analysis.formats import Grid, Marks, Sheet
from gpbench.analysis.provenance import provenance_footer, seconds_lines
from gpbench.analysis.ranks import Ranking, rank_table, ranking_notes
from gpbench.analysis.tables import title
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, absent, preset_line

ALL = "all methods"
"""The set of all methods, which is ranked before the experiment's own sets."""


@dataclass(frozen=True)
class SetRanking:
    """The ranking of one set of methods by one metric; None with the `problem` where they cannot be ranked."""

    methods: str
    metric: str
    ranking: Ranking | None
    problem: str = ""

    @property
    def name(self) -> str:
        """What is ranked, and by what."""
        return f"{self.methods} by {self.metric}"


def rankings(experiment: Experiment, planned: Sequence[Cell], options: Mapping[str, Any]) -> list[SetRanking]:
    """The rankings of a table or figure of kind `ranks`: for each metric all methods, then each set.

    Args:
        experiment: whose labels name the methods.
        planned: its cells with their records.
        options: `label`, the keys whose values name a method; `metrics`; and optionally `sets`, lists of methods.

    Raises ConfigError, that of the first, where none of them is possible (see `rank_table`).
    """
    sets: dict[str, Sequence[str] | None] = {ALL: None, **options.get("sets", {})}
    of = []
    for metric in options["metrics"]:
        rows = by_dataset(experiment, planned, options["label"], metric)
        of += [_set_ranking(name, members, metric, rows) for name, members in sets.items()]
    if not any(cell.records for cell in planned):
        raise ConfigError(f"nothing is recorded of {experiment.id}; make it with gpbench reproduce {experiment.id}")
    if not any(one.ranking for one in of):
        raise ConfigError(f"{experiment.id}: {of[0].name}: {of[0].problem}")
    return of


def shared_notes(of: Sequence[SetRanking]) -> list[str]:
    """The notes of these rankings without their test statistics, each once, after the rankings unless all have it."""
    having: dict[str, list[SetRanking]] = {}
    for one in of:
        for note in ranking_notes(one.ranking, statistics=False) if one.ranking else [one.problem]:
            having.setdefault(note, []).append(one)

    def names(some: Sequence[SetRanking]) -> str:
        whole = {one.methods for one in some if all(other in some for other in of if other.methods == one.methods)}
        return ", ".join(dict.fromkeys(one.methods if one.methods in whole else one.name for one in some))

    return [note if len(some) == len(of) else f"{names(some)}: {note}" for note, some in having.items()]


def table(experiment: Experiment, preset: str, planned: Sequence[Cell], marks: Marks) -> Sheet:
    """The table of kind `ranks` of an experiment: average ranks by method and set, a grid for each metric.

    The best of each set is marked, and those that are not significantly different from it.  Raises as `rankings`.
    """
    assert experiment.table is not None
    of = rankings(experiment, planned, experiment.table)
    by_metric = [(metric, list(group)) for metric, group in itertools.groupby(of, lambda one: one.metric)]
    records = [record for cell in planned for record in cell.records]
    heads = [experiment.title, preset_line(planned, preset, experiment.presets.get(preset, "")), absent(planned)]
    legend = f"{marks.on('best', 'best')} of its set; {marks.on('tied', 'tied')}: not significantly different from it"
    timed = seconds_lines(records) if any(metric == "seconds" for metric, _ in by_metric) else []
    return Sheet(
        heads=[*filter(None, heads)],
        grids=[_grid(metric, group, marks) for metric, group in by_metric],
        feet=[legend, *shared_notes(of), *timed, *provenance_footer(records)],
        rows=[row for one in of if one.ranking for row in _rows(one, one.ranking)],
    )


def _set_ranking(
    name: str, members: Sequence[str] | None, metric: str, rows: Mapping[str, Mapping[str, Entry]]
) -> SetRanking:
    chosen = {
        (entry.cell.dataset, method): entry
        for row in rows.values()
        for method, entry in row.items()
        if members is None or entry.cell.method in members
    }
    values: dict[str, dict[str, Mapping[int, float]]] = {dataset: {} for dataset, _ in chosen}
    for (dataset, method), entry in chosen.items():
        if entry.values:
            values[dataset][method] = entry.values
    diverged = {place: entry.diverged for place, entry in chosen.items() if entry.diverged}
    ranked = {method for row in values.values() for method in row}
    others = [method for method in dict.fromkeys(method for _, method in chosen) if method not in ranked]
    caveats = [f"not ranked, without runs: {', '.join(others)}"] * bool(others)
    caveats += [LEAKED] * any(not entry.cell.held_out for entry in chosen.values())
    try:
        return SetRanking(name, metric, rank_table(values, metric, diverged=diverged, caveats=caveats))
    except ConfigError as error:
        return SetRanking(name, metric, None, str(error))


def _grid(metric: str, group: Sequence[SetRanking], marks: Marks) -> Grid:
    possible = [one.ranking for one in group if one.ranking]
    methods = dict.fromkeys(method for ranking in possible for method in ranking.methods)
    columns = [_column(one.ranking, marks) if one.ranking else {} for one in group]
    names = [*methods, *_STATISTICS]
    return Grid(
        f"average rank, {title(metric)}",
        ("method", *(one.methods for one in group)),
        tuple((name, *(column.get(name, "") for column in columns)) for name in names),
    )


_STATISTICS = ("data sets", "Friedman's p", "critical difference")


def _column(ranking: Ranking, marks: Marks) -> dict[str, str]:
    """The texts of one set by row: average ranks with their marks, then the statistics."""
    ranks = {
        method: marks.on(f"{average:.2f}", mark)
        for method, average, mark in zip(ranking.methods, ranking.average, _marks(ranking))
    }
    numbers = (str(len(ranking.datasets)), f"{ranking.p:.2g}", f"{ranking.critical:.2f}" if ranking.critical else "")
    return ranks | dict(zip(_STATISTICS, numbers))


def _marks(ranking: Ranking) -> list[str]:
    """ "best" for the first method, "tied" for those of its group, "" for the others."""
    last = max((last for first, last in ranking.groups if first == 0), default=0)
    return ["best" if k == 0 else "tied" if k <= last else "" for k in range(len(ranking.methods))]


def _rows(one: SetRanking, ranking: Ranking) -> list[dict]:
    return [
        {
            "methods": one.methods,
            "metric": one.metric,
            "method": method,
            "average_rank": average,
            "n_datasets": len(ranking.datasets),
            "friedman_p": ranking.p,
            "critical_difference": ranking.critical,
            "mark": mark or None,
        }
        for method, average, mark in zip(ranking.methods, ranking.average, _marks(ranking))
    ]
