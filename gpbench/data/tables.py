"""Tables of users: rows of text to arrays, for a data set and for new rows to predict."""

from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gpbench.data import cells as text
from gpbench.data import encoding
from gpbench.data.cells import Numbers
from gpbench.data.containers import text_of
from gpbench.data.dataset import Dataset, Raw, check_finite
from gpbench.data.store import warn
from gpbench.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

_SPELLING = ("delimiter", "missing", "codes", "encode", "sheet", "encoding", "comment", "decimal", "thousands")
"""Options of a source that hold for new rows too."""


def table(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Reads delimited text, Excel sheets, Parquet, Feather or ARFF; several files are one table.

    Columns that only label the rows (the index of a DataFrame, a column without a name, one that counts the rows) are
    no inputs unless `keep` names them.

    Args:
        blobs: the files.
        options: `target` column name (then there is a header) or number (negative from the end), a list of them for
            several outputs, `group` the column that says which rows belong together, `order` that of their time,
            `split` that of fixed splits (or a list of them), `header`, `drop` and `keep` columns, `missing` markers,
            `decimal` and `thousands` signs, `codes` {column: {text: number}}, `encode` {column: onehot, or
            ordinal}, and those of `gpbench.data.cells.read`.

    Raises:
        DataError: a file is damaged, a column is absent, or a cell is no number; the message names column and row.
    """
    options = {key: value for key, value in options.items() if value is not None}
    targets = _listed(options["target"])
    header = options.get("header", isinstance(targets[0], str) or text.has_header(blobs[0]))
    files = [text.read(blob, options) for blob in blobs]
    rows = [row for file in files for row in file.rows]
    if len(rows) <= header:
        raise DataError("the table has no rows")
    names = [cell.strip() for cell in rows.pop(0)] if header else [str(i) for i in range(len(rows[0]))]
    columns = _columns(rows, len(names))
    if repeated := [name for name, count in Counter(filter(None, names)).items() if count > 1]:
        raise DataError(f"the header has {repeated[0]!r} more than once; rename the columns")
    target_columns = [_position(names, target, header) for target in targets]
    roles = {"group": options.get("group"), "order": options.get("order"), "split": options.get("split")}
    of_rows = {role: [_position(names, name, header) for name in _listed(value)] for role, value in roles.items()}
    excluded = {
        *target_columns,
        *(i for columns in of_rows.values() for i in columns),
        *(_position(names, drop, header) for drop in options.get("drop", ())),
    }
    codes = {str(name): numbers for name, numbers in (options.get("codes") or {}).items()}
    specs = {str(name): spec for name, spec in (options.get("encode") or {}).items()}
    if doubled := sorted(codes.keys() & specs.keys()):
        raise DataError(f"column {doubled[0]!r} is in `codes` and in `encode`; leave it out of one")
    explicit = [*options.get("keep", ()), *(name for name in {**codes, **specs} if name in names)]
    keep = {_position(names, name, header) for name in explicit}
    excluded -= keep & {*of_rows["order"]}  # a time may also be an input
    labels_of_rows = text.bookkeeping(names, columns, frozenset().union(*(file.labels for file in files)))
    left_out = {i: reason for i, reason in labels_of_rows.items() if i not in excluded | keep}
    inputs = [i for i in range(len(names)) if i not in excluded and i not in left_out]
    if uncoded := [name for name in {**codes, **specs} if name not in {names[i] for i in inputs}]:
        key, hint = "codes" if uncoded[0] in codes else "encode", nearest(uncoded[0], [names[i] for i in inputs])
        raise DataError(f"{key}: no column {uncoded[0]!r} among the inputs; {hint}")
    numbers = Numbers.from_options(options)
    levels = {
        names[i]: encoding.levels_of(columns[i], names[i], specs[names[i]], numbers)
        for i in inputs
        if names[i] in specs
    }
    X, input_names = [], []
    for i in inputs:
        if (name := names[i]) in specs:
            X += encoding.encoded(columns[i], specs[name], levels[name], numbers)[0]
            input_names += encoding.names_of(name, specs[name], levels[name])
        else:
            X.append(encoding.parsed(columns[i], name, numbers, codes.get(name)))
            input_names.append(name)
    labels = [list(map(numbers.plain, columns[i])) for i in target_columns]
    group, order, split = ([list(map(numbers.plain, columns[i])) for i in indices] for indices in of_rows.values())
    return Raw(
        np.array(X).reshape(len(X), len(rows)).T,
        np.array(labels if len(target_columns) > 1 else labels[0]).T,
        tuple(input_names) if header or levels else (),
        outputs=tuple(names[i] for i in target_columns) if header else (),
        levels=levels,
        groups=group[0] if group else (),
        order=order[0] if order else (),
        split=np.array(split).T,
        # a trailing delimiter makes a column without name and cells, of which nobody needs to hear
        left_out=tuple(reason for i, reason in left_out.items() if any(columns[i])),
    )


_MEND = "mend them, or leave these rows out"
_DELIMITER = 'is the delimiter right, as in `delimiter: ";"` in the card?'


def _listed(value: Any) -> list:
    """One or several names of columns as a list; none for None."""
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def split_table(content: bytes, options: Mapping) -> np.ndarray:
    """Reads a file of fixed splits, (N, splits) of text: a header, and then a line for each row of the data.

    Raises:
        DataError: the file is damaged.
    """
    rows = text.read(content, options).rows
    if len(rows) < 2:
        raise DataError("the table has no rows")
    return np.array(_columns(rows[1:], len(rows[0]))).T


def _columns(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """The cells of each column, stripped.  Raises DataError for a row of another length."""
    if ragged := [i for i, row in enumerate(rows) if len(row) != width]:
        raise DataError(f"row {ragged[0] + 1} has {len(rows[ragged[0]])} cells, not {width}; {_DELIMITER}")
    return [[cell.strip() for cell in column] for column in zip(*rows)]


def _position(names: Sequence[str], column: Any, header: bool) -> int:
    """The index of a column, from its name or its number.  Raises DataError where the table has no such column."""
    if header and str(column) in names:
        return names.index(str(column))
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if column not in names:
        raise DataError(f"no column {column!r}; the table has {', '.join(names[:20])}")
    return names.index(column)


def new_inputs(
    rows: "Float[np.ndarray, 'T D'] | pd.DataFrame | str | PathLike[str]",
    card: Mapping[str, Any],
    dataset: Dataset,
    *,
    header: bool = True,
) -> Float[np.ndarray, "T D"]:
    """The inputs of all rows, in original units and the order of the data set's columns.

    Args:
        rows: an array (T, D), a DataFrame, or the path of a table.  Columns of a table are taken by name, in any order
            and case, and other columns are ignored.  Cells are read as those of the data set: same codes, markers of
            missing cells, signs and encoding.
        card: the data card.
        dataset: the data set.
        header: False for a file without a header, which has exactly the inputs, in their order.

    Raises:
        DataError: a file that cannot be read, columns that lack, another number of columns, or cells that are not
            finite numbers.
    """
    if isinstance(rows, str | PathLike):
        return _from_file(Path(rows), card, dataset, header)
    options = _options(card)
    if not isinstance(rows, np.ndarray) and hasattr(rows, "itertuples"):
        cells = [list(map(text_of, row)) for row in rows.itertuples(index=False, name=None)]
        has_names = list(rows.columns) != list(range(len(rows.columns)))  # what pandas calls columns without names
        table = [[str(name) for name in rows.columns], *cells] if has_names else cells
        return _from_cells(table, options, dataset, has_names)
    try:
        X = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X is no array of numbers (T, {dataset.X.shape[1]}): {error}") from None
    if X.ndim != 2 or X.shape[1] != dataset.X.shape[1] - len(dataset.indicators):
        inputs = dataset.X.shape[1] - len(dataset.indicators)
        raise DataError(f"X has the shape {X.shape}; rows of {dataset.name} have {inputs} inputs")
    if not len(X):
        raise DataError("X has no rows")
    return _complete(X, dataset)


def _options(card: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for source in card["sources"] for key, value in source.items() if key in _SPELLING}


def _from_file(path: Path, card: Mapping[str, Any], dataset: Dataset, header: bool) -> Float[np.ndarray, "T D"]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    options = _options(card)
    try:
        return _from_cells(text.read(content, options).rows, options, dataset, header)
    except DataError as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{dataset.name}: ')}") from None


def _from_cells(
    rows: list[list[str]], options: Mapping[str, Any], dataset: Dataset, header: bool
) -> Float[np.ndarray, "T D"]:
    """The inputs from rows of text, of which the first is a header where `header`."""
    if len(rows) <= header:
        raise DataError("the table has no rows")
    numbers, specs = Numbers.from_options(options), options.get("encode") or {}
    specs = {str(name): spec for name, spec in specs.items()}
    of_level = {
        column: name
        for name, levels in dataset.levels.items()
        for column in encoding.names_of(name, specs[name], levels)
    }
    names = tuple(dict.fromkeys(of_level.get(name, name) for name in dataset.columns if name not in dataset.indicators))
    first = [cell.strip() for cell in rows[0]]
    if header:
        positions, rows = _by_name(first, names, numbers), rows[1:]
    elif len(first) != len(names):
        raise DataError(f"the first row has {len(first)} cells; {dataset.name} has {len(names)} inputs")
    else:
        positions = list(range(len(names)))
    columns, codes = _columns(rows, len(first)), options.get("codes") or {}
    X = []
    for i, name in zip(positions, names):
        if name in specs:
            levels = dataset.levels[name]
            inputs, unseen = encoding.encoded(columns[i], specs[name], levels, numbers)
            if unseen:
                _say_unseen(name, encoding.kind_of(specs[name]), unseen, levels)
            X += inputs
        else:
            X.append(encoding.parsed(columns[i], name, numbers, codes.get(name)))
    return _complete(np.array(X).T, dataset)


def _say_unseen(name: str, kind: str, unseen: Sequence[str], levels: Sequence[str]) -> None:
    """Warns of texts that are no levels of a one-hot column.  Raises DataError where no number stands for them."""
    which = f"column {name!r}: {unseen[0]!r} is not among its levels, {', '.join(levels[:20])}"
    if kind == encoding.ORDINAL:
        raise DataError(which)
    warn(f"{which}: its inputs are 0 there (rows: {len(unseen)})")


def _complete(X: Float[np.ndarray, "T D"], dataset: Dataset) -> Float[np.ndarray, "T C"]:
    """The rows with the inputs that say which cells are missing.  Raises DataError for cells that may not be."""
    columns = dataset.columns or tuple(f"x{i + 1}" for i in range(X.shape[1]))
    missing = np.isnan(X)
    filled = np.where(missing & [name in dataset.impute for name in columns[: X.shape[1]]], 0.0, X)
    check_finite(dataset.name, filled, np.zeros(len(X)), columns, mend=_MEND)
    return np.column_stack([X, *(missing[:, columns.index(column)] for column in dataset.indicators.values())])


def _by_name(header: Sequence[str], names: Sequence[str], numbers: Numbers) -> list[int]:
    """The position of each input in a header, in any case.  Raises DataError for inputs that lack or stand twice."""
    if all(numbers.parse(cell) is not None for cell in header):
        raise DataError(
            f"the first row is of numbers, not of names ({', '.join(names[:20])}); --no-header (header=False in Python)"
            " reads a table without a header, whose columns must be the inputs in their order"
        )
    folded = [cell.casefold() for cell in header]
    positions = []
    for name in names:
        matches = [i for i, cell in enumerate(header) if cell == name]
        matches = matches or [i for i, cell in enumerate(folded) if cell == name.casefold()]
        if len(matches) > 1:
            raise DataError(f"the header has {name!r} more than once; rename the columns")
        positions += matches
    if lacking := [name for name in names if name.casefold() not in folded]:
        hint = f"; {_DELIMITER}" if len(header) == 1 < len(names) else ""
        raise DataError(f"no column {', '.join(map(repr, lacking[:20]))}; the table has {', '.join(header[:20])}{hint}")
    return positions
