"""Boards of the front page: the methods on data of one task and size, as `gpbench best` compares them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from gpbench.analysis import best_sheet
from gpbench.analysis.best import BestMethods, Score, best_methods
from gpbench.analysis.kinds import Kind
from gpbench.analysis.printing import number
from gpbench.errors import AbsentError
from gpbench.records.record import Record
from gpbench.report.site.facts import Facts

SIZES = {
    "under 1,000 rows": (0, 999),
    "1,000 to 10,000 rows": (1_000, 9_999),
    "10,000 to 100,000 rows": (10_000, 99_999),
    "100,000 rows and more": (100_000, inf),
}
"""Smallest and largest number of rows, by the name of a size."""
_TASKS = ("binary", "multiclass", "regression")
_METRICS = ("nll", "test_ll", "rmse")


@dataclass(frozen=True)
class _Standing:
    """A ranked method: its name, average rank, the verdict on it against the first, and median seconds as text."""

    name: str
    method: str
    rank: float
    verdict: str
    seconds: str


@dataclass(frozen=True)
class _Row:
    """A data set: its method with the best mean, that score, and how many of the others are shown to be worse."""

    dataset: str  # the data set, with its output and split set
    name: str  # its name alone
    method: str  # name and setting of the method
    score: str  # its mean and corrected standard error, as text
    worse: int  # number of methods that are shown to be worse than the first of the board there


@dataclass(frozen=True)
class _Board:
    """A comparison with its task, size, protocol and the command that prints it."""

    task: str
    size: str
    protocol: str
    command: str
    second: Sequence[str]
    result: BestMethods  # the comparison

    @property
    def sentence(self) -> str:
        """What the tests show."""
        return best_sheet.sentence(self.result)

    @property
    def standings(self) -> list[_Standing]:
        """The ranked methods, the one with the lowest average rank first."""
        result = self.result
        methods = {record.method for record in result.records}
        return [
            _Standing(
                name,
                _start(name, methods),
                rank,
                "" if name == result.leader else result.verdict(name),
                _seconds(result.scores[name].values()),
            )
            for name, rank in result.average.items()
        ]

    @property
    def rows(self) -> list[_Row]:
        """The data sets."""
        names = {record.dataset for record in self.result.records}
        return [self._row(dataset, _start(dataset, names)) for dataset in self.result.datasets]

    def _row(self, dataset: str, name: str) -> _Row:
        result, sign = self.result, 1 if self.result.direction == "lower" else -1
        best = min(result.average, key=lambda method: sign * result.scores[method][dataset].mean)
        score = result.scores[best][dataset]
        verdicts = [result.verdict_on(other, dataset) for other in result.average if other != result.leader]
        text = number(score.mean, score.corrected_stderr)
        return _Row(dataset, name, best, text, verdicts.count("worse"))


def boards(facts: Facts) -> list[_Board]:
    """The boards of all recorded runs, by task, size and metric; the main ones first."""
    every = [board for task in _TASKS for size in SIZES for board in _boards(facts, task, size)]
    return sorted(every, key=lambda board: len(board.second))


def _boards(facts: Facts, task: str, size: str) -> Iterator[_Board]:
    low, high = SIZES[size]
    by_protocol: dict[str, list[Record]] = {}
    for record in Kind(task, (low, high)).records(facts.records, facts.folders):
        by_protocol.setdefault(record.protocol, []).append(record)
    results_of: dict[str, dict[str, BestMethods]] = {}
    for protocol, records in by_protocol.items():
        recorded = {name for record in records for name in record.metrics}
        for metric in filter(recorded.__contains__, _METRICS):
            try:
                results_of.setdefault(protocol, {})[metric] = best_methods(records, metric)
            except AbsentError:
                continue
    breadth = {name: max(map(_breadth, results.values()), default=0) for name, results in results_of.items()}
    main = max(results_of, key=lambda name: (breadth[name], name == "clean"), default="")
    for protocol, results in results_of.items():
        for metric, result in results.items():
            rows = f"{low or ''}-{'' if high == inf else high}"
            command = f"gpbench best --task {task} --rows={rows} --metric {metric} --protocol {protocol}"
            second = ["metric"] * (metric != next(iter(results))) + ["protocol"] * (protocol != main)
            yield _Board(task, size, protocol, command, second, result)


def _breadth(result: BestMethods) -> int:
    return len(result.average) * len(result.datasets)


def _start(text: str, names: Iterable[str]) -> str:
    """The longest of the names with which a text begins; the text itself where it begins with none."""
    return max((name for name in names if f"{text} ".startswith(f"{name} ")), key=len, default=text)


def _seconds(scores: Iterable[Score]) -> str:
    known = [score.seconds for score in scores if score.seconds is not None]
    return number(median(known)) if known else ""
