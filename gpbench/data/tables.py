"""The reader of users' tables: rows of text to arrays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench import limits
from gpbench.data import archives, encoding, odd_rows, row_labels
from gpbench.data import cells as text
from gpbench.data.cells import Numbers
from gpbench.data.dataset import Raw
from gpbench.data.delimited import COMMENT_MARKS
from gpbench.data.faults import Finding, SpellingError
from gpbench.data.lines import Cells, account, skip_also
from gpbench.errors import DataError, nearest

_DELIMITER = 'is the delimiter right, as in `delimiter: ";"` in the card?'


def table(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads delimited text, Excel sheets, Parquet, Feather or ARFF; several files are one table.

    Columns that only label the rows (the index of a DataFrame, a column without a name, one that counts the rows) are
    no inputs unless `keep` names them.  Raises DataError: a file is damaged, a column is absent, or a cell is no
    number; the message names column and row.
    """
    options = {key: value for key, value in options.items() if value is not None}
    targets = _listed(options["target"])
    files = [text.read(blob, options) for blob in blobs]
    header = options.get("header", isinstance(targets[0], str) or files[0].is_named)
    names, rows, lines = split_header(files, header)
    if header:
        _require_names(names, rows, lines, targets)
    columns = columns_of(rows, len(names), lines)
    if repeated := [name for name, count in Counter(filter(None, names)).items() if count > 1]:
        raise DataError(f"the header has {repeated[0]!r} more than once; rename the columns")
    remarks = "".join(f"; {note}" for file in files for note in file.notes)
    target_columns = [_position(names, target, header, remarks) for target in targets]
    time, format = row_labels.column_and_format(options.get("order"))
    roles = {"group": options.get("group"), "order": time, "split": options.get("split")}
    of_rows = {role: [_position(names, name, header) for name in _listed(value)] for role, value in roles.items()}
    if doubled := [role for role, columns in of_rows.items() if not {*columns}.isdisjoint(target_columns)]:
        role = doubled[0]
        raise DataError(f"column {roles[role]!r} is the target and `{role}`: choose another column for one")
    drop = {_position(names, column, header) for column in options.get("drop", ())}
    to_keep = {_position(names, column, header) for column in options.get("keep", ())}
    for role, others in (("the target", {*target_columns}), ("in `keep`", to_keep)):
        if both := sorted(drop & others):
            raise DataError(f"column {names[both[0]]!r} is {role} and in `drop`: leave it out of one")
    excluded = {*target_columns, *(i for columns in of_rows.values() for i in columns), *drop}
    codes = {str(name): numbers for name, numbers in (options.get("codes") or {}).items()}
    specs = {str(name): spec for name, spec in (options.get("encode") or {}).items()}
    if doubled := sorted(codes.keys() & specs.keys()):
        raise DataError(f"column {doubled[0]!r} is in `codes` and in `encode`; leave it out of one")
    keep = to_keep | {_position(names, name, header) for name in {**codes, **specs} if name in names}
    excluded -= keep & {*of_rows["order"]}  # a time may also be an input
    labels_of_rows = text.bookkeeping(names, columns, frozenset().union(*(file.labels for file in files)))
    left_out = {i: reason for i, reason in labels_of_rows.items() if i not in excluded | keep}
    inputs = [i for i in range(len(names)) if i not in excluded and i not in left_out]
    if uncoded := [name for name in {**codes, **specs} if name not in {names[i] for i in inputs}]:
        key, hint = "codes" if uncoded[0] in codes else "encode", nearest(uncoded[0], [names[i] for i in inputs])
        raise DataError(f"{key}: no column {uncoded[0]!r} among the inputs; {hint}")
    numbers, skip = Numbers.from_options(options), options.get("skip", 0)
    plain = [columns[i] for i in [*inputs, *target_columns] if names[i] not in {**codes, **specs}]
    if header and odd_rows.has_units(plain, numbers):
        units, mend = ", ".join(filter(None, rows[0]))[:60], skip_also(lines[0], skip)
        raise DataError(
            f"line {lines[0]} has no numbers ({units}): if it has the units, leave it out by `skip: {mend}`"
        )
    X, input_names, levels = encoding.inputs_of({names[i]: columns[i] for i in inputs}, numbers, specs, codes)
    labels = [columns[i] for i in target_columns]
    group, order = ([columns[i] for i in of_rows[role]] for role in ("group", "order"))
    split = [list(map(numbers.plain, columns[i])) for i in of_rows["split"]]
    titles = {role: [row_labels.label(names[i], role) for i in indices] for role, indices in of_rows.items()}
    most = limits.memory(sum(map(archives.size_of, blobs)))
    arrays = {"header": [names], "target": labels, "`group`": group, "`order`": order, "`split`": split}
    for subject, of_text in arrays.items():
        _require_short(subject, of_text, most)
    notes = [Finding(note) for file in files for note in file.notes]
    known = {*names}
    numeric = [values for values, name in zip([*X, *map(_floats, labels)], [*input_names, *names]) if name in known]
    if odd_rows.has_totals(columns, numeric):
        last = f"the last row, {len(rows)} (line {lines[-1]}), looks like totals of the others"
        notes.append(Finding(last, f"skip: {skip_also(lines[-1], skip)}" if len(files) == 1 else ""))
    return Raw(
        np.array(X).reshape(len(X), len(rows)).T,
        np.array(labels if len(target_columns) > 1 else labels[0]).T,
        tuple(input_names) if header or levels else (),
        outputs=tuple(names[i] for i in target_columns) if header else (),
        levels=levels,
        numbers=numbers,
        groups=group[0] if group else (),
        order=row_labels.times(titles["order"][0], order[0], numbers, format) if order else (),
        split=row_labels.fixed_parts(titles["split"], np.array(split).T) if split else (),
        # a trailing delimiter makes a column without name and cells, of which nobody needs to hear
        left_out=tuple(reason for i, reason in left_out.items() if any(columns[i])),
        account=account(files, header, len(rows)),
        notes=tuple(notes),
    )


def split_header(files: Sequence[Cells], header: bool) -> tuple[list[str], list[list[str]], list[int]]:
    """The names of the columns (their numbers without a header), the rows, and the lines with which these begin."""
    rows = [row for file in files for row in file.rows]
    lines = [line for file in files for line in file.lines]
    if len(rows) <= header:
        raise DataError("; ".join(["the table has no rows", *(note for file in files for note in file.notes)]))
    if not header:
        return [str(i) for i in range(len(rows[0]))], rows, lines
    names, rows = [cell.strip() for cell in rows[0]], rows[1:]
    widths = {len(row) for row in rows}
    if widths == {len(names) + 1} and not any(row[-1].strip() for row in rows):
        names.append("")  # of a delimiter at the end of each row
    elif names[0] in COMMENT_MARKS and widths == {len(names) - 1}:
        del names[0]
    return names, rows, lines[1:]


def _require_names(
    names: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[int], targets: Sequence
) -> None:
    """Raises DataError for a first line that is no header of the rows."""
    has_targets = {*map(str, targets)} <= {*names} or not all(isinstance(target, str) for target in targets)
    if not has_targets and (mark := names[0][: 1 + names[0].startswith("//")]) in COMMENT_MARKS:
        mend = f'state `comment: "{mark}"`, or take {mark!r} away from the names of the columns'
        raise DataError(f"the first line begins with {mark!r}, as comments do: {mend}")
    if len(names) > 1 and {len(row) for row in rows} == {len(names) + 1}:
        raise DataError(
            f"the header has {len(names)} names, and all rows have {len(names) + 1} cells, as R writes names of rows:"
            " write the table with row.names=FALSE, or name the first column"
        )
    if late := later_header(names, rows, targets):
        line = lines[late - 1]
        absent = f"the first line has no {targets[0]!r}, and line {line} has"
        raise DataError(f"{absent}: leave out the lines above by `skip: {line - 1}`")


def later_header(names: Sequence[str], rows: Sequence[Sequence[str]], targets: Sequence) -> int:
    """The number of a row, from 1, that names the targets where the first line does not; 0 for none."""
    if not all(isinstance(target, str) for target in targets) or {*targets} <= {*names}:
        return 0
    return next((k for k, row in enumerate(rows[:20], 1) if {*targets} <= {cell.strip() for cell in row}), 0)


def _require_short(subject: str, columns: Sequence[Sequence[str]], most: int) -> None:
    """Raises DataError for texts whose array, in which each takes as much memory as the longest, is too large."""
    count, longest = sum(map(len, columns)), max(map(len, chain(*columns)), default=0)
    if 16 * count * longest > most:
        raise DataError(f"the {subject} has {count:,} texts, one of them of {longest:,} characters: shorten it")


def _floats(cells: Sequence[str]) -> Float[np.ndarray, " N"]:
    """The numbers of a column; NaN for all where one is none."""
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.full(len(cells), np.nan)


def _listed(value: Any) -> list:
    """One or several names of columns as a list; none for None."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def split_table(content: bytes, options: Mapping) -> np.ndarray:
    """Reads a file of fixed splits, (N, splits): a header, and then a line for each row of the data.  Raises DataError:
    the file is damaged, or says neither train nor test.
    """
    rows = text.read(content, options).rows
    if len(rows) < 2:
        raise DataError("the table has no rows")
    names = [f"column {cell.strip()!r}" for cell in rows[0]]
    columns = columns_of(rows[1:], len(names))
    _require_short("table", columns, limits.memory(archives.size_of(content)))
    return row_labels.fixed_parts(names, np.array(columns).T)


def columns_of(rows: Sequence[Sequence[str]], width: int, lines: Sequence[int] = ()) -> list[list[str]]:
    """The cells of each column of a table of this width, stripped.  Raises DataError for a row of another length."""
    if ragged := [i for i, row in enumerate(rows) if len(row) != width]:
        first, line, mend = ragged[0], "", _DELIMITER
        if lines:
            line = f" (line {lines[first]}: {', '.join(rows[first])[:30]!r})"
            mend = f"mend it, or leave it out by `skip: [{lines[first]}]`" if len(ragged) < len(rows) else mend
        raise SpellingError(f"row {first + 1} has {len(rows[first])} cells, not {width}{line}", mend)
    return [[row[i].strip() for row in rows] for i in range(width)]


def _position(names: Sequence[str], column: Any, header: bool, remarks: str = "") -> int:
    """The index of a column, from its name or its number.  Raises DataError where the table has no such column."""
    if header and str(column) in names:
        return names.index(str(column))
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if column not in names:
        hint = f"; {_DELIMITER}" * (len(names) == 1)
        raise DataError(f"no column {column!r}; the table has {', '.join(names[:20])}{hint}{remarks}")
    return names.index(column)
