"""What dots of means show, in figures and on pages: their range, printed targets, and notes.  No Matplotlib."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from gpbench.analysis.cells import Entry, caveats
from gpbench.analysis.tables import title
from gpbench.papers.published import UNRANKED

_FENCE = 3
"""Interquartile ranges, or median standard errors where larger, beyond the quartile on the worse side at which values
no longer set the range of a panel."""


def limits(entries: Sequence[Entry], direction: str | None) -> tuple[float, float]:
    """The horizontal range of a panel: targets, and means with their standard errors but those beyond the fence."""
    spans = [(e.mean - (e.stderr or 0), e.mean, e.mean + (e.stderr or 0)) for e in entries if e.mean is not None]
    return span_limits(spans, direction, [value for entry in entries if (value := target(entry)) is not None])


def span_limits(
    spans: Sequence[tuple[float, float, float]], direction: str | None, targets: Sequence[float] = ()
) -> tuple[float, float]:
    """The range of targets and of spans (low, mean, high), but of those whose mean is beyond the fence."""
    if not spans:
        return 0.0, 1.0
    first, third = np.quantile([mean for _, mean, _ in spans], [0.25, 0.75])
    reach = _FENCE * max(third - first, np.median([high - mean for _, mean, high in spans]))
    lowest = first - reach if direction == "higher" else -np.inf
    highest = third + reach if direction == "lower" else np.inf
    within = [span for span in spans if lowest <= span[1] <= highest]
    low = min([max(lowest, min(span[0] for span in within)), *targets])
    high = max([min(highest, max(span[2] for span in within)), *targets])
    margin = 0.06 * (high - low) or 0.01 * abs(high) or 0.01
    return float(low - margin), float(high + margin)


def target(entry: Entry) -> float | None:
    """The published value of a cell if it is a target, else None."""
    return entry.published.value if entry.published and entry.published.is_target else None


def notes(rows: Mapping[str, Mapping[str, Entry]], metric: str) -> Iterator[str]:
    """A legend of dots and bars, then caveats with their methods."""
    records = [record for row in rows.values() for entry in row.values() for record in entry.cell.records]
    yield (
        f"{title(metric, records)}: means over splits ± one standard error, not corrected for rows that splits share;"
        " arrows: means outside of the panel, with their values"
    )
    for reason in dict.fromkeys(UNRANKED[name] for name, row in rows.items() if is_unranked(row)):
        yield f"† {reason}"
    methods: dict[str, dict[str, None]] = {}
    for dataset, row in rows.items():
        for method, entry in row.items():
            if entry.diverged:
                methods.setdefault("diverged runs do not count", {})[f"{method} on {dataset} ({entry.diverged})"] = None
            for words, n in entry.undefined.items():
                methods.setdefault(words, {})[f"{method} on {dataset} ({n})"] = None
            for note in caveats(entry.cell, metric, None):
                methods.setdefault(note, {})[method] = None
    yield from (f"{note}: {', '.join(names)}" for note, names in methods.items() if note not in UNRANKED.values())


def is_unranked(row: Mapping[str, Entry]) -> bool:
    return any(entry.cell.dataset in UNRANKED for entry in row.values())
