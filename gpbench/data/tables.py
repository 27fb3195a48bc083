"""The reader of users' tables: rows of text to arrays."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench import limits
from gpbench.data import archives, encoding, row_labels
from gpbench.data import cells as text
from gpbench.data.cells import Numbers
from gpbench.data.dataset import Raw
from gpbench.data.faults import UNKNOWN, Finding, SpellingError, reject
from gpbench.data.lines import COMMENT_MARKS, Cells, account, skip_also
from gpbench.errors import DataError, nearest, require

_ROLES = ("group", "order", "split")  # options that name columns which say something about rows
_DELIMITER = 'is the delimiter right, as in `delimiter: ";"` in the card?'
_TOTAL = re.compile(
    r"(grand |sub)?-?(total|sum|mean|average|median|summe|gesamt|mittelwert|somme|moyenne)s?[ .:]*", re.IGNORECASE
)
_UNIT = re.compile(r"\W*[^\W\d_]|\W?[%°‰]")


def table(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads delimited text, Excel sheets, Parquet, Feather or ARFF, without columns that only label the rows."""
    options = {key: value for key, value in options.items() if value is not None}
    targets = _listed(options["target"])
    files = [text.read(blob, options) for blob in blobs]
    header = options.get("header", isinstance(targets[0], str) or files[0].is_named)
    names, rows, lines = split_header(files, header)
    if header:
        _require_names(names, rows, lines, targets)
    columns = columns_of(rows, len(names), lines)
    require_different(filter(None, names))
    codes, specs = by_column(options, "codes"), by_column(options, "encode")
    time, format = row_labels.column_and_format(options.get("order"))
    remarks = "".join(f"; {note}" for file in files for note in file.notes)
    of_options = {"target": targets, "group": options.get("group"), "order": time, "split": options.get("split")}
    of_options |= {"drop": options.get("drop"), "keep": options.get("keep"), "codes": codes, "encode": specs}
    places = _places(names, of_options, remarks)
    to_keep = {*places["keep"], *places["codes"], *places["encode"]}
    # a time may also be an input
    excluded = {i for key in ("target", *_ROLES, "drop") for i in places[key]} - (to_keep & {*places["order"]})
    labels_of_rows = bookkeeping(names, columns, frozenset().union(*(file.labels for file in files)))
    left_out = {i: reason for i, reason in labels_of_rows.items() if i not in excluded | to_keep}
    inputs = [i for i in range(len(names)) if i not in excluded and i not in left_out]
    of_inputs = {names[i]: columns[i] for i in inputs}
    absent = {name: key for key in ("encode", "codes") for name in by_column(options, key) if name not in of_inputs}
    reject(f"{key}: no column {name!r} among the inputs; {nearest(name, of_inputs)}" for name, key in absent.items())
    numbers, skip = Numbers.from_options(options), options.get("skip", 0)
    plain = [columns[i] for i in [*inputs, *places["target"]] if names[i] not in codes | specs]
    if header and has_units(plain, numbers):
        units, mend = ", ".join(filter(None, rows[0]))[:60], f"skip: {skip_also(lines[0], skip)}"
        raise DataError(f"line {lines[0]} has no numbers ({units}): if it has the units, leave it out by `{mend}`")
    X, input_names, levels = encoding.inputs_of(of_inputs, numbers, specs, codes)
    labels, group, order, split = ([columns[i] for i in places[key]] for key in ("target", *_ROLES))
    split = [list(map(numbers.plain, cells)) for cells in split]
    titles = {role: [row_labels.label(names[i], role) for i in places[role]] for role in _ROLES}
    most = limits.memory(sum(map(archives.size_of, blobs)))
    arrays = {"header": [names], "target": labels, "`group`": group, "`order`": order, "`split`": split}
    for subject, of_text in arrays.items():
        _require_short(subject, of_text, most)
    notes = [Finding(note) for file in files for note in file.notes]
    numeric = [values for values, name in zip(X, input_names) if name in of_inputs]
    if _has_totals(columns, [*numeric, *map(_floats, labels)]):
        last = f"the last row, {len(rows)} (line {lines[-1]}), looks like totals of the others"
        notes.append(Finding(last, f"skip: {skip_also(lines[-1], skip)}" if len(files) == 1 else ""))
    return Raw(
        np.array(X).reshape(len(X), len(rows)).T,
        np.array(labels if len(labels) > 1 else labels[0]).T,
        tuple(input_names) if header or levels else (),
        outputs=tuple(names[i] for i in places["target"]) if header else (),
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


def _places(names: Sequence[str], options: Mapping, remarks: str) -> dict[str, list[int]]:
    """The columns that each option names.  Raises DataError: a column is absent, or of two that exclude it."""
    known = f"; the table has {', '.join(names[:20])}{f'; {_DELIMITER}' if len(names) == 1 else ''}"
    places = {key: [names.index(name) for name in options[key] if name in names] for key in ("codes", "encode")}
    for key in ("target", *_ROLES, "drop", "keep"):
        more = f"{known}{remarks}" if key == "target" else known
        places[key] = [position(names, column, f"no column {column!r}{more}") for column in _listed(options[key])]
    title = {key: f"in `{key}`" for key in places} | {role: f"`{role}`" for role in _ROLES} | {"target": "the target"}
    pairs = [*(("target", key) for key in (*_ROLES, "drop")), ("keep", "drop"), ("codes", "encode")]
    reject(
        f"column {names[i]!r} is {title[first]} and {title[second]}: "
        f"{'choose another column for' if second in _ROLES else 'leave it out of'} one"
        for first, second in pairs
        for i in sorted({*places[first]} & {*places[second]})
    )
    return places


def split_header(files: Sequence[Cells], header: bool) -> tuple[list[str], list[list[str]], list[int]]:
    """The names of the columns (their numbers without a header), the rows, and the lines with which these begin."""
    rows = [row for file in files for row in file.rows]
    lines = [line for file in files for line in file.lines]
    notes = [note for file in files for note in file.notes]
    require(len(rows) > header, "; ".join(["the table has no rows: name another file, or save this one again", *notes]))
    if not header:
        return [str(i) for i in range(len(rows[0]))], rows, lines
    names, rows = [cell.strip() for cell in rows[0]], rows[1:]
    widths = {len(row) for row in rows}
    if widths == {len(names) + 1} and not any(row[-1].strip() for row in rows):
        names.append("")  # of a delimiter at the end of each row
    elif names[0] in COMMENT_MARKS and widths == {len(names) - 1}:
        del names[0]
    return names, rows, lines[1:]


def _require_names(names: Sequence[str], rows: Sequence[list[str]], lines: Sequence[int], targets: Sequence) -> None:
    has_targets = {*map(str, targets)} <= {*names} or not all(isinstance(target, str) for target in targets)
    mark = names[0][: 1 + names[0].startswith("//")]
    mend = f'state `comment: "{mark}"`, or take {mark!r} away from the names of the columns'
    require(has_targets or mark not in COMMENT_MARKS, f"the first line begins with {mark!r}, as comments do: {mend}")
    mend = "as R writes names of rows: write the table with row.names=FALSE, or name the first column"
    is_wider = len(names) > 1 and {len(row) for row in rows} == {len(names) + 1}
    require(not is_wider, f"the header has {len(names)} names, and all rows have {len(names) + 1} cells, {mend}")
    if late := later_header(names, rows, targets):
        line = lines[late - 1]
        absent = f"the first line has no {targets[0]!r}, and line {line} has"
        raise DataError(f"{absent}: leave out the lines above by `skip: {line - 1}`")


def later_header(names: Sequence[str], rows: Sequence[Sequence[str]], targets: Sequence) -> int:
    """The number of a row, from 1, that names the targets where the first line does not; 0 for none."""
    if not all(isinstance(target, str) for target in targets) or {*targets} <= {*names}:
        return 0
    return next((k for k, row in enumerate(rows[:20], 1) if {*targets} <= {cell.strip() for cell in row}), 0)


def require_different(names: Iterable[str]) -> None:
    """Raises DataError for a name that stands twice in a header."""
    counts = Counter(names).items()
    reject(f"the header has {name!r} more than once; rename the columns" for name, count in counts if count > 1)


def _require_short(subject: str, columns: Sequence[Sequence[str]], most: int) -> None:
    """Raises DataError for texts whose array, in which each takes as much memory as the longest, is too large."""
    count, longest = sum(map(len, columns)), max(map(len, chain(*columns)), default=0)
    fact = f"the {subject} has {count:,} texts, one of them of {longest:,} characters: shorten it"
    require(16 * count * longest <= most, fact)


def _floats(cells: Sequence[str]) -> Float[np.ndarray, " N"]:
    """The numbers of a column; NaN for all where one is none."""
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.full(len(cells), np.nan)


def _listed(value: Any) -> list:
    """One or several names of columns as a list; none for None."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def by_column(options: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An option of a source that is a mapping from columns, whose names may be numbers."""
    return {str(name): value for name, value in (options.get(key) or {}).items()}


def split_table(content: bytes) -> np.ndarray:
    """Reads a file of fixed splits, (N, splits): a header, and then a line for each row of the data."""
    names, rows, _ = split_header([text.read(content, {})], True)
    columns = columns_of(rows, len(names))
    _require_short("table", columns, limits.memory(archives.size_of(content)))
    return row_labels.fixed_parts([f"column {name!r}" for name in names], np.array(columns).T)


def columns_of(rows: Sequence[Sequence[str]], width: int, lines: Sequence[int] = ()) -> list[list[str]]:
    """The cells of each column of a table of this width, stripped.  Raises DataError for a row of another length."""
    if ragged := [i for i, row in enumerate(rows) if len(row) != width]:
        first, line, mend = ragged[0], "", _DELIMITER
        if lines:
            line = f" (line {lines[first]}: {', '.join(rows[first])[:30]!r})"
            mend = f"mend it, or leave it out by `skip: [{lines[first]}]`" if len(ragged) < len(rows) else mend
        raise SpellingError(f"row {first + 1} has {len(rows[first])} cells, not {width}{line}", mend)
    return [[row[i].strip() for row in rows] for i in range(width)]


def position(names: Sequence[str], column: Any, fault: str, error: type[Exception] = DataError) -> int:
    """The index of a column, from its name or its number.  Raises an error where the table has no such column."""
    if str(column) in names:
        return names.index(str(column))
    require(isinstance(column, int) and -len(names) <= column < len(names), fault, error)
    return column % len(names)


def bookkeeping(header: Sequence[str], columns: Sequence[Sequence[str]], index: frozenset[str]) -> dict[int, str]:
    """Columns that number or label the rows, and so are no inputs unless a card keeps them, each with the reason."""
    reasons = {}
    for i, (name, cells) in enumerate(zip(header, columns)):
        if name in index or re.fullmatch(r"__index_level_\d+__", name):
            reasons[i] = f"{name!r} is the index of a DataFrame"
        elif not name or re.fullmatch(r"Unnamed: \d+", name):
            reasons[i] = f"column {i + 1} has no name"
        elif len(cells) >= 10 and cells[0] in ("0", "1"):
            numbers = map(str, range(int(cells[0]), len(cells) + 1))
            reasons |= {i: f"{name!r} numbers the rows"} if all(map(str.__eq__, cells, numbers)) else {}
    return reasons


def has_units(columns: Iterable[Sequence[str]], numbers: Numbers) -> bool:
    """Whether the first row has a text, and no number, in the columns whose other cells are numbers."""
    first = [column[0] for column in columns]
    if any(numbers.parse(cell) is not None for cell in first) or len(next(iter(columns), ())) < 2:
        return False
    of_numbers = [
        column[0]
        for column in columns
        if len(known := [c for c in column[1:] if c.lower() not in UNKNOWN and not numbers.is_missing(c)])
        and all(numbers.parse(cell) is not None for cell in known)
    ]
    return any(_UNIT.match(cell) and cell.lower() not in UNKNOWN for cell in of_numbers)


def _has_totals(texts: Iterable[Sequence[str]], columns: Sequence[Float[np.ndarray, " N"]]) -> bool:
    """Whether the last row is named so in a column of text, or has the sums or means of most columns of numbers."""
    for cells in texts:
        if _TOTAL.fullmatch(cells[-1]) and sum(map(bool, map(_TOTAL.fullmatch, cells))) <= 1 + len(cells) // 50:
            return True
    is_sum, is_mean = [], []
    for column in columns:
        others, last = column[:-1][~np.isnan(column[:-1])], column[-1]
        if np.isnan(last) or len(others) < 3 or not np.ptp(others):
            continue
        with np.errstate(all="ignore"):  # of numbers near the largest
            is_sum.append(abs(last) > np.abs(others).max() and abs(last - others.sum()) <= 1e-4 * abs(last))
            is_mean.append(abs(last - others.mean()) <= 1e-4 * np.ptp(others))
    return any(len(kind) / 2 < sum(kind) > 1 for kind in (is_sum, is_mean))
