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
    """How an entry compares with a target: "equal", "better" or "worse"; without one "equal", "different" or "".

    A target is met where it is equal, that is within two joint standard errors, or better.  Of a number that is no
    target, a difference in either direction is "different", for a lower error on training rows is no merit; "" without
    standard errors.
    """
    if entry.delta_se is None or entry.published is None:
        return ""
    if abs(entry.delta_se) <= BAND:
        return "equal"
    if exclusion(entry):
        return "different"
    return "better" if (entry.delta_se > 0) == (entry.better == "higher") else "worse"


def agreement(entries: Sequence[Entry]) -> list[str]:
    """Lines on how many cells agree with the paper; none without targets.

    Published values that are no targets are left out.  Those that are not held out are compared with runs that are not
    either; a lower error is no merit there, so a difference in either direction disagrees.
    """
    lines = {
        _is_target: "targets reproduced (within 2 standard errors of the paper, or better)",
        _is_leaked: "values that are not held out are within 2 standard errors of the paper",
    }
    counts = {text: [_deviates(e) for e in entries if selects(e)] for selects, text in lines.items()}
    others = sum(_has_other_kernel(entry) for entry in entries)
    methods = dict.fromkeys(entry.cell.method for entry in entries if entry.delta_se is not None)
    reached = {entry.cell.method for entry in entries if _is_target(entry)}
    beyond = [name for name in methods if name not in reached] if reached else []
    return [
        *(f"{deviate.count(False)} of {len(deviate)} {text}." for text, deviate in counts.items() if deviate),
        *[f"No printed value of {', '.join(beyond)} is a target."] * bool(beyond),
        *["No printed value beside is a target: the paper has another kernel."] * bool(others),
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
    headings = {
        _is_target: "targets not reproduced",
        _is_leaked: "values that are not held out and differ from the paper",
    }
    for selects, heading in headings.items():
        header = ("table", rows_are, "method", "metric", "ours", "paper", "difference")
        lines = [
            (
                block,
                name,
                column,
                e.metric,
                number(e.mean, e.stderr),
                e.published.text if e.published else "",
                f"{e.delta_se:+.1f}",
            )
            for block, rows in blocks
            for name, row in rows.items()
            for column, e in row.items()
            if selects(e) and _deviates(e)
        ]
        if lines:
            first = 0 if any(block for block, _ in blocks) else 1
            yield Grid(heading, header[first:], tuple(line[first:] for line in lines), prose=True)
