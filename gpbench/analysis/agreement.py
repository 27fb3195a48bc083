"""Agreement of our values with the printed ones: targets by outcome, and whether other runs would meet them too.  And
the answer of a table: sentences of its experiment's file whose numbers are those of its rows."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from statistics import median

from gpbench.analysis.cells import BAND, Entry
from gpbench.analysis.printing import counted, number, share
from gpbench.errors import ConfigError, nearest, require, require_known
from gpbench.experiments.definition import PRESETS, Experiment
from gpbench.papers.published import parts

_OUTCOMES = ("equal", "better", "worse")  # in the order in which they are shown


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
    counts = ", ".join(f"{outcomes[name]} {name}" for name in _OUTCOMES)
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


_EXPRESSION = re.compile(r"\{([^{}]*)\}")

_PLACES = {"row": ("rows", ""), "column": ("columns", "-"), "block": ("blocks", ", "), "method": ("label", "-")}
"""Keys of a table's layout, and what stands between their labels, by key of its rows."""

_Rows = Sequence[Mapping[str, object]]


def answer_text(experiment: Experiment, rows: _Rows) -> str:
    """The sentences of its file with their numbers; "" where one has no rows.  Conditions KEY=PATTERN|PATTERN select
    rows: `{B}` is the number of those of B, `{A of B}` "30 of 36" of them, or their values of a key A."""
    expressions, known = _EXPRESSION.findall(experiment.answer), _words(experiment, rows)
    for expression in expressions:
        value, _, base = expression.rpartition(" of ")
        for key, equals, patterns in (word.partition("=") for word in (*value.split(), *base.split())):
            fault = f"{experiment.id}: answer: {{{expression}}}"
            require_known(key, rows[0], f"{fault}: the rows have no {key!r}")
            require(equals or key == value, f"{fault}: {key}: write a condition, as {key}=WORD", ConfigError)
            for text in patterns.split("|") if equals and key in known else ():
                is_known = any(fnmatchcase(word, text) for word in known[key])
                require(is_known, f"{fault}: no row has {key}={text}; {nearest(text, known[key])}", ConfigError)
    numbers = [_value(expression, rows) for expression in expressions]
    return _EXPRESSION.sub(lambda _: numbers.pop(0), experiment.answer) if all(numbers) else ""


def _words(experiment: Experiment, rows: _Rows) -> dict[str, set[str]]:
    """The words that rows of any preset may have, by those keys on which no result decides."""
    layout, jobs = experiment.table, [job for preset in PRESETS for job in experiment.jobs(preset)]
    of_place = lambda name, gap: {gap.join(experiment.labels_of(layout.get(name, ()), job)) for job in jobs}
    known = {key: of_place(name, gap) for key, (name, gap) in _PLACES.items()}
    known |= {"dataset": set(), "protocol": set(), "metric": set(), "methods": {*layout.get("sets", ())}}
    for key, words in known.items():
        words.update(str(row[key] or "") for row in (*rows, *jobs) if key in row)
    return known | {"mark": {"", "best", "tied"}, "outcome": {"", *_OUTCOMES, "different"}}


def _value(expression: str, rows: _Rows) -> str:
    subset, _, base = expression.rpartition(" of ")
    among = _select(rows, base)
    if not subset:
        return f"{len(among):,}"
    if "=" in subset:
        return share(len(_select(among, subset)), len(among)) if among else ""
    values = dict.fromkeys(row[subset] for row in among)
    return ", ".join(number(value) if isinstance(value, float) else str(value) for value in values)


def _select(rows: _Rows, words: str) -> _Rows:
    """The rows that meet all of the conditions."""
    for key, _, patterns in (word.partition("=") for word in words.split()):
        rows = [row for row in rows if any(fnmatchcase(str(row[key] or ""), text) for text in patterns.split("|"))]
    return rows
