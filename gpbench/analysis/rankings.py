"""Average ranks of methods over data sets, with tests of their differences (Demšar 2006, section 3)."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpbench.analysis import statistics as tests
from gpbench.analysis.agreement import answer_text
from gpbench.analysis.cells import CellRuns, Entry
from gpbench.analysis.comparison import LEAKED_MARK, Comparison, cells_notes, main_names, with_metric
from gpbench.analysis.experiment import by_dataset, facts, missing_line
from gpbench.analysis.grouping import gather
from gpbench.analysis.provenance import LEAKED, facts_of, imported_note, seconds_lines
from gpbench.analysis.sheets import Grid, Sheet, Text
from gpbench.analysis.statistics import LEVEL, common_splits
from gpbench.errors import ConfigError
from gpbench.experiments.definition import Experiment
from gpbench.experiments.plan import Cell, preset_lines
from gpbench.metrics import Metric, find, ranking_direction
from gpbench.papers.published import UNRANKED
from gpbench.records.record import Record

_NAMED = 4  # largest number of absent methods that a note names


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Methods by their average rank over data sets; each output and split set of a data set counts."""

    metric: str
    methods: tuple[str, ...]  # names of the methods, best first
    average: tuple[float, ...]  # their average ranks, 1 is best
    datasets: tuple[str, ...] = ()  # names of the data sets
    left_out: tuple[str, ...] = ()  # data sets that do not count, with the reason
    diverged: tuple[str, ...] = ()  # data sets and methods whose means lack diverged runs, with their number
    undefined: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()  # lines on what weakens the comparison
    statistic: float  # Friedman's chi-square, corrected for ties
    p: float  # its p-value
    critical: float  # Nemenyi's critical difference at 5 %
    groups: tuple[tuple[int, int], ...]
    known: Metric | None = None  # the metric with unit and direction; None for the objective

    @property
    def standings(self) -> list[tuple[str, float, str]]:
        """Methods, average ranks, and marks: "best" for the first, "tied" for those of its group, "" for the others."""
        last = max((last for first, last in self.groups if first == 0), default=0)
        marks = ["best", *["tied"] * last, *[""] * len(self.methods)]
        return list(zip(self.methods, self.average, marks))


def rank_table(compared: Comparison, caveats: Sequence[str] = ()) -> Ranking:
    """Ranks methods on their means over the splits that all of them have; ties share their average rank."""
    metric = compared.metric
    unranked = {dataset: reason for dataset in compared.values if (reason := UNRANKED.get(dataset.partition(" ")[0]))}
    table = {dataset: row for dataset, row in compared.values.items() if dataset not in unranked}
    names = list(dict.fromkeys(name for row in table.values() for name in row))
    if len(names) < 2:
        raise ConfigError(f"ranks need at least two methods with {metric}; there is {' '.join(names) or 'none'}")
    splits: dict[str, list[int]] = {}
    left_out = [*dict.fromkeys(unranked.values())]
    for dataset, row in table.items():
        if absent := [name for name in names if name not in row]:
            some = [*absent[:_NAMED], *([f"{len(absent) - _NAMED} more"] if len(absent) > _NAMED else [])]
            left_out.append(f"{dataset} (without {', '.join(some)})")
        elif common := common_splits(row.values()):
            splits[dataset] = common
        else:
            left_out.append(f"{dataset} (no split in common)")
    undefined = _without_values(compared, table, names)
    left_out += [text for dataset, text in undefined if dataset not in table]
    rows = Counter(name.partition(" ")[0] for name in splits)
    if len(rows) < 2:
        needed = f"at least two data sets that all {len(names)} methods have; there is {next(iter(rows), 'none')}"
        raise ConfigError(f"ranks need {needed}; `gpbench rank` ranks fewer of them with --method and --setting")
    single = sum(len(common) == 1 for common in splits.values())
    several = ", ".join(f"{name} ({n})" for name, n in rows.items() if n > 1)
    dependent = f"outputs and split sets of one data set are not independent, which makes p too small: {several}"
    weak = {dependent: several, f"ranked on a single split: {single} of {sum(rows.values())}": single}
    direction = ranking_direction(metric, compared.records)
    values = tests.rounded(compared.means(splits, names))
    ranks = tests.average_ranks(values if direction == "lower" else -values)
    order = np.argsort(ranks.mean(axis=0), kind="stable")
    average, critical = ranks.mean(axis=0)[order], tests.critical_difference(*values.shape)
    statistic, p = tests.friedman(ranks)
    return Ranking(
        metric=metric,
        methods=tuple(names[k] for k in order),
        average=tuple(map(float, average)),
        datasets=(*splits,),
        left_out=(*left_out,),
        diverged=tuple(f"{m} on {d} ({n})" for (d, m), n in compared.diverged.items() if d in splits and m in names),
        undefined=tuple(text for dataset, text in undefined if dataset in splits),
        caveats=(*(text for text, applies in weak.items() if applies), *caveats),
        statistic=statistic,
        p=p,
        critical=critical,
        groups=tests.cliques(np.abs(average[:, None] - average) > critical - 1e-12),
        known=find(metric, compared.records),
    )


def _without_values(compared: Comparison, datasets: Mapping, names: Sequence[str]) -> list[tuple[str, str]]:
    """Data sets, with why runs on them have no value: all methods', or those of the ones that the text names."""
    items = (
        (d, name, counts) for (d, name), counts in compared.undefined.items() if name in names or d not in datasets
    )
    methods = gather(((dataset, reason), name) for dataset, name, counts in items for reason in counts)
    return [
        (dataset, f"{dataset}: {reason}" + ("" if {*names} <= {*some} else f" with {', '.join(some)}"))
        for (dataset, reason), some in methods.items()
    ]


def ranking_notes(ranking: Ranking, statistics: bool = True) -> list[str]:
    """Lines below a ranking: data sets, test with its statistics unless these are shown elsewhere, caveats."""
    friedman = f"Friedman chi-square {ranking.statistic:.2f}, p = {ranking.p:.2g}"
    is_void = ranking.p >= LEVEL and len(ranking.groups) != 1
    notes = {
        f"average rank over {len(ranking.datasets)} data sets (1 is best): {', '.join(ranking.datasets)}": True,
        f"{friedman}; critical difference {ranking.critical:.2f}": statistics,
        "groups: no significant difference within a group (Nemenyi's test, 5 %)": True,
        "p is that of the chi-square distribution, which is rough for ten data sets or fewer": len(ranking.datasets)
        <= 10,
        "Friedman's test finds no difference, so that groups of Nemenyi's test mean little": is_void,
    }
    lines = [*(line for line, applies in notes.items() if applies), *ranking.caveats]
    lost = {
        "left out": ranking.left_out,
        "diverged runs do not count": ranking.diverged,
        f"splits without {ranking.metric} do not count": ranking.undefined,
    }
    return [*lines, *(f"{name}: {'; '.join(texts)}" for name, texts in lost.items() if texts)]


def sheet(ranking: Ranking, records: Sequence[Record]) -> Sheet:
    """Makes the sheet of a ranking: each method with the last one below it that is not significantly different."""
    methods = ranking.methods
    last_of = lambda k: max((last for first, last in ranking.groups if first <= k <= last), default=k)
    reach = [methods[last_of(k)] for k in range(len(methods))]
    lines = list(zip(methods, ranking.average, reach))
    grid = Grid(
        f"average rank, {ranking.metric}",
        ("method", "average rank", "no significant difference down to"),
        tuple((method, f"{average:.3f}", last if last != method else "") for method, average, last in lines),
    )
    names = ("method", "average_rank", "no_significant_difference_to")
    rows = [dict(zip(names, line)) for line in lines]
    feet = [*ranking_notes(ranking), *filter(None, [imported_note(records)])]
    return Sheet(
        title=f"Average ranks of {len(methods)} methods over {len(ranking.datasets)} data sets by {ranking.metric}.",
        grids=[grid],
        remarks=feet,
        facts=facts_of(records),
        rows=rows,
    )


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
        answer="" if any(cell.missing for cell in planned) else answer_text(experiment, rows),
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
