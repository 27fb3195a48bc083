"""The answer of a table: sentences of its experiment's file, whose numbers are those of the table's rows."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from gpbench.analysis.printing import number, share
from gpbench.errors import ConfigError, require, require_known

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_BARE = re.compile(r"(?<![\w.=-])\d[\d.,]*(?![\w-])|[{}]")  # not of a name, such as m=15%, dgp-2 or 8-bit

_Rows = Sequence[Mapping[str, object]]


def answer(text: str, rows: _Rows) -> str:
    """The sentences with their numbers.  Conditions select rows, each a KEY=PATTERN|PATTERN of a key of the rows.
    `{B}` is the number of rows that B selects; `{A of B}` those of these that A selects too, as "30 of 36", or their
    values of a key A.  Raises ConfigError: a number without braces, an unknown key, or no row is selected.
    """
    bare = _BARE.search(_EXPRESSION.sub("", text))
    require(not bare, f"answer: {bare and bare[0]!r}: write a number as the {{CONDITIONS}} of its rows", ConfigError)

    def value(match: re.Match[str]) -> str:
        subset, _, base = match[1].rpartition(" of ")
        among = _select(rows, base)
        require(among, f"answer: no row has {base}", ConfigError)
        if not subset or "=" in subset:
            return share(len(_select(among, subset)), len(among)) if subset else f"{len(among):,}"
        values = dict.fromkeys(row[subset] for row in among)
        return ", ".join(number(value) if isinstance(value, float) else str(value) for value in values)

    return _EXPRESSION.sub(value, text)


def _select(rows: _Rows, words: str) -> _Rows:
    conditions = [word.partition("=")[::2] for word in words.split()]
    for key, _ in conditions:
        require_known(key, rows[0], f"answer: the rows have no {key!r}")
    text = lambda value: "" if value is None else str(value)
    meets = lambda row, key, patterns: any(fnmatchcase(text(row[key]), pattern) for pattern in patterns.split("|"))
    return [row for row in rows if all(meets(row, *condition) for condition in conditions)]
