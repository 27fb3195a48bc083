"""Values that finished runs do not have: metrics that do not exist on a test set, or are not finite."""

from collections import Counter
from collections.abc import Iterable, Mapping

from gpbench.records.record import Record

NOT_FINITE = "not finite"
LATE, LARGE, FAULT = "over time", "out of memory", "ended with an error"
"""Reasons for which a run with a limit, or one of another program, has no predictions."""


def absence(record: Record, metric: str) -> str:
    """Why a run that did not diverge has no value of a metric, as "undefined (1 class)" or "over time"; else ""."""
    if record.diverged or record.metrics.get(metric, 0.0) is not None:
        return ""
    reason = (record.undefined or {}).get(metric)
    if record.status == "failed":
        return reason or record.status
    return f"undefined ({reason})" if reason else NOT_FINITE


def absences(records: Iterable[Record], metric: str) -> dict[str, int]:
    """The numbers of finished runs without a value of a metric, by the words of `absence`."""
    return dict(Counter(words for record in records if (words := absence(record, metric))))


def absences_text(counts: Mapping[str, int]) -> str:
    """These numbers in a line, as in "17 runs undefined (1 class)"; "" without any."""
    return ", ".join(f"{n} run{'s' * (n != 1)} {words}" for words, n in counts.items())


def divergence(records: Iterable[Record]) -> str | None:
    """The line that says which of these records diverged or failed, and why; None where none did."""
    lost = [record for record in records if record.status != "done"]
    if not lost:
        return None
    numbers = dict.fromkeys(str(record.split) for record in lost)  # a split may have several outputs
    splits = f"split{'s' * (len(numbers) > 1)} {', '.join(numbers)}"
    return f"{splits} {lost[0].status} ({lost[0].message}); recorded as such, and left out of every mean"
