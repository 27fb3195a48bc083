"""The numbers of a sheet as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence

from gpbench.analysis.sheets import Sheet
from gpbench.errors import printable


def as_csv(sheet: Sheet) -> str:
    """The rows of a sheet as `rows_as_csv` writes them."""
    return rows_as_csv(sheet.rows)


def rows_as_csv(rows: Sequence[Mapping[str, object]]) -> str:
    """One line per row, numbers to 8 digits; a value that does not apply is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    writer.writerows([_plain(value) for value in row.values()] for row in rows)
    return out.getvalue().rstrip("\n")


def _plain(value: object) -> str:
    """The cell of a CSV file.  A text that a spreadsheet would take for a formula has an apostrophe before it."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)
    return "'" * (value.startswith(("=", "+", "-", "@")) and not _is_number(value)) + printable(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
