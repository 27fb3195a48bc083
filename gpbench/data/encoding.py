"""Columns of text as numbers: numbers as they are spelled, codes of the card, and categories as columns or numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench import limits
from gpbench.data.cells import Numbers, number
from gpbench.data.faults import SpellingError, fault
from gpbench.errors import DataError

ONEHOT, ORDINAL = "onehot", "ordinal"
"""Kinds of encodings: a column of 0 and 1 for each level, or the number of the level in the order of levels."""


def normal_label(value: Any) -> str:
    """The label in its normal spelling: "1", "+1", "1.0" and 1 are the same, and so are "true", "True" and True."""
    text = str(value).strip()
    if text.lower() in ("true", "false"):
        return text.capitalize()
    value = number(text)
    return str(int(value)) if value is not None and value.is_integer() else text


def in_order(labels: Sequence[str]) -> list[str]:
    """Labels in numerical order where all are numbers, else in alphabetical order."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def kind_of(spec: Any) -> str:
    """The kind of an entry of `encode`, which is a kind, or a mapping from it to levels."""
    return next(iter(spec)) if isinstance(spec, Mapping) else spec


def names_of(name: str, spec: Any, levels: Sequence[str]) -> list[str]:
    """The names of the inputs that a column becomes, as in `city=Oslo`."""
    return [f"{name}={level}" for level in levels] if kind_of(spec) == ONEHOT else [name]


def columns_of_table(inputs: Sequence[str], levels: Mapping[str, Sequence[str]]) -> list[str]:
    """The column of the table from which each input comes: `city` for `city=Oslo`.

    Args:
        inputs: names of the inputs.
        levels: levels of the encoded columns.
    """
    of_level = {f"{column}={level}": column for column, of_column in levels.items() for level in of_column}
    return [of_level.get(name, name) for name in inputs]


def _levels_of(cells: Sequence[str], name: str, spec: Any, numbers: Numbers) -> tuple[str, ...]:
    """The levels of a column: the card's, or all that it has, in numerical or alphabetical order.

    Raises:
        DataError: A cell is none of the card's levels, a level is named twice, the column is empty, its levels are too
            many for memory, or nearly every row has a number of its own.
    """
    labels = [normal_label(cell) for cell in cells if not numbers.is_missing(cell)]
    levels = [*map(normal_label, spec[kind_of(spec)])] if isinstance(spec, Mapping) else in_order([*{*labels}])
    if unknown := {*labels} - {*levels}:
        raise DataError(f"column {name!r}: {min(unknown)!r} is not among its levels, {', '.join(levels[:20])}")
    if not levels:
        raise DataError(f"encode: column {name!r} has no texts")
    if len({*levels}) < len(levels):
        doubled = next(level for i, level in enumerate(levels) if level in levels[:i])
        raise DataError(f"encode: {name}: level {doubled!r} is named twice: leave one out")
    if (
        kind_of(spec) == ONEHOT
        and 2 * len(levels) > len(labels) > 4
        and all(number(label) is not None for label in levels)
    ):
        raise DataError(
            f"encode: column {name!r} has {len(levels)} numbers in {len(labels)} rows: take it out of `encode`, and it"
            " is an input as it is"
        )
    if kind_of(spec) == ONEHOT and 32 * len(cells) * len(levels) > limits.memory(8 * len(cells)):
        raise DataError(
            f"encode: column {name!r} has {len(levels):,} levels in {len(cells):,} rows, too many for a column each:"
            f" leave it out by `drop`, or write `{name}: ordinal`"
        )
    return tuple(levels)


def encoded(
    cells: Sequence[str], spec: Any, levels: Sequence[str], numbers: Numbers
) -> tuple[list[Float[np.ndarray, " N"]], list[str]]:
    """The inputs that a column becomes; a missing cell is NaN in all of them.

    Returns:
        The inputs, and the texts that are none of the levels: 0 in every input of `onehot`, and NaN in `ordinal`.
    """
    missing = np.array([numbers.is_missing(cell) for cell in cells])
    labels = ["" if lacks else normal_label(cell) for cell, lacks in zip(cells, missing)]
    code = {level: float(i) for i, level in enumerate(levels)}
    codes = np.array([code.get(label, -1.0) for label in labels])
    unseen = [label for label, k, lacks in zip(labels, codes, missing) if k < 0 and not lacks]
    if kind_of(spec) == ORDINAL:
        return [np.where(codes < 0, np.nan, codes)], unseen
    return [np.where(missing, np.nan, codes == i) for i in range(len(levels))], unseen


def inputs_of(
    columns: Mapping[str, Sequence[str]], numbers: Numbers, specs: Mapping[str, Any], codes: Mapping[str, Mapping]
) -> tuple[list[Float[np.ndarray, " N"]], list[str], dict[str, tuple[str, ...]]]:
    """The inputs that columns become, their names, and the levels of encoded columns.

    Args:
        columns: Cells by the name of the column.
        numbers: Spelling of numbers and of missing cells.
        specs: Entries of `encode` by column.
        codes: Entries of `codes` by column.

    Raises:
        DataError: A cell is no number, or levels do not fit (`_levels_of`).
    """
    levels = {name: _levels_of(cells, name, specs[name], numbers) for name, cells in columns.items() if name in specs}
    inputs: list[Float[np.ndarray, " N"]] = []
    names: list[str] = []
    for name, cells in columns.items():
        if name in specs:
            inputs += encoded(cells, specs[name], levels[name], numbers)[0]
            names += names_of(name, specs[name], levels[name])
        else:
            inputs.append(parsed(cells, name, numbers, codes.get(name)))
            names.append(name)
    return inputs, names, levels


def parsed(cells: Sequence[str], name: str, numbers: Numbers, codes: Mapping | None) -> Float[np.ndarray, " N"]:
    """A column as numbers: NaN for an empty or missing cell, the code where it has codes.  Raises DataError."""
    values = np.empty(len(cells))
    coded = {normal_label(key): code for key, code in (codes or {}).items()}
    if not coded and {cell.lower() for cell in cells if not numbers.is_missing(cell)} <= {"true", "false"}:
        coded = {"True": 1, "False": 0}
    for row, cell in enumerate(cells):
        if numbers.is_missing(cell):
            values[row] = np.nan
            continue
        value = coded.get(normal_label(cell)) if coded else numbers.parse(cell)
        if value is None:
            fact, mend = _fault(cell, list(coded))
            raise SpellingError(f"column {name!r}, row {row + 1}: {fact}", mend)
        try:
            values[row] = value
        except (TypeError, ValueError):
            raise DataError(f"codes: {name}: the code of {cell!r} is {value!r}: must be a number") from None
    return values


def _fault(cell: str, coded: Sequence[str]) -> tuple[str, str]:
    """Says why a cell is no number, and what its card would say."""
    if coded:
        if cell.lower() in ("yes", "no", "on", "off") and {*coded} & {"True", "False"}:
            mend = "quote yes, no, on and off in the card, for YAML reads them as true and false"
            return f"{cell!r} has no code", mend
        return f"{cell!r} is not among its codes, {', '.join(coded[:20])}", ""
    return fault(cell)
