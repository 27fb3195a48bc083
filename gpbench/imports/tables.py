"""The file of a table of predictions, Parquet or CSV, read as submissions."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from gpbench.errors import ConfigError, DataError, nearest
from gpbench.imports.submissions import Submission

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("dataset", "split", "method", "row")
_OPTIONAL = ("setting", "output", "seconds")
_NUMBERED = re.compile(r"(log_)?prob_\d+")
_GROUP = ["dataset", "split", "method", "setting", "output"]


def read(path: Path) -> list[Submission]:
    """The submissions of a Parquet or CSV file.  Raises ConfigError for a file that is no such table, and DataError."""
    table = _table(path)
    columns = [*_NEEDED, *_OPTIONAL, "mean", "variance"]
    if absent := [name for name in _NEEDED if name not in table]:
        raise ConfigError(f"{path.name}: no column {absent[0]!r}; it needs {', '.join(_NEEDED)}, and predictions")
    if unknown := [name for name in map(str, table) if name not in columns and not _NUMBERED.fullmatch(name)]:
        hint = nearest(unknown[0], [*columns, "prob_0", "log_prob_0"])
        raise ConfigError(f"{path.name}: unknown column {unknown[0]!r}; {hint}")
    if table.empty:
        raise DataError(f"{path.name}: no rows")
    return list(_groups(path, table))


def _table(path: Path) -> "pd.DataFrame":
    import pandas as pd

    if path.is_dir():
        raise ConfigError(f"{path}: is a folder")
    try:
        return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path.name}: the file is empty") from error
    except (OSError, ValueError) as error:  # pyarrow's and pandas's own are ValueErrors
        reason = str(error).partition("\n")[0]
        raise ConfigError(f"{path}: neither a Parquet file nor a CSV file with the ending .csv ({reason})") from error


def _groups(path: Path, table: "pd.DataFrame") -> Iterator[Submission]:
    table = table.assign(**{name: None for name in ("setting", "output") if name not in table})
    for name in ("split", "row", "output"):
        _require_whole(path, table, name, optional=name == "output")
    for name in ("dataset", "method"):
        if (blank := table[name].isna() | (table[name].astype(str).str.strip() == "")).any():
            raise DataError(f"{path.name}: line {_first(blank)}: no {name}")
    others = [name for name in table if name not in (*_GROUP, "row", "seconds")]
    for key, group in table.groupby(_GROUP, sort=False, dropna=False):
        dataset, split, method, setting, output = key
        submission = Submission(
            file=path.name,
            dataset=str(dataset),
            split=int(split),
            method=str(method),
            setting="" if _is_missing(setting) else str(setting),
            output=None if _is_missing(output) else int(output),
            seconds=None,
            rows=group["row"].to_numpy(np.int64),
            # columns of other tasks in the same file are empty here
            values={str(n): _numbers(path, group[n]) for n in others if not group[n].isna().all()},
        )
        yield _with_seconds(submission, group)


def _with_seconds(submission: Submission, group: "pd.DataFrame") -> Submission:
    if "seconds" not in group or group["seconds"].isna().all():
        return submission
    seconds = group["seconds"].to_numpy(np.float64)
    submission.require(np.isfinite(seconds) & (seconds >= 0), "has seconds that are no time")
    submission.require(seconds == seconds[0], "has other seconds than the first row: they are of the split's training")
    return replace(submission, seconds=float(seconds[0]))


def _numbers(path: Path, column: "pd.Series") -> Float[np.ndarray, " n"]:
    try:
        return column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(f"{path.name}: column {column.name} has a value that is not a number") from error


def _require_whole(path: Path, table: "pd.DataFrame", name: str, *, optional: bool) -> None:
    import pandas as pd

    numbers = pd.to_numeric(table[name], errors="coerce")
    good = (numbers % 1 == 0) | (table[name].isna() if optional else False)
    if not good.all():
        raise DataError(f"{path.name}: line {_first(~good)}: {name} is not a whole number")


def _first(bad: "pd.Series") -> int:
    """The first line, from 1, where a mask is true."""
    return int(np.argmax(bad.to_numpy())) + 1


def _is_missing(value: Any) -> bool:
    return value is None or value != value
