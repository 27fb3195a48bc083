"""Tables of users: delimited text, Excel sheets, Parquet and DataFrames, as rows of text that are read alike."""

import csv
import io
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gpbench.data import archives
from gpbench.data.dataset import Dataset, Raw, check_finite
from gpbench.errors import DataError, nearest

if TYPE_CHECKING:
    import pandas as pd

_PARQUET, _ZIP = b"PAR1", b"PK\x03\x04"
_TABLE_OPTIONS = ("delimiter", "missing", "codes", "sheet")


def table(blobs: Sequence[bytes], options: Mapping) -> Raw:
    """Delimited text, plain or gzipped, an Excel sheet or Parquet; several files are one table.

    Options: `target` column name (then there is a header) or number (negative from the end), a list of them for several
    outputs, `group` the column that says which rows belong together, `delimiter` (default ","; "space" for runs of
    white space), `sheet` of an Excel file (default: the first), `header`, `skip` lines, `missing` marker, `drop`
    columns, `codes` {column: {text: number}}.
    """
    options = {key: value for key, value in options.items() if value is not None}
    targets = options["target"] if isinstance(options["target"], list | tuple) else [options["target"]]
    header = options.get("header", isinstance(targets[0], str) or _is_spreadsheet(blobs[0]))
    rows = [row for blob in blobs for row in _cells(blob, options)]
    if len(rows) <= header:
        raise DataError("the table has no rows")
    width = len(rows[0])
    names = [cell.strip() for cell in rows.pop(0)] if header else [str(i) for i in range(width)]
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise DataError(f"the header has {repeated[0]!r} more than once; rename the columns")
    if ragged := [i for i, row in enumerate(rows) if len(row) != width]:
        raise DataError(f"row {ragged[0] + 1} has {len(rows[ragged[0]])} cells, not {width}; is the delimiter right?")
    target_columns = [_column(names, target) for target in targets]
    group = [_column(names, options["group"])] if options.get("group") is not None else []
    excluded = {*target_columns, *group, *(_column(names, drop) for drop in options.get("drop", ()))}
    inputs = [i for i in range(width) if i not in excluded]
    codes = {str(name): numbers for name, numbers in (options.get("codes") or {}).items()}
    if uncoded := [name for name in codes if name not in {names[i] for i in inputs}]:
        hint = nearest(uncoded[0], [names[i] for i in inputs])
        raise DataError(f"codes: no column {uncoded[0]!r} among the inputs; {hint}")
    by_column = list(zip(*rows))
    missing = options.get("missing")
    X = [_numbers(by_column[i], names[i], missing, codes.get(names[i])) for i in inputs]
    labels = [["" if cell.strip() == missing else cell.strip() for cell in by_column[i]] for i in target_columns]
    columns, outputs = (tuple(names[i] for i in indices) if header else () for indices in (inputs, target_columns))
    groups = [cell.strip() for i in group for cell in by_column[i]]
    target = np.array(labels if len(target_columns) > 1 else labels[0]).T
    return Raw(np.array(X).reshape(len(inputs), len(rows)).T, target, columns, outputs=outputs, groups=groups)


def _cells(blob: bytes, options: Mapping) -> list[list[str]]:
    """The rows of a table as text, its header among them.  Options as for `table`.  Raises DataError."""
    if _is_spreadsheet(blob):
        return _spreadsheet(blob, options.get("sheet"))[options.get("skip", 0) :]
    lines = archives.unzipped(blob).decode("utf-8-sig", errors="replace").splitlines()[options.get("skip", 0) :]
    lines = [line for line in lines if line.strip()]
    delimiter = options.get("delimiter", ",")
    if delimiter == "space":
        return [line.split() for line in lines]
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except (csv.Error, TypeError) as error:
        raise DataError(f"not a table with delimiter {delimiter!r}: {error}") from None


def _column(names: Sequence[str], column: Any) -> int:
    """The index of a column, from its name or its number.  Raises DataError where the table has no such column."""
    if isinstance(column, int) and -len(names) <= column < len(names):
        return column % len(names)
    if column not in names:
        raise DataError(f"no column {column!r}; the table has {', '.join(names[:20])}")
    return names.index(str(column))


def _numbers(cells: Sequence[str], name: str, missing: str | None, codes: Mapping | None) -> np.ndarray:
    """A column as numbers: NaN for an empty or missing cell, the code where it has codes.  Raises DataError."""
    values = np.empty(len(cells))
    codes = {str(text): code for text, code in (codes or {}).items()}
    for row, cell in enumerate(cells):
        cell = cell.strip()
        try:
            values[row] = np.nan if cell in ("", missing) else codes[cell] if codes else float(cell)
        except (KeyError, TypeError, ValueError):
            raise DataError(
                f"column {name!r}, row {row + 1}: {cell!r} is not a number; name the column in `drop` or `codes`"
            ) from None
    return values


def new_inputs(
    rows: "Float[np.ndarray, 'T D'] | pd.DataFrame | str | PathLike[str]", card: Mapping[str, Any], dataset: Dataset
) -> Float[np.ndarray, "T D"]:
    """The inputs of all rows, in original units and the order of the data set's columns.

    Args:
        rows: an array (T, D), a DataFrame, or the path of a table (csv, Parquet, Excel).  A table whose header has all
            names of the data set's inputs may have other columns, which are ignored; without such names it has exactly
            the inputs, in their order.  Text is coded, and missing cells are marked, as in the card.
        card: the data card.
        dataset: the data set.

    Raises:
        DataError: a file that cannot be read, another number of columns, or cells that are not finite numbers.
    """
    if isinstance(rows, str | PathLike):
        return _from_file(Path(rows), card, dataset)
    options = _options(card)
    if not isinstance(rows, np.ndarray) and hasattr(rows, "itertuples"):
        cells = [list(map(_text, row)) for row in rows.itertuples(index=False, name=None)]
        return _from_cells([list(map(str, rows.columns)), *cells], options, dataset, header=True)
    try:
        X = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"X is no array of numbers (T, {dataset.X.shape[1]}): {error}") from None
    if X.ndim != 2 or X.shape[1] != dataset.X.shape[1]:
        raise DataError(f"X has the shape {X.shape}; rows of {dataset.name} have {dataset.X.shape[1]} inputs")
    if not len(X):
        raise DataError("X has no rows")
    check_finite(dataset.name, X, np.zeros(len(X)), _names(dataset))
    return X


def _options(card: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for source in card["sources"] for key, value in source.items() if key in _TABLE_OPTIONS}


def _names(dataset: Dataset) -> tuple[str, ...]:
    return dataset.columns or tuple(f"x{i + 1}" for i in range(dataset.X.shape[1]))


def _from_file(path: Path, card: Mapping[str, Any], dataset: Dataset) -> Float[np.ndarray, "T D"]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    options = _options(card)
    try:
        return _from_cells(_cells(content, options), options, dataset)
    except DataError as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{dataset.name}: ')}") from None


def _from_cells(
    rows: list[list[str]], options: Mapping[str, Any], dataset: Dataset, *, header: bool = False
) -> Float[np.ndarray, "T D"]:
    """The inputs from rows of text.  The first row is a header where `header`, or where it has names."""
    width = dataset.X.shape[1]
    first = [cell.strip() for cell in rows[0]] if rows else []
    by_name = bool(dataset.columns) and {*dataset.columns} <= {*first}
    if not by_name and len(first) != width:
        needed = f"columns named {', '.join(dataset.columns[:20])}" if dataset.columns else f"{width} columns"
        raise DataError(f"the first row has {len(first)} cells; {dataset.name} needs {needed}, or exactly its inputs")
    if header or by_name or not _is_number(first[0]):
        rows = rows[1:]
    if not rows:
        raise DataError("the table has no rows")
    if ragged := [i for i, row in enumerate(rows) if len(row) != len(first)]:
        raise DataError(f"row {ragged[0] + 1} has {len(rows[ragged[0]])} cells, not {len(first)}")
    cells = list(zip(*rows))
    names = _names(dataset)
    positions = [first.index(name) for name in names] if by_name else range(width)
    codes, missing = options.get("codes") or {}, options.get("missing")
    columns = [_numbers(cells[i], name, missing, codes.get(name)) for i, name in zip(positions, names)]
    X = np.array(columns).T
    check_finite(dataset.name, X, np.zeros(len(X)), names)
    return X


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is_spreadsheet(content: bytes) -> bool:
    """Recognises Excel and Parquet files by their first bytes."""
    return content[:4] in (_PARQUET, _ZIP)


def _spreadsheet(content: bytes, sheet: str | None = None) -> list[list[str]]:
    """The header and the rows below it; an empty cell is "".  Of an Excel file one sheet, by default the first.

    Raises DataError for a damaged file, an unknown sheet, a file that unpacks to too much, and without openpyxl.
    """
    return _parquet(content) if content[:4] == _PARQUET else _excel(content, sheet)


def _parquet(content: bytes) -> list[list[str]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(content), pre_buffer=False)
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        archives.require_size(sum(group.total_byte_size for group in groups))
        archives.require_size(8 * file.metadata.num_rows * file.metadata.num_columns)  # equal cells take no space
        table = file.read(use_threads=False)
        columns = [[_text(cell) for cell in column.to_pylist()] for column in table.columns]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"not a readable Parquet file: {' '.join(str(error).split())}") from None
    return [list(table.column_names), *map(list, zip(*columns))]


def _excel(content: bytes, sheet: str | None) -> list[list[str]]:
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            "an Excel file needs openpyxl: pip install -c constraints.txt -e '.[excel]' in the checkout, or save as csv"
        ) from None
    try:
        archives.require_size(sum(member.file_size for member in zipfile.ZipFile(io.BytesIO(content)).infolist()))
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise DataError(f"no sheet {sheet!r}; the file has {', '.join(book.sheetnames)}")
        table = [list(map(_text, row)) for row in book[sheet or book.sheetnames[0]].values]
    except DataError:
        raise
    except Exception as error:  # a parser of XML raises of any kind, and the content is the user's
        raise DataError(f"not a readable Excel file: {type(error).__name__}") from None
    return [row for row in table if any(row)]


def _text(cell: Any) -> str:
    """A cell as a csv file would have it: whole numbers without a point, others with all their digits."""
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, bool) else str(cell)
