"""What a table without a card seems to be: its spelling, its task, and columns that are no numbers.

A guess is written into a card, where people see and change it; nothing that is read later depends on one.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpbench.data import cells, encoding, odd_rows, row_labels, spelling, tables
from gpbench.data.faults import UNKNOWN, first_rows, is_misspelt
from gpbench.data.lines import skip_also
from gpbench.errors import ConfigError, DataError, listed, nearest

LIBSVM = (".libsvm", ".svm", ".svmlight")
"""Endings of files of libsvm."""

_MOST_CLASSES = 50
_FEW = 0.05
"""Largest share of texts in a column that is taken for one of numbers."""
_MOST_LEVELS = 20
"""Largest number of texts of a column that become columns of their own."""
_LONGEST_LEVEL = 200
"""Largest number of characters of a text that becomes a level."""
_MOST_REASONS = 5
"""Largest number of columns that are left out with a reason for each."""


class _Guess(NamedTuple):
    """A task, options of a card's source (with `incomplete`: rows are left out), and both in words."""

    task: str
    options: dict[str, Any]
    summary: str


def guess(content: bytes, title: str, target: Any, labels: Sequence[str] = ()) -> _Guess:
    """Guesses how a table is to be read.  Raises ConfigError: there is no such column, or its texts are too many for
    classes; DataError: the file cannot be read, or a column of numbers has a few other cells.
    """
    return _libsvm(content, target) if Path(title).suffix.lower() in LIBSVM else _table(content, title, target, labels)


def _libsvm(content: bytes, target: Any) -> _Guess:
    from gpbench.data.readers import libsvm

    if target is not None:
        raise ConfigError(f"target={target}: lines of libsvm begin with the target: leave target out")
    raw = libsvm([content], {})
    task = _task([*map(str, raw.target)], cells.DECIMAL_POINT, is_nominal=False)
    return _Guess(task, {"reader": "libsvm", "inputs": raw.X.shape[1]}, f"{task}, {raw.X.shape[1]} inputs")


def spelling_of(content: bytes, target: Any) -> dict[str, Any]:
    """The options of a source that the spelling of a table needs.  Raises DataError."""
    return spelling.guess(content, {*map(str, target if isinstance(target, list) else [target])})[0]


def _table(content: bytes, title: str, target: Any, labels: Sequence[str]) -> _Guess:
    targets = target if isinstance(target, list) else [target]
    options, table = spelling.guess(content, {*map(str, targets)})
    numbers = cells.Numbers.from_options(options)
    is_number = [numbers.parse(cell.strip()) is not None for row in table.rows[:1] for cell in row]
    # without a header a target is a number; a first row with a text and a number may then be one of the rows
    header = table.is_named or not (any if all(isinstance(entry, int) for entry in targets) else all)(is_number)
    names, rows, lines = tables.split_header([table], header)
    if target is None:
        raise ConfigError(
            f"dataset={title}: name the column to predict by target=NAME; columns are {listed(names, 20)}"
        )
    if header and tables.later_header(names, rows, targets):
        tables.table([content], {**options, "target": target})  # says what is wrong
    positions = [_position(names, entry, title, table.notes) for entry in targets]
    if not any(len(row) == len(names) for row in rows):
        tables.table([content], {**options, "target": target})  # says what is wrong
    # others are refused where they are read
    fits = [len(row) == len(names) for row in rows]
    rows, lines = [*compress(rows, fits)], [*compress(lines, fits)]
    columns = tables.columns_of(rows, len(names))
    inputs = [i for i, name in enumerate(names) if i not in positions and name not in labels]
    units = ""
    if header and odd_rows.has_units([columns[i] for i in [*inputs, *positions]], numbers):
        options["skip"] = skip_also(lines[0], options.get("skip", 0))
        units = f"line {lines[0]} left out, as one of units ({', '.join(filter(None, rows[0]))[:40]})"
        columns, lines = [column[1:] for column in columns], lines[1:]
    marks = {cell for i in [*inputs, *positions] for cell in _marks(columns[i], numbers)}
    if marks:
        options["missing"] = sorted(marks)
        numbers = cells.Numbers.from_options(options)
    for i in [*inputs, *positions]:
        _require_numbers(names[i], columns[i], numbers, lines)
    counted = cells.bookkeeping(names, columns, table.labels)
    codes, encode, drop, notes = _texts({names[i]: columns[i] for i in inputs if i not in counted}, numbers)
    options |= {"codes": codes} if codes else {}
    options |= {"encode": encode} if encode else {}
    options |= {"drop": [*labels, *drop]} if labels or drop else {}
    inputs = [i for i in inputs if i not in counted and names[i] not in drop]
    if drop and not inputs:  # says why the first of them is none
        encoding.parsed(columns[names.index(first_dropped := next(iter(drop)))], first_dropped, numbers, None)
    of_inputs, of_targets = (
        np.array([[*map(numbers.is_missing, columns[i])] for i in indices]) for indices in (inputs, positions)
    )
    is_lost = of_inputs.any(axis=0) | of_targets.all(axis=0)
    lacking, gaps = int(is_lost.sum()), int((of_targets.any(axis=0) & ~is_lost).sum())
    notes += [note for i in positions if (note := _equal(names[i], {*columns[i]}, numbers))]
    task = "regression"
    if len(positions) == 1:
        task = _task(columns[positions[0]], numbers, is_nominal=names[positions[0]] in table.nominal)
    target_names = [names[i] if header else i for i in positions]
    summary = [f"{task} of {listed(map(str, target_names))}", *["decimal comma"] * ("decimal" in options)]
    summary += [units] * bool(units)
    summary += [f"{name} left out ({reason})" for name, reason in drop.items()][:_MOST_REASONS]
    summary += [f"{len(drop) - _MOST_REASONS} more left out"] * (len(drop) > _MOST_REASONS)
    summary += [f"codes for {listed(codes)}"] * bool(codes)
    summary += [f"columns for the texts of {listed(encode)}"] * bool(encode)
    summary += [f"{lacking} rows with missing cells left out"] * bool(lacking)
    summary += [f"{gaps} rows that lack a target count for the others"] * bool(gaps)
    summary += notes
    source = {
        "target": target_names if isinstance(target, list) else target_names[0],
        **options,
        "incomplete": bool(lacking or gaps),
    }
    return _Guess(task, source, "; ".join(summary))


def _position(names: Sequence[str], target: Any, title: str, notes: Sequence[str]) -> int:
    """The column of a name or a number.  Raises ConfigError where there is none."""
    if str(target) in names:
        return names.index(str(target))
    if isinstance(target, int) and -len(names) <= target < len(names):
        return target % len(names)
    hint = nearest(str(target), names) if names else "the file is empty"
    raise ConfigError(f"target={target}: no such column in {title}; {'; '.join([hint, *notes])}")


def _texts(
    columns: Mapping[str, Sequence[str]], numbers: cells.Numbers
) -> tuple[dict[str, dict[str, int]], dict[str, str], dict[str, str], list[str]]:
    """Codes of columns with two texts, encodings of those with few, columns to leave out with the reason, and notes.

    These have many texts, or half of their cells is missing.  Raises DataError for numbers in another spelling.
    """
    codes: dict[str, dict[str, int]] = {}
    encode: dict[str, str] = {}
    drop: dict[str, str] = {}
    notes: list[str] = []
    for name, column in columns.items():
        known = [cell for cell in column if not numbers.is_missing(cell)]
        kinds = sorted({*known})
        is_flag = {kind.lower() for kind in kinds} <= {"true", "false"}
        is_text = not is_flag and any(numbers.parse(kind) is None for kind in kinds)
        order = _order(name, kinds) if is_text else ""
        if 2 * len(known) < len(column):
            drop[name] = f"{len(column) - len(known):,} of {len(column):,} cells are missing"
        elif is_text and (longest := max(map(len, kinds))) > _LONGEST_LEVEL:
            drop[name] = f"texts of up to {longest:,} characters"
        elif is_text and len(kinds) > min(_MOST_LEVELS, len(known) // 4):
            texts = [cell for cell in known if numbers.parse(cell) is None]
            if 2 * sum(map(is_misspelt, texts)) > len(texts):
                encoding.parsed(column, name, numbers, None)  # says what is wrong
            others = f"{len(known) - len(texts):,} numbers and " * (len(texts) < len(known))
            noun = "dates" if order else "texts"
            if all(text.lstrip("+-").isdigit() for text in texts):
                noun = "whole numbers beyond 2^53, which float64 cannot hold"
            drop[name] = f"{others}{len(texts):,} {noun}, as {texts[0][:20]!r}{order and f'; {order}'}"
        elif is_text and {kind.lower() for kind in kinds} <= {"true", "false", "1", "0"}:
            codes[name] = {kind: int(kind.lower() in ("true", "1")) for kind in kinds}
            notes.append(f"{name} has {listed(kinds)}: they are 1 and 0")
        elif is_text:
            codes |= {name: {kind: code for code, kind in enumerate(kinds)}} if len(kinds) == 2 else {}
            encode |= {name: "onehot"} if len(kinds) != 2 else {}
            notes += [f"{name} has dates; {order}"] if order else []
        else:
            notes += filter(None, [_labels(name, column, kinds, numbers), _equal(name, kinds, numbers)])
    return codes, encode, drop, notes


def _order(name: str, kinds: Iterable[str]) -> str:
    """How a card has the rows in the order of a column of dates; "" for other texts."""
    formats = row_labels.formats_of(kinds)
    if not formats:
        return ""
    column = f"{{{name}: {' or '.join(map(json.dumps, formats))}}}" if formats[0] else name
    return f"for splits by time `order: {column}`"


def _labels(name: str, column: Sequence[str], kinds: Sequence[str], numbers: cells.Numbers) -> str:
    """A note of a column with a different whole number in each row, as labels of rows are; else ""."""
    if not 10 <= len(column) == len(kinds):
        return ""
    values = [value for kind in kinds if (value := numbers.parse(kind)) is not None]
    low, high = min(values), max(values)
    if len(values) < len(kinds) or high - low >= 2 * len(values) or not all(map(float.is_integer, values)):
        return ""
    return (
        f"{name} has a different whole number in each row, {low:.0f} to {high:.0f}; `drop: [{name}]` if it labels them"
    )


def _equal(name: str, kinds: Iterable[str], numbers: cells.Numbers) -> str:
    """A note of a column of numbers where one of them has two spellings as different as 1E2 and 100; else ""."""
    values = {kind: numbers.parse(kind) for kind in sorted(kinds)}
    if None in values.values():
        return ""
    powers = {value: kind for kind, value in values.items() if "e" in kind.lower()}
    plain = (kind for kind, value in values.items() if powers.get(value, kind) != kind)
    return f"{name}: {other} and {powers[values[other]]} are one number" if (other := next(plain, "")) else ""


def _require_numbers(name: str, column: Sequence[str], numbers: cells.Numbers, lines: Sequence[int]) -> None:
    """Raises DataError for a column of numbers in which a few cells are none."""
    known = {row: cell for row, cell in enumerate(column) if not numbers.is_missing(cell)}
    texts = {row: cell for row, cell in known.items() if numbers.parse(cell) is None}
    if 0 < len(texts) <= _FEW * len(known):
        row, cell = next(iter(texts.items()))
        raise DataError(
            f"column {name!r}: {len(known) - len(texts)} cells are numbers, and {len(texts)} not, as {cell!r}"
            f" ({first_rows([row])}): mend the table, or write a card where `missing`, `drop` or `skip: [{lines[row]}]`"
            " says what they are"
        )


def _marks(column: Sequence[str], numbers: cells.Numbers) -> set[str]:
    """Texts of a column of numbers that mark missing cells."""
    values = {cell: numbers.parse(cell) for cell in column if cell}
    others = {cell for cell, value in values.items() if value is None or math.isnan(value)}
    is_numeric = len(others) < len(values)
    return others if is_numeric and others and all(cell.lower() in UNKNOWN for cell in others) else set()


def _task(column: Sequence[str], numbers: cells.Numbers, is_nominal: bool) -> str:
    """The task by the labels: of text or of two values classes, of more numbers regression."""
    labels = [label for label in encoding.labels_and_keys(column, (), numbers)[0] if label]
    kinds = {*labels}
    is_text = is_nominal or any(cells.number(kind) is None for kind in kinds)
    if len(kinds) == 2:
        return "binary"
    if is_text and len(kinds) > min(_MOST_CLASSES, len(labels) // 2):
        raise ConfigError(f"the target has {len(kinds)} different texts, as {listed(sorted(kinds), 4)}: no classes")
    return "multiclass" if is_text else "regression"
