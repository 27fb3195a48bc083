"""Tables of a few columns, and what is read of them."""

import csv
import io
from collections.abc import Callable, Sequence

import numpy as np
import openpyxl

from gpbench.data import tables
from gpbench.data.conversion import from_raw
from gpbench.data.dataset import Dataset


def table(columns: dict[str, Sequence]) -> bytes:
    """A file of these columns, all cells in quotation marks."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerows([[*columns], *zip(*columns.values(), strict=True)])
    return file.getvalue().encode()


def excel(*rows: Sequence, change: Callable = lambda sheet: None) -> bytes:
    """A workbook of one sheet with these rows, which has been changed."""
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    change(book.active)
    book.save(file)
    return file.getvalue()


def read(columns: dict[str, Sequence], task: str = "regression", card: dict | None = None, **options) -> Dataset:
    """The data set of columns, of which y is the target."""
    raw = tables.table([table(columns)], {"target": "y", **options})
    return from_raw({"name": "odd", "task": task, "sources": [options], **(card or {})}, raw)


def alike(values: Sequence) -> np.ndarray:
    """The pairs of rows that have equal values."""
    codes = np.unique(np.asarray(values), return_inverse=True)[1]
    return codes[:, None] == codes


def steps(n: int) -> list[int]:
    """Numbers that do not count rows."""
    return [3 * k + 2 for k in range(n)]


def npz(**arrays) -> bytes:
    """An archive of arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
