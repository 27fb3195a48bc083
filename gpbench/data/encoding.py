"""Columns of text as inputs: numbers, codes of the card, categories; and missing inputs, filled by training rows."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from gpbench import limits
from gpbench.data.cells import DECIMAL_POINT, Numbers, number
from gpbench.data.dataset import Dataset
from gpbench.data.faults import SpellingError, fault, reject
from gpbench.errors import DataError, nearest, require
from gpbench.log import warn

ONEHOT, ORDINAL = "onehot", "ordinal"
"""Kinds of encodings: a column of 0 and 1 for each level, or the number of the level in the order of levels."""


def labels_and_keys(
    cells: Iterable[Any], keys: Iterable[Any] = (), numbers: Numbers = DECIMAL_POINT
) -> tuple[list[str], list[str]]:
    """Labels of a column, "" for a missing one, and those that a card names, equal ones in one spelling: numbers where
    all that the card names, or all cells, are; else texts, of which 1E2 and 100 are two."""
    texts, names = [str(cell).strip() for cell in cells], [str(key).strip() for key in keys]
    of_text = {text: numbers.parse(text) for text in {*texts} if not numbers.is_missing(text)}
    of_name = [numbers.parse(name) if number(name) is None else number(name) for name in names]
    are_numbers = None not in (of_name or of_text.values()) and len({*of_name}) == len(of_name)
    label = {text: _label(text, value if are_numbers else None) for text, value in of_text.items()}
    labels = [label.get(text, "") for text in texts]
    return labels, [_label(name, value if are_numbers else None) for name, value in zip(names, of_name)]


def _label(text: str, value: float | None) -> str:
    """The one spelling of a text, or of the number that it is; "" for NaN."""
    if value is None:
        return text.capitalize() if text.lower() in ("true", "false") else text
    return str(int(value)) if value.is_integer() else "" if math.isnan(value) else repr(value)


def quoting_hint(label: str, keys: Iterable[str]) -> str:
    """How a card would name a label that is none of its keys, because YAML reads it as something else; else ""."""
    if label.lower() in ("yes", "no", "on", "off") and {*keys} & {"True", "False"}:
        return "; quote yes, no, on and off in the card, for YAML reads them as true and false"
    value = number(label)
    is_number = value is not None and value in map(number, keys)
    return f'; quote it in the card, "{label}", for YAML reads it as a number' if is_number else ""


def in_order(labels: Iterable[str]) -> list[str]:
    """Labels in numerical order where all are numbers, else in alphabetical order."""
    alphabetical = sorted(labels)
    try:
        return sorted(alphabetical, key=float)
    except ValueError:
        return alphabetical


def _kind_of(spec: Any) -> str:
    """The kind of an entry of `encode`, which is a kind, or a mapping from it to levels."""
    return next(iter(spec)) if isinstance(spec, Mapping) else spec


def columns_of_table(inputs: Sequence[str], levels: Mapping[str, Sequence[str]]) -> list[str]:
    """The column of the table from which each input comes: `city` for `city=Oslo`."""
    of_level = {f"{column}={level}": column for column, of_column in levels.items() for level in of_column}
    return [of_level.get(name, name) for name in inputs]


def _levels_of(cells: Sequence[str], name: str, spec: Any, numbers: Numbers) -> tuple[str, ...]:
    """The levels of a column: the card's, or all that it has, in numerical or alphabetical order."""
    kind = _kind_of(spec)
    labels, levels = labels_and_keys(cells, spec[kind] if isinstance(spec, Mapping) else (), numbers)
    labels = [label for label in labels if label]
    levels = levels or in_order({*labels})
    known, is_onehot = {*levels}, kind == ONEHOT
    which = f"is not among its levels, {', '.join(levels[:20])}"
    strange = (label for label in labels if label not in known)
    reject(f"column {name!r}: {label!r} {which}{quoting_hint(label, levels)}" for label in strange)
    require(levels, f"encode: column {name!r} has no texts")
    twice = (level for level, count in Counter(levels).items() if count > 1)
    reject(f"encode: {name}: level {level!r} is named twice: leave one out" for level in twice)
    are_many = is_onehot and 2 * len(levels) > len(labels) > 4 and None not in map(number, levels)
    mend = "take it out of `encode`, and it is an input as it is"
    require(not are_many, f"encode: column {name!r} has {len(levels)} numbers in {len(labels)} rows: {mend}")
    are_large = is_onehot and 32 * len(cells) * len(levels) > limits.memory(8 * len(cells))
    count = f"{len(levels):,} levels in {len(cells):,} rows, too many for a column each"
    require(not are_large, f"encode: column {name!r} has {count}: leave it out by `drop`, or write `{name}: ordinal`")
    return tuple(levels)


def _encoded(cells: Sequence[str], name: str, spec: Any, levels: Sequence[str], numbers: Numbers) -> list[np.ndarray]:
    """The inputs that a column becomes, NaN where a cell is missing; a text of new rows may be none of the levels."""
    labels, _ = labels_and_keys(cells, levels, numbers)
    code = {level: float(i) for i, level in enumerate(levels)}
    codes = np.array([code.get(label, -1.0) for label in labels])
    is_ordinal = _kind_of(spec) == ORDINAL
    if unseen := [label for label, k in zip(labels, codes) if k < 0 and label]:
        which = f"column {name!r}: {unseen[0]!r} is not among its levels, {', '.join(levels[:20])}"
        require(not is_ordinal, which)
        warn(f"{which}: its inputs are 0 there (rows: {len(unseen)})")
    if is_ordinal:
        return [np.where(codes < 0, np.nan, codes)]
    missing = np.array([not label for label in labels])
    return [np.where(missing, np.nan, codes == i) for i in range(len(levels))]


def inputs_of(
    columns: Mapping[str, list[str]], numbers: Numbers, specs: Mapping, codes: Mapping, levels: Mapping | None = None
) -> tuple[list[Float[np.ndarray, " N"]], list[str], Mapping[str, tuple[str, ...]]]:
    """The inputs that columns become, their names, and the levels of encoded columns, by default those of the card."""
    encodes = [name for name in columns if name in specs]
    levels = levels or {name: _levels_of(columns[name], name, specs[name], numbers) for name in encodes}
    inputs: list[Float[np.ndarray, " N"]] = []
    names: list[str] = []
    for name, cells in columns.items():
        if name in specs:
            inputs += _encoded(cells, name, specs[name], levels[name], numbers)
            names += [f"{name}={level}" for level in levels[name]] if _kind_of(specs[name]) == ONEHOT else [name]
        else:
            inputs.append(parsed(cells, name, numbers, codes.get(name)))
            names.append(name)
    return inputs, names, levels


def parsed(cells: Sequence[str], name: str, numbers: Numbers, codes: Mapping | None) -> Float[np.ndarray, " N"]:
    """A column as numbers: NaN for an empty or missing cell, the code where it has codes.  Raises DataError."""
    values = np.empty(len(cells))
    if not codes and {cell.lower() for cell in cells if not numbers.is_missing(cell)} <= {"true", "false"}:
        codes = {"True": 1, "False": 0}
    labels, keys = labels_and_keys(cells, codes, numbers) if codes else (cells, [])
    coded = dict(zip(keys, codes.values())) if codes else {}
    for row, (cell, label) in enumerate(zip(cells, labels)):
        if label == "" or numbers.is_missing(cell):
            values[row] = np.nan
            continue
        value = coded.get(label) if codes else numbers.parse(cell)
        if value is None:
            fact, mend = fault(cell)
            if coded:
                known = ", ".join([*coded][:20])
                fact, mend = f"{cell!r} is not among its codes, {known}", quoting_hint(cell, coded)[2:]
            raise SpellingError(f"column {name!r}, row {row + 1}: {fact}", mend)
        try:
            values[row] = value
        except (TypeError, ValueError):
            raise DataError(f"codes: {name}: the code of {cell!r} is {value!r}: must be a number") from None
    return values


@dataclass(frozen=True)
class Filler:
    """The values, from the training rows of a split, for missing cells and absent levels of other rows."""

    values: Float[np.ndarray, " D"]  # what stands for a missing cell of each column; NaN where none may be missing
    absent: Bool[np.ndarray, " D"]  # columns of levels that no training row has, which are 0 for all rows

    def __call__(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
        """The rows without missing cells and absent levels, in original units."""
        return np.where(self.absent, 0.0, np.where(np.isnan(X), self.values, X))

    def count_absent(self, X: Float[np.ndarray, "N D"]) -> int:
        """The number of rows with a level that no training row has."""
        return int((X[:, self.absent] == 1.0).any(axis=1).sum())


def fit_filler(dataset: Dataset, X: Float[np.ndarray, "n D"]) -> Filler | None:
    """Fits a filler to training rows; None for a data set that needs none."""
    if not dataset.impute and not dataset.levels:
        return None
    values = np.full(X.shape[1], np.nan)
    for name, centre in dataset.impute.items():
        column = X[:, i := dataset.columns.index(name)]
        fact = f"{name!r} is missing in all {len(X)} training rows; drop it"
        require(not np.isnan(column).all(), f"{dataset.name}: impute: {fact}")
        values[i] = np.nanmean(column) if centre == "mean" else np.nanmedian(column)
    columns = columns_of_table(dataset.columns, dataset.levels)
    is_level = np.array([column != name for column, name in zip(columns, dataset.columns)])
    return Filler(values, is_level & ~(X == 1.0).any(axis=0))


def filling_rules(
    name: str, impute: Any, columns: Sequence[str], levels: Mapping[str, Sequence[str]], X: Float[np.ndarray, "N D"]
) -> tuple[dict[str, str], dict[str, str]]:
    """A card's `impute` by input, "mean" or "median", and the inputs that say where a column is missing."""
    of_input = dict(zip(columns, columns_of_table(columns, levels)))
    centres = dict.fromkeys(of_input.values(), impute) if isinstance(impute, str) else dict(impute or {})
    known = {*of_input.values()}
    unknown = (str(column) for column in centres if column not in known)
    reject(f"{name}: impute: no input {column!r}; {nearest(column, known)}" for column in unknown)
    filled = {column: centres[name] for column, name in of_input.items() if name in centres}
    lacking = np.isnan(X).any(axis=0)
    indicators = {f"{of_input[c]} missing": c for c, lacks in zip(columns, lacking) if lacks and c in filled}
    doubles = (column for column in indicators if column in columns)
    reject(f"{name}: impute: there is an input {column!r} already; rename that column" for column in doubles)
    return filled, indicators
