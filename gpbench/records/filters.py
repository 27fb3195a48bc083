"""Conditions on the fields of records, as users write them: `dataset=pima,heart`, `metrics.nll<0.4`, `dirty=true`."""

import json
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpbench.errors import ConfigError, require_known
from gpbench.records.record import Record

_Compare = Callable[[Any, Any], bool]
_COMPARE: dict[str, _Compare] = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
_CONDITION = re.compile(r"\s*([\w.\-]+)\s*(<=|>=|=|<|>)(.*)", re.DOTALL)


def matching(records: Iterable[Record], conditions: Sequence[str]) -> list[Record]:
    """The records for which all conditions hold."""
    matches = every = list(records)
    for condition in conditions:
        if not (match := _CONDITION.fullmatch(condition)):
            raise ConfigError(f"cannot read {condition!r}; write FIELD=VALUE, FIELD<NUMBER or FIELD>NUMBER")
        field, sign, text = match.groups()
        if every and not any(field in record.names() for record in every):
            require_known(field, {name for record in every for name in record.names()}, f"no run has a field {field!r}")
        holds = _equals(text) if sign == "=" else _compares(_COMPARE[sign], text, condition)
        matches = [record for record in matches if holds(record.value(field))]
    return matches


def _equals(text: str) -> Callable[[Any], bool]:
    texts = re.split(r",(?! )", text)  # a setting may have commas of its own, and spaces after them
    return lambda value: value in texts if isinstance(value, str) else json.dumps(value) in texts


def _compares(compare: _Compare, text: str, condition: str) -> Callable[[Any], bool]:
    try:
        limit = float(text)
    except ValueError:
        raise ConfigError(f"cannot read {condition!r}: {text!r} is no number") from None
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and compare(value, limit)
