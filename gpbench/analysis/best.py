"""Which methods have the best scores on data like these, and which differences the recorded runs show.

All runs have one protocol, and their test rows were held out.  The names of the steps are those of `Comparison`.

1. A *method* is the name of a method with its setting; a *data set* is one of its outputs and split sets.  The value of
   a method on a split is the mean of the metric over seeds, without diverged runs and those for which it is undefined.
2. On each data set, the methods that count have at least half as many splits with a value as the method with the most.
   The *richest* data set has the most names of methods among them, then the most methods, then the first name.  The
   data sets that count have at least half of its methods.  *Ranked* are the methods that count on each of these.
3. Means and tests are over the splits that all ranked methods have, data set by data set; a data set without any is
   left out.  The average rank of a method is the mean over data sets of the rank of its mean, 1 for the best; equal
   means share their average rank.  The *leader* is the method with the lowest average rank, then, among equals, the
   first by name.
4. On each data set every pair of ranked methods has the corrected resampled t test of the differences on these splits
   (`statistics.paired_t_test`, n_test / n_train the larger of both), and Holm's correction over all pairs of the data
   set: the leader was found by the same numbers, so that pairs without it count too.  The interval of a difference is
   that of one test, at 95 %.
5. On two and more data sets, every pair has Wilcoxon's signed-rank test of the means over data sets with Holm's
   correction (`rank_tests.wilcoxon_holm`), unless outputs or split sets of one data set are among them, which are not
   independent.

With one data set a difference from the leader is shown where step 4 has p < 0.05, with several where step 5 has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.analysis.method_settings import method_of, row_names
from gpbench.analysis.rank_tests import average_ranks, rounded, smallest_wilcoxon_holm, wilcoxon_holm
from gpbench.analysis.statistics import LEVEL, TTest, common_splits, holm, largest_ratio, mean_stderr, paired_t_test
from gpbench.errors import AbsentError
from gpbench.metrics import ranking_direction
from gpbench.papers.published import UNRANKED
from gpbench.records.absences import absences
from gpbench.records.record import Record

_HALF = 0.5
"""Share of the most splits, and of the most methods, from which a method or a data set counts."""

Table = Mapping[str, Mapping[str, CellRuns]]
"""Cells by data set and method."""


@dataclass(frozen=True)
class Score:
    """A ranked method on one data set."""

    mean: float  # mean over the common splits
    corrected_stderr: float | None
    seconds: float | None  # mean seconds of training over these splits; None where they were not recorded
    minus_leader: TTest | None  # test of the differences from the leader; None for the leader
    p: float | None  # its p-value after Holm's correction over all pairs; None without a test
    diverged: int  # number of diverged runs, which are in no mean
    undefined: Mapping[str, int]  # numbers of other runs without a value, by reason


@dataclass(frozen=True)
class Comparison:
    """The ranked methods of some data sets, best first."""

    metric: str
    direction: str  # "lower" or "higher"
    average: Mapping[str, float]  # average ranks by method
    scores: Mapping[str, Mapping[str, Score]]  # scores by method and data set
    splits: Mapping[str, Sequence[int]]  # common splits by data set
    sizes: Mapping[str, int]  # rows by data set
    p: Mapping[str, float]
    smallest_p: float | None  # the smallest p-value that this test can give; None without a test
    unranked: Mapping[str, str]  # methods that are not ranked, with the reason
    left_out: Mapping[str, str]  # data sets that do not count, with the reason
    records: Sequence[Record]  # records of the ranked methods

    @property
    def leader(self) -> str:
        """The method with the lowest average rank."""
        return next(iter(self.average))

    @property
    def datasets(self) -> list[str]:
        """The data sets that count."""
        return list(self.splits)

    @property
    def worse(self) -> list[str]:
        """The methods that are shown to be worse than the leader."""
        return [name for name in self.average if name != self.leader and self.verdict(name) == "worse"]

    def verdict(self, method: str) -> str:
        """What is shown of a method against the leader: "worse", "better" or "open"."""
        if len(self.datasets) == 1:
            return self.verdict_on(method, self.datasets[0])
        if self.p.get(method, 1.0) >= LEVEL:
            return "open"
        return "worse" if self.average[method] > self.average[self.leader] else "better"

    def verdict_on(self, method: str, dataset: str) -> str:
        """The same on one data set."""
        score = self.scores[method][dataset]
        if score.minus_leader is None or score.p is None or score.p >= LEVEL:
            return "open"
        return "worse" if (score.minus_leader.mean > 0) == (self.direction == "lower") else "better"


def rows_of(record: Record) -> int:
    """The rows of a run's data: training and test rows; 0 where they were not recorded."""
    return (record.train_rows or 0) + (record.test_rows or 0)


def is_held_out(record: Record) -> bool:
    """True where no test row was a training row; splits by 8-bit row numbers mix them."""
    return record.held_out is not False and "int8" not in (record.split_set or "")


def comparison(records: Iterable[Record], metric: str, seconds: float | None = None) -> Comparison:
    """Compares the methods of records, which have one task and one protocol, as the module describes.  Raises
    AbsentError: no data set has two methods with the metric; ConfigError: neither a lower nor a higher value of the
    metric is better.
    """
    usable = [record for record in records if is_held_out(record)]
    direction = ranking_direction(metric, usable)
    table = _table(usable)
    left_out = {name: reason for name in table if (reason := UNRANKED.get(name.partition(" ")[0]))}
    table = {name: cells for name, cells in table.items() if name not in left_out}
    values = {d: {m: by_split(cell, metric) for m, cell in cells.items()} for d, cells in table.items()}
    counting = {d: _counting(of_method) for d, of_method in values.items()}
    richest = min(counting, key=lambda d: (*_richness(table[d], counting[d]), d), default="")
    common = {d: len({*methods} & {*counting[richest]}) for d, methods in counting.items()}
    most = common.get(richest, 0)
    if most < 2:
        raise AbsentError(f"no data set of these has held-out runs of two methods with {metric}")
    datasets = [d for d, n in common.items() if n >= max(2, _HALF * most)]  # one method alone has no rank
    left_out |= {d: f"{common[d]} of the {most} methods of {richest}" for d in table if d not in datasets}
    methods = sorted({m for d in datasets for m in table[d]})
    unranked = {m: reason for m in methods if (reason := _reason(m, datasets, table, values, counting, seconds))}
    ranked = [m for m in methods if m not in unranked]
    splits = {d: shared for d in datasets if (shared := common_splits(values[d][m] for m in ranked))}
    if len(ranked) < 2 or not splits:
        raise AbsentError(
            f"fewer than two methods have {metric} on common splits of {', '.join(datasets)}; choose other data"
        )
    left_out |= dict.fromkeys((d for d in datasets if d not in splits), "no split in common")
    datasets = [*splits]
    means = np.array([[fmean(values[d][m][split] for split in splits[d]) for m in ranked] for d in datasets])
    average = _average_ranks(means, direction)
    order = sorted(range(len(ranked)), key=lambda i: (average[i], ranked[i]))
    independent = len({d.partition(" ")[0] for d in datasets}) == len(datasets) > 1
    over_datasets = wilcoxon_holm(rounded(means)) if independent else None
    leader = ranked[order[0]]
    scores = {d: _scores(metric, ranked, leader, table[d], values[d], splits[d]) for d in datasets}
    return Comparison(
        metric=metric,
        direction=direction,
        average={ranked[i]: average[i] for i in order},
        scores={ranked[i]: {d: scores[d][ranked[i]] for d in datasets} for i in order},
        splits=splits,
        sizes={d: max(rows_of(r) for m in ranked for r in table[d][m].records) for d in datasets},
        p={} if over_datasets is None else {ranked[i]: float(over_datasets[i, order[0]]) for i in order[1:]},
        smallest_p=smallest_wilcoxon_holm(len(datasets), len(ranked)) if independent else None,
        unranked=unranked,
        left_out=left_out,
        records=[record for d in datasets for m in ranked for record in table[d][m].records],
    )


def _table(records: Sequence[Record]) -> Table:
    """The cells by data set and method."""
    cells = group_runs(records)
    table: dict[str, dict[str, CellRuns]] = {}
    for name, cell in zip(row_names(cells), cells):
        table.setdefault(name, {})[" ".join(method_of(cell)).rstrip()] = cell
    return table


def _counting(values: Mapping[str, Mapping[int, float]]) -> list[str]:
    """The methods with at least half as many splits as the method with the most."""
    most = max(map(len, values.values()), default=0)
    return [method for method, by_split in values.items() if by_split and len(by_split) >= _HALF * most]


def _richness(cells: Mapping[str, CellRuns], methods: Sequence[str]) -> tuple[int, int]:
    """Minus the numbers of names of methods and of methods."""
    return -len({cells[method].method for method in methods}), -len(methods)


def _reason(
    method: str,
    datasets: Sequence[str],
    table: Table,
    values: Mapping[str, Mapping[str, Mapping[int, float]]],
    counting: Mapping[str, Sequence[str]],
    seconds: float | None,
) -> str:
    """Why a method is not ranked; "" where it is."""
    absent = [d for d in datasets if method not in table[d]]
    if absent:
        return "not run on " + ", ".join(absent)
    few = [d for d in datasets if method not in counting[d]]
    if few:
        counts = [
            f"{d} ({len(values[d][method])} of {max(map(len, values[d].values()))}"
            + (f", {n} diverged)" if (n := table[d][method].diverged) else ")")
            for d in few
        ]
        return "too few splits of " + ", ".join(counts)
    if seconds is not None:
        times = {d: _seconds(table[d][method], values[d][method]) for d in datasets}
        if unknown := [d for d, time in times.items() if time is None]:
            return "seconds not recorded on " + ", ".join(unknown)
        if slow := [f"{d} ({time:,.0f} s)" for d, time in times.items() if time is not None and time > seconds]:
            return "slower on " + ", ".join(slow)
    return ""


def _scores(
    metric: str,
    methods: Sequence[str],
    leader: str,
    cells: Mapping[str, CellRuns],
    values: Mapping[str, Mapping[int, float]],
    splits: Sequence[int],
) -> dict[str, Score]:
    """The scores of these methods on one data set."""
    tests: dict[tuple[str, str], TTest] = {}
    for i, a in enumerate(methods):
        for b in methods[i + 1 :]:
            first, second = (b, a) if a == leader else (a, b)  # differences from the leader
            differences = [values[first][split] - values[second][split] for split in splits]
            ratio = largest_ratio([cells[first].ratio, cells[second].ratio])
            tests[first, second] = paired_t_test(differences, ratio)
    possible = {pair: test.p for pair, test in tests.items() if test.p is not None}
    adjusted = dict(zip(possible, holm([*possible.values()])))
    scores = {}
    for method in methods:
        mean, plain = mean_stderr([values[method][split] for split in splits])
        ratio, pair = cells[method].ratio, (method, leader)
        scores[method] = Score(
            mean=mean,
            corrected_stderr=None if plain is None or ratio is None else plain * (1 + len(splits) * ratio) ** 0.5,
            seconds=_seconds(cells[method], splits),
            minus_leader=tests.get(pair),
            p=adjusted.get(pair),
            diverged=cells[method].diverged,
            undefined=absences(cells[method].records, metric),
        )
    return scores


def _average_ranks(means: np.ndarray, direction: str) -> list[float]:
    values = rounded(means)
    return list(map(float, average_ranks(values if direction == "lower" else -values).mean(axis=0)))


def _seconds(cell: CellRuns, splits: Iterable[int]) -> float | None:
    """The mean seconds of training on these splits; None where a split has none."""
    times = by_split(cell, "seconds")
    seconds = [times.get(split) for split in splits]
    return None if None in seconds else fmean(time for time in seconds if time is not None)
