"""Average ranks of methods over data sets, with tests of their differences (Demšar 2006, section 3)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpbench.analysis import statistics as tests
from gpbench.analysis.comparison import Comparison
from gpbench.analysis.grouping import gather
from gpbench.analysis.provenance import facts_of, imported_note
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.statistics import LEVEL, common_splits
from gpbench.errors import ConfigError
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
