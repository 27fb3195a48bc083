"""Agreement of our values with the printed ones: targets by outcome, and whether other runs would meet them too."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from gpbench.analysis.cells import BAND, Entry
from gpbench.analysis.printing import counted
from gpbench.papers.published import parts

OUTCOMES = ("equal", "better", "worse")  # in the order in which they are shown


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
    if entry.delta_se is None:
        return "our number has no standard error"
    return "ours are more splits than the paper's" if entry.n_splits > (published.n or math.inf) else ""


def _has_other_kernel(entry: Entry) -> bool:
    """Tests whether our kernel is another than that of the printed number beside an entry."""
    ours, published = parts(entry.cell.setting), entry.published
    return published is not None and "kernel" in ours and "kernel" not in parts(published.setting)


def outcome(entry: Entry) -> str:
    """How it compares: "equal" within two joint standard errors, "better", "worse" or "different"; "" without both."""
    if entry.delta_se is None or entry.published is None:
        return ""
    if abs(entry.delta_se) <= BAND:
        return "equal"
    if exclusion(entry):
        return "different"
    return "better" if (entry.delta_se > 0) == (entry.better == "higher") else "worse"


def rivals_meet(target: Entry, entries: Sequence[Entry]) -> list[bool]:
    """Whether each other value on the same rows is in the band of a target's number, or on its better side."""
    rows_of = lambda e: (e.metric, e.cell.dataset, e.cell.output, e.cell.data_key)
    same = [e for e in entries if e.mean is not None and e.cell.held_out and e.cell.dataset == target.cell.dataset]
    by_cell = {e.cell.records[0].cell: e for e in reversed(same) if rows_of(e) == rows_of(target)}
    by_cell.pop(target.cell.records[0].cell, None)
    printed, sign = target.published, 1 if target.better == "higher" else -1
    assert printed is not None
    least = -BAND * (target.joint_stderr or 0.0)
    return [sign * ((e.mean or 0.0) - printed.value) >= least for e in by_cell.values()]


def headline(outcomes: Counter[str], informative: int) -> str:
    """The count of targets in words, as in "3 targets: 2 equal, 1 better, 0 worse; 1 informative"."""
    counts = ", ".join(f"{outcomes[name]} {name}" for name in OUTCOMES)
    return f"{counted(sum(outcomes.values()), 'target')}: {counts}; {informative} informative"


def agreement(entries: Sequence[Entry]) -> list[str]:
    """Lines on how many values agree with the paper, of targets and of printed values on training rows."""
    compared = [entry for entry in entries if entry.delta_se is not None and entry.published]
    targets = [entry for entry in compared if not exclusion(entry)]
    leaked = [e for e in compared if e.published and not (e.published.held_out or e.cell.held_out)]
    methods, reached = ({e.cell.method: None for e in some} for some in (compared, targets))
    beyond = ", ".join(name for name in methods if name not in reached) if reached else ""
    near = f"{sum(outcome(e) == 'equal' for e in leaked)} of {len(leaked)}"
    lines = {
        f"{near} values that are not held out are within 2 standard errors of the paper.": leaked,
        f"No printed value of {beyond} is a target.": beyond,
        "No printed value beside is a target: the paper has another kernel.": any(map(_has_other_kernel, entries)),
    }
    of_targets = _target_lines(targets, entries) if targets else ()
    return [*of_targets, *(line for line, applies in lines.items() if applies)]


def _target_lines(targets: Sequence[Entry], entries: Sequence[Entry]) -> Iterator[str]:
    """Lines on targets: their outcomes, those on the worse side, their bands, and how many rivals meet them."""
    meet, bands = [rivals_meet(e, entries) for e in targets], [e.band or math.inf for e in targets]
    yield f"{headline(Counter(map(outcome, targets)), sum(not max(each, default=True) for each in meet))}."
    worse = [f"{e.cell.method} on {e.cell.dataset} ({e.metric})" for e in targets if outcome(e) == "worse"]
    yield from [f"Worse: {', '.join(worse)}."] if worse else []
    width = f"{min(bands):.1f} to {max(bands):.1f} % of the printed value, {median(bands):.1f} in the median"
    yield f"Equal: within 2 joint standard errors, ± {width}."
    n_meet, n = (sum(map(count, meet)) for count in (sum, len))
    yield f"Informative: no other method or setting meets it, equal or better; {n_meet:,} of their {n:,} values do."
    if any(entry.cell.split_set == "hla" for entry in targets):
        yield "The paper has the same splits, so that these errors, as of independent ones, are too wide."
