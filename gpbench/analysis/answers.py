"""The answer of a table: sentences of its experiment's file, whose numbers are those of the table's rows."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from gpbench.analysis.agreement import OUTCOMES
from gpbench.analysis.printing import number, share
from gpbench.errors import ConfigError, nearest, require, require_known
from gpbench.experiments.definition import PRESETS, Experiment

_EXPRESSION = re.compile(r"\{([^{}]*)\}")

_PLACES = {"row": ("rows", ""), "column": ("columns", "-"), "block": ("blocks", ", "), "method": ("label", "-")}
"""Keys of a table's layout, and what stands between their labels, by key of its rows."""

_Rows = Sequence[Mapping[str, object]]


def answer(experiment: Experiment, rows: _Rows) -> str:
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
    return known | {"mark": {"", "best", "tied"}, "outcome": {"", *OUTCOMES, "different"}}


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
