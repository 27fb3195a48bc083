"""A guess at a table without a card, which becomes a card; nothing that is read later depends on a guess."""

import functools
import json
import math
import re
from collections.abc import Iterable, Sequence, Set
from itertools import compress
from pathlib import Path
from typing import Any

from gpbench.data import cells, encoding, row_labels, tables
from gpbench.data.faults import UNKNOWN, first_rows, is_misspelt
from gpbench.data.lines import COMMENT_MARKS, Cells, DelimiterError, skip_also
from gpbench.data.readers import libsvm
from gpbench.errors import ConfigError, DataError, listed, nearest, require

LIBSVM = (".libsvm", ".svm", ".svmlight")  # endings of files of libsvm

_MOST_CLASSES = 50
_FEW = 0.05  # largest share of texts in a column that is taken for one of numbers
_MOST_LEVELS = 20  # largest number of texts of a column that become columns of their own
_LONGEST_LEVEL = 200  # largest number of characters of a text that becomes a level
_SOME = 50  # rows by which a delimiter is chosen
_MOST_REASONS = 5  # largest number of columns that are left out with a reason for each


def guess(
    content: bytes, title: str, target: Any, labels: Sequence[str] = ()
) -> tuple[str, dict[str, Any], list[str], list[str]]:
    """Guesses how a table is to be read: a task, options of a card's source, both in words, and notes."""
    if Path(title).suffix.lower() in LIBSVM:
        return _libsvm(content, target)
    targets = target if isinstance(target, list) else [target]
    options, table = guess_spelling(content, target)
    numbers = cells.Numbers.from_options(options)
    is_number = [numbers.parse(cell.strip()) is not None for row in table.rows[:1] for cell in row]
    # without a header a target is a number; a first row with a text and a number may then be one of the rows
    header = table.is_named or not (any if all(isinstance(entry, int) for entry in targets) else all)(is_number)
    names, rows, lines = tables.split_header([table], header)
    if target is None:
        known = f"columns are {listed(names, 20)}"
        raise ConfigError(f"dataset={title}: name the column to predict by target=NAME; {known}")
    fits = [len(row) == len(names) for row in rows]  # others are refused where they are read
    if not any(fits) or (header and tables.later_header(names, rows, targets)):
        tables.table([content], {**options, "target": target})  # says what is wrong
    positions = []
    for entry in targets:
        hint = "; ".join([nearest(str(entry), names) if names else "the file is empty", *table.notes])
        fault = f"target={entry}: no such column in {title}; {hint}"
        positions.append(tables.position(names, entry, fault, ConfigError))
    rows, lines = [*compress(rows, fits)], [*compress(lines, fits)]
    columns = tables.columns_of(rows, len(names))
    inputs = [i for i, name in enumerate(names) if i not in positions and name not in labels]
    of_numbers, units = [*inputs, *positions], ""
    if header and tables.has_units([columns[i] for i in of_numbers], numbers):
        options["skip"] = skip_also(lines[0], options.get("skip", 0))
        units = f"line {lines[0]} left out, as one of units ({', '.join(filter(None, rows[0]))[:40]})"
        columns, lines = [column[1:] for column in columns], lines[1:]
    if marks := {cell for i in of_numbers for cell in _marks(columns[i], numbers)}:
        options["missing"] = sorted(marks)
        numbers = cells.Numbers.from_options(options)
    parsed = {i: _Column(names[i], columns[i], numbers) for i in of_numbers}
    for column in parsed.values():
        column.require_numbers(lines)
    counted = tables.bookkeeping(names, columns, table.labels)
    codes, encode, drop, notes = _options([parsed[i] for i in inputs if i not in counted])
    if drop and all(i in counted or names[i] in drop for i in inputs):  # says why the first of them is none
        encoding.parsed(columns[names.index(first := next(iter(drop)))], first, numbers, None)
    of_source = {"codes": codes, "encode": encode, "drop": [*labels, *drop]}
    options |= {key: value for key, value in of_source.items() if value}
    notes += filter(None, [parsed[i].equal() for i in positions])
    task = "regression"
    if len(positions) == 1:
        task = _task(columns[positions[0]], numbers, is_nominal=names[positions[0]] in table.nominal)
    target_names = [names[i] if header else i for i in positions]
    reasons = [f"{name} left out ({reason})" for name, reason in drop.items()]
    if len(reasons) > _MOST_REASONS:
        reasons[_MOST_REASONS:] = [f"{len(reasons) - _MOST_REASONS} more left out"]
    summary = [f"{task} of {listed(map(str, target_names))}", "decimal comma" if "decimal" in options else "", units]
    summary += [*reasons, f"codes for {listed(codes)}" if codes else ""]
    summary += [f"columns for the texts of {listed(encode)}" if encode else ""]
    return task, {"target": target_names if isinstance(target, list) else target_names[0], **options}, summary, notes


def _libsvm(content: bytes, target: Any) -> tuple[str, dict[str, Any], list[str], list[str]]:
    """The guess at lines of libsvm."""
    require(target is None, f"target={target}: lines of libsvm begin with the target: leave target out", ConfigError)
    raw = libsvm([content], {})
    task, count = _task([*map(str, raw.target)], cells.DECIMAL_POINT, is_nominal=False), raw.X.shape[1]
    return task, {"reader": "libsvm", "inputs": count}, [task, f"{count} inputs"], []


class _Column:
    """A column of a table, of whose cells each text is parsed once."""

    def __init__(self, name: str, cells: Sequence[str], numbers: cells.Numbers):
        self.name, self.cells, self.numbers = name, cells, numbers
        self.known = [cell for cell in cells if not numbers.is_missing(cell)]
        self.values = {text: numbers.parse(text) for text in sorted({*self.known})}
        self.texts = {text.lower() for text in self.values}
        self.is_text = None in self.values.values() and not self.texts <= {"true", "false"}

    @functools.cached_property
    def order(self) -> str:
        """How a card has the rows in the order of a column of dates; "" for other texts."""
        formats = row_labels.formats_of(self.values) if self.is_text else []
        column = f"{{{self.name}: {' or '.join(map(json.dumps, formats))}}}" if any(formats) else self.name
        return f"for splits by time `order: {column}`" if formats else ""

    def require_numbers(self, lines: Sequence[int]) -> None:
        """Raises DataError for a column of numbers in which a few cells are none."""
        texts = [row for row, cell in enumerate(self.cells) if self.values.get(cell, 0.0) is None]
        if 0 < len(texts) <= _FEW * len(self.known):
            row, count = texts[0], len(self.known) - len(texts)
            fact = f"{count} cells are numbers, and {len(texts)} not, as {self.cells[row]!r} ({first_rows([row])})"
            mend = f"write a card where `missing`, `drop` or `skip: [{lines[row]}]` says what they are"
            raise DataError(f"column {self.name!r}: {fact}: mend the table, or {mend}")

    def unfit(self) -> str:
        """Why it is no input, "" for one that is.  Raises DataError for numbers in another spelling."""
        known, count = self.known, len(self.cells)
        if 2 * len(known) < count:
            return f"{count - len(known):,} of {count:,} cells are missing"
        if self.is_text and (longest := max(map(len, self.values))) > _LONGEST_LEVEL:
            return f"texts of up to {longest:,} characters"
        if not self.is_text or len(self.values) <= min(_MOST_LEVELS, len(known) // 4):
            return ""
        texts = [cell for cell in known if self.values[cell] is None]
        if 2 * sum(map(is_misspelt, texts)) > len(texts):
            encoding.parsed(self.cells, self.name, self.numbers, None)  # says what is wrong
        others = f"{len(known) - len(texts):,} numbers and " if len(texts) < len(known) else ""
        noun = "dates" if self.order else "texts"
        if all(text.lstrip("+-").isdigit() for text in texts):
            noun = "whole numbers beyond 2^53, which float64 cannot hold"
        return f"{others}{len(texts):,} {noun}, as {texts[0][:20]!r}{f'; {self.order}' if self.order else ''}"

    def label(self) -> str:
        """A note of a different whole number in each row, as labels of rows are; else ""."""
        values = [value for value in self.values.values() if value is not None and value.is_integer()]
        if not 10 <= len(self.cells) == len(values) or (low := min(values)) + 2 * len(values) <= (high := max(values)):
            return ""
        fact = f"{self.name} has a different whole number in each row, {low:.0f} to {high:.0f}"
        return f"{fact}; `drop: [{self.name}]` if it labels them"

    def equal(self) -> str:
        """A note of numbers of which one has two spellings as different as 1E2 and 100; else ""."""
        powers = {value: text for text, value in self.values.items() if "e" in text.lower()}
        plain = next((text for text, value in self.values.items() if powers.get(value, text) != text), "")
        are_numbers = plain and None not in self.values.values()
        return f"{self.name}: {plain} and {powers[self.values[plain]]} are one number" if are_numbers else ""


def _options(inputs: Iterable[_Column]) -> tuple[dict[str, dict[str, int]], dict[str, str], dict[str, str], list[str]]:
    """The codes and the encodings of columns of text, columns to leave out with the reason, and notes."""
    codes: dict[str, dict[str, int]] = {}
    encode: dict[str, str] = {}
    drop: dict[str, str] = {}
    notes: list[str] = []
    for column in inputs:
        name = column.name
        if reason := column.unfit():
            drop[name] = reason
        elif not column.is_text:
            notes += filter(None, [column.label(), column.equal()])
        elif column.texts <= {"true", "false", "1", "0"}:
            codes[name] = {kind: int(kind.lower() in ("true", "1")) for kind in column.values}
            notes.append(f"{name} has {listed(column.values)}: they are 1 and 0")
        elif len(column.values) == 2:
            codes[name] = {kind: code for code, kind in enumerate(column.values)}
        else:
            encode[name] = "onehot"
        notes += [f"{name} has dates; {column.order}"] if column.order and name not in drop else []
    return codes, encode, drop, notes


def _marks(column: Sequence[str], numbers: cells.Numbers) -> set[str]:
    """Texts of a column of numbers that mark missing cells."""
    values = {cell: numbers.parse(cell) for cell in column if cell}
    others = {cell for cell, value in values.items() if value is None or math.isnan(value)}
    are_marks = len(others) < len(values) and all(cell.lower() in UNKNOWN for cell in others)
    return others if are_marks else set()


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


def guess_spelling(content: bytes, target: Any) -> tuple[dict[str, Any], Cells]:
    """The options of a source where they are not the usual ones, and the table.  Raises DataError."""
    targets = {*map(str, target if isinstance(target, list) else [target])}
    if sign := re.match(rb"(?:\xef\xbb\xbf)?sep=(.)\r?\n", content):  # Excel's own first line
        options: dict[str, Any] = {"skip": 1, "delimiter": sign[1].decode(errors="replace")}
        return options, cells.read(content, options)
    readings: list[tuple[tuple[bool, bool, float], dict[str, Any], list[list[str]]]] = []
    faults: dict[str, DelimiterError] = {}
    for delimiter in (",", ";", "\t", "|", "space"):
        if delimiter == "space" and any(merits[0] for merits, _, _ in readings):
            continue  # there may be blanks in the names and texts of any table
        options = {"delimiter": delimiter} if delimiter != "," else {}
        try:
            table = cells.read(content, options)
            if table.is_named:
                return {}, table
            options |= (comments := _comments(table, targets))
            rows = (cells.read(content, options) if comments else table).rows[:_SOME]
        except DelimiterError as error:
            faults[delimiter] = error.with_traceback(None)  # which would keep what was read
        else:
            readings.append((_merits(rows, targets), options, rows))
    fits = [reading for reading in readings if reading[0][0] or (any(reading[0]) and "," not in faults)]
    if not fits and faults:
        raise next(iter(faults.values()))
    _, options, rows = max(fits, key=lambda reading: reading[0]) if fits else readings[0]
    if "delimiter" in options:
        options |= _decimal(rows)
    return options, cells.read(content, options)


def _merits(rows: Sequence[Sequence[str]], targets: Set[str]) -> tuple[bool, bool, float]:
    """Merits of a delimiter: it makes the targets a name each, rows of one width, and cells that are numbers."""
    if {*map(len, rows)} <= {1}:
        return False, False, 0.0
    stripped = [[cell.strip() for cell in row] for row in rows]
    some = [cells.number(cell.replace(",", ".", 1)) is not None for row in stripped[1:] for cell in row]
    return any(targets <= {*row} for row in stripped[:20]), len({*map(len, rows)}) == 1, sum(some) / max(1, len(some))


def _comments(table: Cells, targets: Set[str]) -> dict[str, Any]:
    """The option that leaves out comments at the top; none where the first line names the targets."""
    first = [cell.strip() for cell in table.rows[0]] if table.rows else [""]
    mark = next((mark for mark in COMMENT_MARKS if first[0].startswith(mark)), None)
    if mark is None or targets <= {*first}:
        return {}
    start = next((i for i, row in enumerate(table.rows) if not row[0].startswith(mark)), 0)
    rows = table.rows[start:]
    is_in_cells = any(row[0].startswith(mark) and len(row) == len(rows[0]) for row in rows)
    return {"skip": table.lines[start] - 1} if is_in_cells else {"comment": mark}


def _decimal(rows: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The option for a comma in most rows.  Raises DataError where it may separate thousands."""
    split = [cell.strip() for row in rows for cell in row if re.fullmatch(r"[+-]?\d+,\d+", cell.strip())]
    if len(split) <= len(rows) // 2:
        return {}
    if all(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", cell) for cell in split):
        signs = '`thousands: ","` or `decimal: ","`'
        raise DataError(f"{split[0]!r}: its comma may separate thousands or decimals: write a card that states {signs}")
    return {"decimal": ","}
