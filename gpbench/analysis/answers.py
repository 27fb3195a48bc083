"""The answer of a table: sentences of its experiment's file, whose numbers are those of the table's rows."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from gpbench.analysis.printing import number, share
from gpbench.errors import require_known

_EXPRESSION = re.compile(r"\{([^{}]*)\}")

_Rows = Sequence[Mapping[str, object]]


def answer(text: str, rows: _Rows) -> str:
    """The sentences with their numbers; "" where one has no rows.  Conditions select rows, each KEY=PATTERN|PATTERN of
    a key of the rows.  `{B}` is the number of rows that B selects; `{A of B}` those of these that A selects too, as "30
    of 36", or their values of a key A.  Raises ConfigError: an unknown key.
    """
    numbers = [_value(expression, rows) for expression in _EXPRESSION.findall(text)]
    return _EXPRESSION.sub(lambda _: numbers.pop(0), text) if all(numbers) else ""


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
        require_known(key, rows[0] if rows else [key], f"answer: the rows have no {key!r}")
        rows = [row for row in rows if any(fnmatchcase(str(row[key] or ""), text) for text in patterns.split("|"))]
    return rows
