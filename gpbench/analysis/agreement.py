"""Agreement of our values with the printed ones: how many targets are reproduced, and which are not."""

from collections.abc import Iterator, Mapping, Sequence

from gpbench.analysis.cells import Entry
from gpbench.analysis.printing import number
from gpbench.analysis.sheets import Grid
from gpbench.papers.published import parts

Rows = Mapping[str, Mapping[str, Entry]]
"""Entries by the labels of their row and column."""

BAND = 2.0
"""Number of joint standard errors within which our number and the printed one are equal."""


def exclusion(entry: Entry) -> str:
    """The reason why the printed number beside an entry is no target; "" where it is one."""
    published = entry.published
    if published is None:
        return "no number is printed"
    if not published.held_out:
        return published.note or "the printed number is not of held-out rows"
    if not entry.cell.held_out:
        return "our runs are not held out"
    if _has_other_kernel(entry):
        return "our kernel is another than the paper's"
    if published.note or not entry.better:
        return published.note or "the metric has no better direction"
    if published.stderr is None:
        return "printed without a standard error"
    return "" if entry.delta_se is not None else "our number has no standard error"


def _has_other_kernel(entry: Entry) -> bool:
    """Tests whether our kernel is another than that of the printed number beside an entry."""
    ours, published = parts(entry.cell.setting), entry.published
    return published is not None and "kernel" in ours and "kernel" not in parts(published.setting)


def outcome(entry: Entry) -> str:
    """How an entry compares with the printed value: "equal" within two joint standard errors, else "better" or "worse"
    than a target, "different" from what is none; "" without a value or an error.
    """
    if entry.delta_se is None or entry.published is None:
        return ""
    if abs(entry.delta_se) <= BAND:
        return "equal"
    if exclusion(entry):
        return "different"
    return "better" if (entry.delta_se > 0) == (entry.better == "higher") else "worse"


def agreement(entries: Sequence[Entry]) -> list[str]:
    """Lines on how many cells agree with the paper, of targets and of printed values on training rows."""
    lines = {
        _is_target: "targets reproduced (within 2 standard errors of the paper, or better)",
        _is_leaked: "values that are not held out are within 2 standard errors of the paper",
    }
    counts = {text: [_deviates(e) for e in entries if selects(e)] for selects, text in lines.items()}
    methods = dict.fromkeys(entry.cell.method for entry in entries if entry.delta_se is not None)
    reached = {entry.cell.method for entry in entries if _is_target(entry)}
    beyond = ", ".join(name for name in methods if name not in reached) if reached else ""
    others = any(map(_has_other_kernel, entries))
    return [
        *(f"{deviate.count(False)} of {len(deviate)} {text}." for text, deviate in counts.items() if deviate),
        *([f"No printed value of {beyond} is a target."] if beyond else []),
        *(["No printed value beside is a target: the paper has another kernel."] if others else []),
    ]


def _is_target(entry: Entry) -> bool:
    return entry.delta_se is not None and not exclusion(entry)


def _is_leaked(entry: Entry) -> bool:
    published = entry.published
    return bool(entry.delta_se is not None and published and not (published.held_out or entry.cell.held_out))


def _deviates(entry: Entry) -> bool:
    """Whether a value differs from the printed one by over 2 standard errors: of a target, to the worse side."""
    return outcome(entry) in ("worse", "different")


def deviations(blocks: Sequence[tuple[str, Rows]], rows_are: str) -> Iterator[Grid]:
    """The grids of those that deviate: targets that are not reproduced, and values that are not held out and differ."""
    header = ("table", rows_are, "method", "metric", "ours", "paper", "difference")
    first = 0 if any(block for block, _ in blocks) else 1
    places = [(block, name, column, e) for block, rows in blocks for name, r in rows.items() for column, e in r.items()]
    headings = {
        _is_target: "targets not reproduced",
        _is_leaked: "values that are not held out and differ from the paper",
    }
    for selects, heading in headings.items():
        lines = []
        for *position, e in places:
            if selects(e) and _deviates(e):
                printed = e.published.text if e.published else ""
                lines.append((*position, e.metric, number(e.mean, e.stderr), printed, f"{e.delta_se:+.1f}"))
        if lines:
            yield Grid(heading, header[first:], tuple(line[first:] for line in lines), prose=True)
