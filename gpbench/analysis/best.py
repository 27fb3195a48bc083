"""The methods with the best scores on data like these, and the differences that the recorded runs show.

All runs have one protocol, and their test rows were held out.  The names of the steps are those of `BestMethods`.

1. A *method* has its main setting (`comparison.RULE`); a *data set* is one of its outputs and split sets.  The value of
   a method on a split is the mean of the metric over seeds, without diverged runs and those for which it is undefined.
2. On each data set, the methods that count have at least half as many splits with a value as the method with the most.
   The *richest* data set has the most of them, then the first name.  The data sets that count have at least half of its
   methods.  *Ranked* are the methods that count on each of these.
3. Means and tests are over the splits that all ranked methods have, data set by data set; a data set without any is
   left out.  The average rank of a method is the mean over data sets of the rank of its mean, 1 for the best; equal
   means share their average rank.  The *leader* is the method with the lowest average rank, then, among equals, the
   first by name.
4. On each data set every ranked method has the corrected resampled t test of the differences from the leader on these
   splits (`statistics.paired_t_test`, n_test / n_train the larger of both).  Intervals are of one test, at 95 %.
5. On data sets of six families and more, it has the test of boards of the share of others beaten (`board.Board`), where
   the data sets of a family, outputs and split sets count as one.

P-values are one-sided, and corrected over the K - 1 differences from the leader (Bonferroni).  Below 0.05, by step 4
with one data set, by step 5 with several, a method is shown to be worse: not the best, whichever method leads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from gpbench.analysis import statistics as tests
from gpbench.analysis.board import FEWEST, Board
from gpbench.analysis.cells import CellRuns, by_split, group_runs
from gpbench.analysis.comparison import Comparison, main_names, method_of, row_names, with_metric
from gpbench.analysis.statistics import LEVEL, TTest, common_splits, mean_stderr
from gpbench.errors import AbsentError
from gpbench.metrics import ranking_direction
from gpbench.papers.published import UNRANKED
from gpbench.records.absences import absences
from gpbench.records.record import Record

_HALF = 0.5  # share of the most splits, and of the most methods, from which a method or a data set counts


@dataclass(frozen=True)
class Score:
    """A ranked method on one data set."""

    mean: float  # mean over the common splits
    corrected_stderr: float | None
    seconds: float | None  # mean seconds of training over these splits; None where they were not recorded
    minus_leader: TTest | None  # test of the differences from the leader; None for the leader
    p: float | None  # its corrected one-sided p-value; None without a test
    diverged: int  # number of diverged runs, which are in no mean
    undefined: Mapping[str, int]  # numbers of other runs without a value, by reason


@dataclass(frozen=True)
class BestMethods:
    """The ranked methods of some data sets, best first."""

    metric: str
    direction: str  # "lower" or "higher"
    average: Mapping[str, float]  # average ranks by method
    scores: Mapping[str, Mapping[str, Score]]  # scores by method and data set
    splits: Mapping[str, Sequence[int]]  # common splits by data set
    sizes: Mapping[str, int]  # rows by data set
    p: Mapping[str, float]  # corrected one-sided p-values over data sets, by method
    families: int  # families of data sets
    unranked: Mapping[str, str]  # methods that are not ranked, with the reason
    left_out: Mapping[str, str]  # data sets that do not count, with the reason
    records: Sequence[Record]  # records of the ranked methods

    @property
    def leader(self) -> str:
        """The method with the lowest average rank."""
        return next(iter(self.average))

    @property
    def datasets(self) -> list[str]:
        return list(self.splits)

    @property
    def worse(self) -> list[str]:
        """The methods that are shown to be worse than the leader."""
        return [name for name in self.average if name != self.leader and self.verdict(name) == "worse"]

    def verdict(self, method: str) -> str:
        """How a method is shown to be against the leader: "worse", "better" or "open"."""
        if len(self.datasets) == 1:
            return self.verdict_on(method, self.datasets[0])
        if self.p.get(method, 1.0) >= LEVEL:
            return "open"
        return "worse" if self.average[method] > self.average[self.leader] else "better"

    def verdict_on(self, method: str, dataset: str) -> str:
        """The verdict on one data set."""
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


def best_methods(records: Iterable[Record], metric: str, seconds: float | None = None) -> BestMethods:
    """Compares the methods of records, which have one task and one protocol, as the module describes."""
    usable = [record for record in records if is_held_out(record)]
    direction = ranking_direction(metric, usable)
    cells = with_metric(group_runs(usable), metric)
    main = main_names((method_of(cell)[1], cell) for cell in cells)
    cells = [cell for cell in cells if main[cell.method] == method_of(cell)[1]]
    keys = ((row, " ".join(method_of(cell)).rstrip()) for row, cell in zip(row_names(cells), cells))
    compared = Comparison.from_cells(dict(zip(keys, cells)), metric)
    left_out = {d: reason for d in compared.values if (reason := UNRANKED.get(d.partition(" ")[0]))}
    tables = {d: row for d, row in compared.values.items() if d not in left_out}
    most_splits = {d: max(map(len, row.values()), default=0) for d, row in tables.items()}
    # those with at least half as many splits as the method with the most
    counting = {d: [m for m in row if len(row[m]) >= _HALF * most_splits[d]] for d, row in tables.items()}
    richest = min(counting, key=lambda dataset: (-len(counting[dataset]), dataset), default="")
    common = {d: len({*methods} & {*counting[richest]}) for d, methods in counting.items()}
    most = common.get(richest, 0)
    if most < 2:
        raise AbsentError(f"no data set of these has held-out runs of two methods with {metric}")
    datasets = [d for d, n in common.items() if n >= max(2, _HALF * most)]  # one method alone has no rank
    left_out |= {d: f"{common[d]} of the {most} methods of {richest}" for d in counting if d not in datasets}
    methods = sorted({method for d, method in compared.cells if d in datasets})
    unranked = {m: reason for m in methods if (reason := _reason(compared, m, datasets, counting, seconds))}
    ranked = [m for m in methods if m not in unranked]
    splits = {d: shared for d in datasets if (shared := common_splits(compared.values[d][m] for m in ranked))}
    if len(ranked) < 2 or not splits:
        common_to = f"on common splits of {', '.join(datasets)}"
        raise AbsentError(f"fewer than two methods have {metric} {common_to}; choose other data")
    left_out |= dict.fromkeys((d for d in datasets if d not in splits), "no split in common")
    means = tests.rounded(compared.means(splits, ranked))
    average = tests.average_ranks(means if direction == "lower" else -means).mean(axis=0)
    order = sorted(range(len(ranked)), key=lambda i: (average[i], ranked[i]))
    board = Board.of_values(means if direction == "lower" else -means, [*splits])
    p = np.minimum(1.0, np.minimum(board.p, board.p.T)[order[0]] * (len(ranked) - 1))
    scores = {d: _scores(compared, d, ranked, ranked[order[0]], common) for d, common in splits.items()}
    return BestMethods(
        metric=metric,
        direction=direction,
        average={ranked[i]: float(average[i]) for i in order},
        scores={ranked[i]: {d: scores[d][ranked[i]] for d in splits} for i in order},
        splits=splits,
        sizes={d: max(rows_of(r) for m in ranked for r in compared.cells[d, m].records) for d in splits},
        p={ranked[i]: float(p[i]) for i in order[1:]} if board.shares.shape[1] >= FEWEST else {},
        families=board.shares.shape[1],
        unranked=unranked,
        left_out=left_out,
        records=[record for d in splits for m in ranked for record in compared.cells[d, m].records],
    )


def _reason(
    compared: Comparison, method: str, sets: Sequence[str], counting: Mapping[str, Sequence[str]], seconds: float | None
) -> str:
    """Why a method is not ranked; "" where it is."""
    if absent := [d for d in sets if (d, method) not in compared.cells]:
        return "not run on " + ", ".join(absent)
    cells, values = {d: compared.cells[d, method] for d in sets}, compared.values
    if few := [d for d in sets if method not in counting[d]]:
        counts = [f"{len(values[d].get(method, ()))} of {max(map(len, values[d].values()))}" for d in few]
        diverged = [f", {cells[d].diverged} diverged" if cells[d].diverged else "" for d in few]
        return "too few splits of " + ", ".join(f"{d} ({n}{lost})" for d, n, lost in zip(few, counts, diverged))
    if seconds is not None:
        times = {d: _seconds(cell, values[d][method]) for d, cell in cells.items()}
        if unknown := [d for d, time in times.items() if time is None]:
            return "seconds not recorded on " + ", ".join(unknown)
        if slow := [f"{d} ({time:,.0f} s)" for d, time in times.items() if time is not None and time > seconds]:
            return "slower on " + ", ".join(slow)
    return ""


def _scores(
    compared: Comparison, dataset: str, methods: Sequence[str], leader: str, splits: Sequence[int]
) -> dict[str, Score]:
    scores = {}
    for method in methods:
        cell = compared.cells[dataset, method]
        ratio, test = cell.ratio, None if method == leader else compared.test(dataset, method, leader, splits)
        mean, plain = mean_stderr([compared.values[dataset][method][split] for split in splits])
        scores[method] = Score(
            mean=mean,
            corrected_stderr=None if plain is None or ratio is None else plain * (1 + len(splits) * ratio) ** 0.5,
            seconds=_seconds(cell, splits),
            minus_leader=test,
            p=None if test is None or test.p is None else min(1.0, test.p / 2 * (len(methods) - 1)),
            diverged=cell.diverged,
            undefined=absences(cell.records, compared.metric),
        )
    return scores


def _seconds(cell: CellRuns, splits: Iterable[int]) -> float | None:
    """The mean seconds of training on these splits; None where a split has none."""
    times = by_split(cell, "seconds")
    seconds = [times[split] for split in splits if split in times]
    return fmean(seconds) if len(seconds) == len([*splits]) else None
