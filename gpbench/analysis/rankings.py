"""Rankings of the methods of cells, and those of an experiment: all methods and sets of them, by each metric."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.analysis import answers
from gpbench.analysis.cells import CellRuns, Entry
from gpbench.analysis.comparison import LEAKED_MARK, Comparison, cells_notes, main_names, with_metric
from gpbench.analysis.experiment import by_dataset, facts, missing_line
from gpbench.analysis.grouping import gather
from gpbench.analysis.provenance import LEAKED, seconds_lines
from gpbench.analysis.ranks import Ranking, rank_table, ranking_notes
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.status import Cell, preset_lines
from gpbench.metrics import find

MAIN = "main"
"""Value of the option `settings` of figures, for one setting a method."""
ALL = "all methods"
"""Name of the set of all methods, which is ranked before the experiment's own sets."""


@dataclass(frozen=True)
class _SetRanking:
    """The ranking of a set of methods by one metric."""

    methods: str  # name of the set
    metric: str
    ranking: Ranking | None  # the ranking; None where the methods cannot be ranked
    problem: str = ""  # reason for that

    @property
    def name(self) -> str:
        return f"{self.methods} by {self.metric}"


def rankings(experiment: Experiment, planned: Sequence[Cell], options: Mapping[str, Any]) -> list[_SetRanking]:
    """Ranks the methods of a table or figure of kind `ranks`: for each metric all methods, then each set."""
    sets: dict[str, Sequence[str] | None] = {ALL: None, **options.get("sets", {})}
    rows = {metric: selected_rows(experiment, planned, options, metric) for metric in options["metrics"]}
    results = [_set_ranking(name, of_set, metric, rows[metric]) for metric in rows for name, of_set in sets.items()]
    if not any(result.ranking for result in results):
        raise ConfigError(f"{experiment.id}: {results[0].name}: {results[0].problem}")
    return results


def selected_rows(
    experiment: Experiment, planned: Sequence[Cell], options: Mapping[str, Any], metric: str
) -> Mapping[str, Mapping[str, Entry]]:
    """The entries of a metric by data set and name, of each method's main setting where the options say so."""
    rows = by_dataset(experiment, planned, options["label"], metric)
    if options.get("settings") != MAIN:
        return rows
    names = set(main_names((name, entry.cell) for row in rows.values() for name, entry in row.items()).values())
    return {dataset: {name: row[name] for name in row if name in names} for dataset, row in rows.items()}


def shared_notes(results: Sequence[_SetRanking]) -> list[str]:
    """The notes of these rankings without statistics, each once, after those that have it unless all do."""
    notes_of = lambda r: ranking_notes(r.ranking, statistics=False) if r.ranking else [r.problem]
    by_note = gather((note, result) for result in results for note in notes_of(result))

    def names(group: Sequence[_SetRanking]) -> str:
        sets = {r.methods for r in group if all(other in group for other in results if other.methods == r.methods)}
        return ", ".join(dict.fromkeys(r.methods if r.methods in sets else r.name for r in group))

    return [note if len(group) == len(results) else f"{names(group)}: {note}" for note, group in by_note.items()]


def table(experiment: Experiment, preset: str, planned: Sequence[Cell]) -> Sheet:
    """The sheet of a table of kind `ranks`: average ranks by method and set, a grid for each metric."""
    results = rankings(experiment, planned, experiment.table)
    by_metric = [(metric, list(group)) for metric, group in itertools.groupby(results, lambda result: result.metric)]
    records = [record for cell in planned for record in cell.records]
    timed = seconds_lines(records) if any(metric == "seconds" for metric, _ in by_metric) else []
    rows = [row for result in results if result.ranking for row in _rows(result, result.ranking)]
    return Sheet(
        title=experiment.title,
        name=experiment.id,
        answer="" if any(cell.missing for cell in planned) else answers.answer(experiment, rows),
        summary=[*preset_lines(planned, preset), *missing_line(experiment, preset, planned)],
        grids=[_grid(metric, group) for metric, group in by_metric],
        marks={"best": "best of its set", "tied": "not significantly different from the best of its set"},
        remarks=[*shared_notes(results), *timed],
        facts=facts(experiment, preset, planned),
        rows=rows,
    )


def ranking(cells: Sequence[CellRuns], metric: str, notes: Sequence[str] = ()) -> Ranking:
    """Ranks the methods of these cells; each setting of a method is a method."""
    timed = seconds_lines(record for cell in cells for record in cell.records) if metric == "seconds" else []
    cells = with_metric(cells, metric)
    return rank_table(Comparison.of_settings(cells, metric), [*cells_notes(cells), *notes, *timed])


def _set_ranking(
    name: str, members: Sequence[str] | None, metric: str, rows: Mapping[str, Mapping[str, Entry]]
) -> _SetRanking:
    cells = {
        (entry.cell.dataset, method): entry.cell
        for row in rows.values()
        for method, entry in row.items()
        if members is None or entry.cell.method in members
    }
    leaked = {method for (_, method), cell in cells.items() if not cell.held_out}
    marked = lambda method: method + LEAKED_MARK if method in leaked else method
    cells = {(dataset, marked(method)): cell for (dataset, method), cell in cells.items()}
    compared = Comparison.from_cells(cells, metric)
    others = [method for method in dict.fromkeys(method for _, method in cells) if method not in compared.methods]
    caveats = [f"not ranked, without runs: {', '.join(others)}"] if others else []
    caveats += [LEAKED] if leaked else []
    try:
        return _SetRanking(name, metric, rank_table(compared, caveats=caveats))
    except ConfigError as error:
        return _SetRanking(name, metric, None, str(error))


_STATISTICS = ("data sets", "Friedman's p", "critical difference")


def _grid(metric: str, group: Sequence[_SetRanking]) -> Grid:
    """The average ranks by set with their marks, and the statistics of each set below."""
    ranked = [result.ranking for result in group if result.ranking]
    methods = dict.fromkeys(method for ranking in ranked for method in ranking.methods)
    columns = [_column(result.ranking) if result.ranking else {} for result in group]
    known = ranked[0].known if ranked else find(metric)
    return Grid(
        f"average rank, {known.heading if known else metric}",
        ("method", *(result.methods for result in group)),
        tuple((name, *(column.get(name, "") for column in columns)) for name in (*methods, *_STATISTICS)),
    )


def _column(ranking: Ranking) -> dict[str, Text]:
    numbers = map(Text, (str(len(ranking.datasets)), f"{ranking.p:.2g}", f"{ranking.critical:.2f}"))
    standings = {name: Text(f"{average:.2f}", mark) for name, average, mark in ranking.standings}
    return standings | dict(zip(_STATISTICS, numbers))


def _rows(result: _SetRanking, ranking: Ranking) -> list[dict]:
    return [
        {
            "methods": result.methods,
            "metric": result.metric,
            "method": method,
            "average_rank": average,
            "n_datasets": len(ranking.datasets),
            "friedman_p": ranking.p,
            "critical_difference": ranking.critical,
            "mark": mark or None,
        }
        for method, average, mark in ranking.standings
    ]
