"""The values of the front page beside its boards: papers beside ours, groups of data sets, the index of the search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpbench.analysis.reproduction import Comparison
from gpbench.report.site.boards import SIZES
from gpbench.report.site.charts import free
from gpbench.report.site.facts import Facts, page
from gpbench.report.site.scales import Scale

_UNKNOWN = "size not recorded"
_ORDER = (*SIZES, _UNKNOWN)
"""The sizes of data, in order."""


def _size_of(rows: object) -> str:
    """The name of a size of data; `rows` is the number of rows, if it is known."""
    if not isinstance(rows, int) or isinstance(rows, bool) or rows <= 0:
        return _UNKNOWN
    return next(name for name, (low, high) in SIZES.items() if low <= rows <= high)


@dataclass(frozen=True)
class _Panel:
    """Our numbers against the printed ones by one metric."""

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
            text = f"{verdict.word}: {verdict.claim.text}"
            yield "claim", verdict.claim.name, text, f"{page('claims', paper)}#{verdict.claim.id}"
