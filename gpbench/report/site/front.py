"""The front page: methods on data of one task and size, as `gpbench best` compares them; data sets; the search."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from statistics import median
from typing import Any

from gpbench.analysis import best_sheet
from gpbench.analysis.best import BestMethods, best_methods
from gpbench.analysis.grouping import gather
from gpbench.analysis.kinds import Kind
from gpbench.analysis.printing import number
from gpbench.errors import AbsentError
from gpbench.report.site.facts import Facts, page
from gpbench.schema import is_whole

_UNKNOWN = "size not recorded"
_SIZES = {  # smallest and largest number of rows, by the name of a size
    "under 1,000 rows": (0, 999),
    "1,000 to 10,000 rows": (1_000, 9_999),
    "10,000 to 100,000 rows": (10_000, 99_999),
    "100,000 rows and more": (100_000, inf),
}
_TASKS = ("binary", "multiclass", "regression")
_METRICS = ("nll", "test_ll", "rmse")


def _board(task: str, size: str, protocol: str, second: Sequence[str], result: BestMethods) -> dict[str, Any]:
    """A comparison with its task, size, protocol and command; `second` has what is not the main one."""

    def row(dataset: str) -> dict[str, Any]:
        sign = 1 if result.direction == "lower" else -1
        best = min(result.average, key=lambda method: sign * result.scores[method][dataset].mean)
        score, name = result.scores[best][dataset], _start(dataset, {record.dataset for record in result.records})
        verdicts = [result.verdict_on(other, dataset) for other in result.average if other != result.leader]
        text = number(score.mean, score.corrected_stderr)
        return {"dataset": dataset, "name": name, "method": best, "score": text, "worse": verdicts.count("worse")}

    low, high = _SIZES[size]
    rows = f"{low or ''}-{'' if high == inf else high}"
    methods = {record.method for record in result.records}
    seconds = {m: [s.seconds for s in scores.values() if s.seconds is not None] for m, scores in result.scores.items()}
    return {
        "task": task,
        "size": size,
        "protocol": protocol,
        "second": second,
        "command": f"gpbench best --task {task} --rows={rows} --metric {result.metric} --protocol {protocol}",
        "result": result,
        "sentence": best_sheet.sentence(result),
        "methods": {name: _start(name, methods) for name in result.average},
        "seconds": {name: number(median(known)) if known else "" for name, known in seconds.items()},
        "rows": [row(dataset) for dataset in result.datasets],
    }


def boards(facts: Facts) -> list[dict[str, Any]]:
    """The boards of all recorded runs, by task, size and metric; the main ones first."""
    every = [board for task in _TASKS for size in _SIZES for board in _boards(facts, task, size)]
    return sorted(every, key=lambda board: len(board["second"]))


def _boards(facts: Facts, task: str, size: str) -> Iterator[dict[str, Any]]:
    by_protocol = gather((r.protocol, r) for r in Kind(task, _SIZES[size]).records(facts.records, facts.folders))
    results: list[tuple[str, BestMethods]] = []
    for protocol, records in by_protocol.items():
        recorded = {name for record in records for name in record.metrics}
        for metric in filter(recorded.__contains__, _METRICS):
            with suppress(AbsentError):
                results.append((protocol, best_methods(records, metric)))
    breadth = lambda item: (len(item[1].average) * len(item[1].datasets), item[0] == "clean")
    main, _ = max(results, key=breadth, default=("", None))
    for protocol, result in results:
        first = next(other.metric for name, other in results if name == protocol)
        second = {"metric": result.metric != first, "protocol": protocol != main}
        yield _board(task, size, protocol, [name for name, is_second in second.items() if is_second], result)


def _start(text: str, names: Iterable[str]) -> str:
    """The longest of the names with which a text begins; the text itself where it begins with none."""
    return max((name for name in names if f"{text} ".startswith(f"{name} ")), key=len, default=text)


def _size_of(rows: Any) -> str:
    """The name of a size of data; `rows` is the number of rows, if it is known."""
    known = is_whole(rows) and rows > 0
    return next((name for name, (low, high) in _SIZES.items() if known and low <= rows <= high), _UNKNOWN)


def by_task_and_size(facts: Facts) -> dict[tuple[str, str], list[str]]:
    """Names of data sets by task and size; within a group those with most runs first."""
    names = sorted(facts.datasets, key=lambda name: -facts.n_runs["dataset"][name])
    cards = ((facts.cards.get(name, {}), name) for name in names)
    groups = gather(((str(c.get("task", "task not stated")), _size_of(c.get("rows"))), name) for c, name in cards)
    order = [*_SIZES, _UNKNOWN]
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))


def search_index(facts: Facts, presets: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """The kind, name, description and page of all that the search finds: methods, data sets, papers, claims."""
    for name in facts.method_names:
        yield "method", name, facts.methods.get(name, ""), page("method", name)
    for name in facts.datasets:
        card = facts.cards.get(name, {})
        words = (card.get("title", ""), card.get("task", ""))
        yield "data set", name, ", ".join(str(word) for word in words if word), page("dataset", name)
    for name, citation in facts.papers.items():
        yield "paper", name, citation if citation != name else "", page("paper", name)
    for id, planned in presets.items():
        yield "experiment", id, planned[0].experiment.title, page("experiment", id)
    for paper, verdicts in facts.verdicts.items():
        for verdict in verdicts:
            text = f"{verdict.word}: {verdict.claim.text}"
            yield "claim", verdict.claim.name, text, f"{page('claims', paper)}#{verdict.claim.id}"
