"""The values of the front page: methods by task and size of data, papers beside ours, and the index of the search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gpbench.analysis.cells import Entry, by_split
from gpbench.analysis.printing import natural, number
from gpbench.analysis.reproduction import Comparison
from gpbench.report.site.charts import free
from gpbench.report.site.facts import Facts, page
from gpbench.report.site.scales import Scale

_SIZES = {1_000: "under 1,000 rows", 10_000: "1,000 to 10,000 rows", 100_000: "10,000 to 100,000 rows"}
_LARGEST, _UNKNOWN = "100,000 rows and more", "size not recorded"
_FIRST_METRICS = ("nll", "test_ll", "rmse")
"""Metrics by which methods are compared on the front page."""


def _size_of(rows: object) -> str:
    """The name of a size of data; `rows` is the number of rows, if it is known."""
    if not isinstance(rows, int) or isinstance(rows, bool) or rows <= 0:
        return _UNKNOWN
    return next((name for limit, name in _SIZES.items() if rows < limit), _LARGEST)


_ORDER = (*_SIZES.values(), _LARGEST, _UNKNOWN)
"""The sizes of data, in order."""


@dataclass(frozen=True)
class _Standing:
    """A method on data of one task and size.

    Args:
        method: Name of the method.
        first: Number of data sets on which it has the best mean, or does not differ significantly from the best.
        compared: Number of data sets on which it is compared.
        seconds: Median of its seconds of training, as text; "" where they were not recorded.
    """

    method: str
    first: int
    compared: int
    seconds: str


@dataclass(frozen=True)
class _Board:
    """The methods on data of one task and size by one metric.

    Args:
        task, size, metric: What is compared.
        standings: The methods, those that are most often among the best first.
        rows: By data set: its name, the best entry, and the entries that do not differ significantly from it.
    """

    task: str
    size: str
    metric: str
    standings: Sequence[_Standing]
    rows: Sequence[tuple[str, Entry, Sequence[Entry]]]


def boards(facts: Facts, marked: Sequence[Entry]) -> list[_Board]:
    """The boards of these entries, by task, size and metric, those with most data sets first within a task."""
    rows_of: dict[str, int] = {}
    for record in facts.records:
        rows_of.setdefault(record.dataset, (record.train_rows or 0) + (record.test_rows or 0))
    groups: dict[tuple[str, str, str], dict[tuple, list[Entry]]] = {}
    for entry in marked:
        cell, card = entry.cell, facts.cards.get(entry.cell.dataset, {})
        if entry.metric not in _FIRST_METRICS or not entry.values:
            continue
        task = str(card.get("task", "task not stated"))
        key = (task, _size_of(card.get("rows") or rows_of.get(cell.dataset)), entry.metric)
        groups.setdefault(key, {}).setdefault((cell.dataset, cell.output, cell.split_set), []).append(entry)
    results = [
        board for key, by_data in groups.items() if (board := _board(*key, by_data)).rows and len(board.standings) > 1
    ]
    order = {size: k for k, size in enumerate(_ORDER)}
    return sorted(results, key=lambda b: (b.task, order[b.size], _FIRST_METRICS.index(b.metric)))


def _board(task: str, size: str, metric: str, by_data: Mapping[tuple, Sequence[Entry]]) -> _Board:
    first: dict[str, int] = {}
    compared: dict[str, int] = {}
    seconds: dict[str, list[float]] = {}
    rows = []
    for (dataset, output, _), entries in sorted(by_data.items(), key=lambda item: [natural(str(k)) for k in item[0]]):
        best = next((entry for entry in entries if entry.mark == "best"), None)
        if best is None:
            continue
        tied = [entry for entry in entries if entry.mark == "tied"]
        rows.append((f"{dataset} {output}".rstrip(), best, tied))
        for name in {entry.cell.method for entry in [best, *tied]}:
            first[name] = first.get(name, 0) + 1
        for name in {entry.cell.method for entry in entries}:
            compared[name] = compared.get(name, 0) + 1
        for entry in entries:
            seconds.setdefault(entry.cell.method, []).extend(by_split(entry.cell, "seconds").values())
    standings = [
        _Standing(name, first.get(name, 0), n, number(median(seconds[name])) if seconds[name] else "")
        for name, n in compared.items()
    ]
    standings.sort(key=lambda s: (-s.first, s.compared, natural(s.method)))
    return _Board(task, size, metric, standings, rows)


@dataclass(frozen=True)
class _Panel:
    """Our numbers against the printed ones by one metric.

    Args:
        metric: Name of the metric.
        x, y: Scales of printed and of our numbers.
        dots: Pixels, comparison, page and whether it is labelled; those that are worse come last and lie on top.
    """

    metric: str
    x: Scale
    y: Scale
    dots: Sequence[tuple[float, float, Comparison, str, bool]]


def scatter(facts: Facts, compared: Sequence[Comparison]) -> list[_Panel]:
    """A panel for each metric that has targets."""
    targets = [comparison for comparison in compared if not comparison.exclusion]
    metrics = dict.fromkeys(comparison.entry.metric for comparison in targets)
    return [_panel(facts, metric, [c for c in targets if c.entry.metric == metric]) for metric in metrics]


def _panel(facts: Facts, metric: str, targets: Sequence[Comparison]) -> _Panel:
    order = {"equal": 0, "better": 1, "worse": 2}
    targets = sorted(targets, key=lambda comparison: order[comparison.outcome])
    values = [value for c in targets for value in (c.entry.mean or 0.0, c.published.value)]
    low, high = min(values), max(values)
    log = low > 0 and high / low > 20
    if log:
        low, high = low / 1.2, high * 1.2
    else:
        margin = 0.05 * (high - low or abs(high) or 1.0)
        low, high = low - margin, high + margin
    x, y = Scale(low, high, 44, 312, log), Scale(low, high, 268, 8, log)
    points = [(x.pixel(c.published.value), y.pixel(c.entry.mean or 0.0)) for c in targets]
    worse = [point if c.outcome == "worse" else None for point, c in zip(points, targets)]
    labelled = free(worse, width=130, height=14)
    return _Panel(
        metric,
        x,
        y,
        [
            (*point, c, facts.page_of.get(c.entry.cell.records[0].id, page("experiment", c.experiment)), label)
            for point, c, label in zip(points, targets, labelled)
        ],
    )


def by_task_and_size(facts: Facts) -> dict[tuple[str, str], list[str]]:
    """Names of data sets by task and size; within a group those with most runs first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(facts.datasets, key=lambda name: -facts.n_runs["dataset"][name]):
        card = facts.cards.get(name, {})
        groups.setdefault((str(card.get("task", "task not stated")), _size_of(card.get("rows"))), []).append(name)
    return dict(sorted(groups.items(), key=lambda item: (item[0][0], _ORDER.index(item[0][1]))))


def gap(deviation: float | None) -> str:
    """A deviation in joint standard errors as text."""
    return "" if deviation is None or math.isinf(deviation) else f"{deviation:+.1f} standard errors"


def search_index(facts: Facts, presets: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """What the search finds: its kind, name, description and page, for methods, data sets, papers and claims."""
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
            text = f"{verdict.verdict}: {verdict.claim.text}"
            yield "claim", verdict.claim.name, text, f"{page('claims', paper)}#{verdict.claim.id}"
