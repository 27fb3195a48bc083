"""A table of predictions made by another program, as one `Submission` for each data set, split, method and output.

Columns: `dataset`, `split`, `method`, `row`, and `mean` and `variance` (regression, original units, noise included) or
`prob_0`, `prob_1`, ... or `log_prob_0`, `log_prob_1`, ... (classification, the classes in order of code); optional are
`setting`, `output` (the number of one of several outputs), `seconds` of training, `versions` of the programs, and
`lost`, why there are no predictions.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int, Shaped

from gpbench import limits
from gpbench.data import arrow
from gpbench.errors import ConfigError, DataError, nearest
from gpbench.records.absences import LARGE, LATE

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("dataset", "split", "method", "row")
_PER_RUN = ("seconds", "versions", "lost")
_OPTIONAL = ("setting", "output", *_PER_RUN)
_TEXTS = dict.fromkeys(("dataset", "method", "setting"), str)
_NUMBERED = re.compile(r"(log_)?prob_\d+")
_VERSIONS = re.compile(r"[\w.-]+ [\w.+!-]+(, [\w.-]+ [\w.+!-]+)*")
_GROUP = ["dataset", "split", "method", "setting", "output"]

_LARGEST = 1e15
"""Largest number of a row, a split or an output; floats beyond some 9e15 are no exact numbers."""

_LONGEST = 200
"""Number of characters of `lost` that a record keeps."""

_SUM_TOLERANCE = 1e-5
"""Largest error of the sum of a row's probabilities, which others write in float32."""

_SMALLEST_VARIANCE = 1e-30
"""Smallest variance, as a share of that of the training targets: far below it the log density overflows."""


@dataclass(frozen=True)
class Submission:
    """Predictions of one method for the test rows of one split.  `values` are the other columns, by name.

    `output` is None for a data set with one output, `seconds` where the table does not say; `versions` are those of the
    programs, by name; `lost` is why there are no predictions, "" where there are.
    """

    file: Path
    dataset: str
    split: int
    method: str
    setting: str
    output: int | None
    seconds: float | None
    rows: Int[np.ndarray, " n"]
    values: dict[str, Float[np.ndarray, " n"]]
    versions: dict[str, str] = field(default_factory=dict)
    lost: str = ""

    @property
    def title(self) -> str:
        """File, data set, split and output, as every message begins."""
        output = "" if self.output is None else f", output {self.output}"
        return f"{self.file}: {self.dataset} split {self.split}{output}"

    def require(self, good: Shaped[np.ndarray, " n"], problem: str) -> None:
        """Raises DataError with the first row where `good` is false."""
        if not good.all():
            raise DataError(f"{self.title}: row {self.rows[int(np.argmin(good))]} {problem}")

    def in_order_of(
        self, test: Int[np.ndarray, " t"], train: Int[np.ndarray, " m"], total: int
    ) -> dict[str, Float[np.ndarray, " t"]]:
        """The values in the order of the split's test rows, each of which must be there once, and no other row.

        `total` is the number of rows of the data set.  Raises DataError.
        """
        self.require(
            (self.rows >= 0) & (self.rows < total), f"does not exist: {self.dataset} has rows 0 to {total - 1}"
        )
        _, first = np.unique(self.rows, return_index=True)
        self.require(np.isin(np.arange(len(self.rows)), first), "is there twice")
        in_test = np.isin(self.rows, test)
        self.require(in_test | ~np.isin(self.rows, train), "is a training row of this split; give its test rows alone")
        split = "this split" if self.output is None else "this split that has the output"
        self.require(in_test, f"is no test row of {split}; `gpbench data rows` gives these")
        absent = test[~np.isin(test, self.rows)]
        if len(absent):
            verb, row = ("is", "row") if len(absent) == 1 else ("are", "the first is row")
            raise DataError(f"{self.title}: {len(absent)} of {len(test)} test rows {verb} missing: {row} {absent[0]}")
        order = np.argsort(self.rows)
        positions = order[np.searchsorted(self.rows[order], test)]
        return {name: column[positions] for name, column in self.values.items()}

    def check_values(self, classes: int, target_variance: float) -> None:
        """Checks the predictions of a data set with so many classes: columns, range and sum.

        `classes` is 0 for regression, and 1 for counts, which are refused.  `target_variance` is that of the training
        targets.  Raises DataError.
        """
        if classes == 1:
            raise DataError(f"{self.title}: predictions of counts cannot be imported, for they have no one form")
        names = ["mean", "variance"] if classes == 0 else self.class_columns(classes)
        if absent := [name for name in names if name not in self.values]:
            raise DataError(f"{self.title}: no column {absent[0]}; {_described(classes)}")
        if extra := [name for name in self.values if name not in names]:
            raise DataError(f"{self.title}: column {extra[0]} does not belong there; {_described(classes)}")
        for name in names:
            column = self.values[name]
            # a logarithm may be that of 0
            good = (column < np.inf) if name.startswith("log_") else np.isfinite(column)
            self.require(good, f"has a value of {name} that is not finite")
        if classes == 0:
            variance = self.values["variance"]
            self.require(variance > 0, "has a variance that is not positive")
            smallest = _SMALLEST_VARIANCE * target_variance
            self.require(variance >= smallest, f"has a variance below {smallest:.2g}, too small to compute a density")
            return
        probs = self.probabilities(classes)
        self.require(probs.min(axis=1) >= 0, "has a negative probability")
        self.require(abs(probs.sum(axis=1) - 1) <= _SUM_TOLERANCE, "has probabilities that do not sum to one")

    def class_columns(self, classes: int) -> list[str]:
        """The names of the columns of the classes: log probabilities if there are any, else probabilities."""
        logs = any(name.startswith("log_prob_") for name in self.values)
        return [f"{'log_' * logs}prob_{c}" for c in range(classes)]

    def probabilities(self, classes: int) -> Float[np.ndarray, "n C"]:
        """The probabilities of the classes."""
        names = self.class_columns(classes)
        columns = np.stack([self.values[name] for name in names], axis=1)
        with np.errstate(over="ignore"):
            return np.exp(columns) if names[0].startswith("log_") else columns


def _described(classes: int) -> str:
    if classes == 0:
        return "a regression data set needs mean and variance"
    return f"its {classes} classes need either prob_0 to prob_{classes - 1} or log_prob_0 to log_prob_{classes - 1}"


def read(path: Path) -> list[Submission]:
    """Reads the submissions of a Parquet or CSV file.  Raises ConfigError: the file is no such table; DataError: its
    values are wrong.
    """
    table = _table(path)
    columns = [*_NEEDED, *_OPTIONAL, "mean", "variance"]
    if absent := [name for name in _NEEDED if name not in table]:
        separators = "; separate its cells by commas" * any(mark in str(name) for name in table for mark in ";\t")
        needs = f"it needs {', '.join(_NEEDED)}, and predictions"
        raise ConfigError(f"{path}: no column {absent[0]!r}; {needs}{separators}")
    if unknown := [name for name in map(str, table) if name not in columns and not _NUMBERED.fullmatch(name)]:
        hint = nearest(unknown[0], [*columns, "prob_0", "log_prob_0"])
        if unknown[0].startswith("Unnamed: "):
            hint = "a column without a name, as pandas writes an index: write the table with index=False"
        raise ConfigError(f"{path}: unknown column {unknown[0]!r}; {hint}")
    if table.empty:
        raise DataError(f"{path}: no rows")
    return list(_groups(path, table))


def _table(path: Path) -> "pd.DataFrame":
    import pandas as pd

    if path.is_dir():
        raise ConfigError(f"{path}: is a folder")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{path}: not a regular file: write the predictions to one")
    is_csv = path.suffix == ".csv"
    try:
        content = limits.read(path, limits.IMPORTED, "split it")
        if not is_csv and not content.startswith(b"PAR1"):
            raise ValueError("neither a Parquet file nor a CSV file with the ending .csv")
        rows = content.count(b"\n") if is_csv else arrow.check_parquet(content)
        limits.check(rows, limits.IMPORTED_ROWS, "it has", "rows", "split it")
        return pd.read_csv(io.BytesIO(content), dtype=_TEXTS) if is_csv else pd.read_parquet(io.BytesIO(content))
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file") from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path}: the file is empty") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: the file is not UTF-8: save it as csv in UTF-8") from error
    except (OSError, ValueError, DataError) as error:  # pyarrow's and pandas's own are ValueErrors
        raise ConfigError(f"{path}: {str(error).partition(chr(10))[0]}") from error


def _groups(path: Path, table: "pd.DataFrame") -> Iterator[Submission]:
    table = table.assign(**{name: None for name in ("setting", "output") if name not in table}).reset_index(drop=True)
    for name in ("split", "row", "output"):
        _require_whole(path, table, name, optional=name == "output")
    for name in ("dataset", "method"):
        if (blank := table[name].isna() | (table[name].astype(str).str.strip() == "")).any():
            raise DataError(f"{path}: {_line(path, blank)}: no {name}")
    others = [name for name in table if name not in (*_GROUP, "row", *_PER_RUN)]
    for key, group in table.groupby(_GROUP, sort=False, dropna=False):
        dataset, split, method, setting, output = key
        submission = Submission(
            file=path,
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
        seconds, versions = _seconds(submission, group), _versions(submission, group)
        yield replace(submission, seconds=seconds, versions=versions, lost=_lost(submission, group))


def _per_run(submission: Submission, group: "pd.DataFrame", name: str) -> Any:
    """The value of a column that is the same in each row of a run; None where there is none."""
    if name not in group or group[name].isna().all():
        return None
    values = [None if is_absent else value for value, is_absent in zip(group[name], group[name].isna())]
    submission.require(
        np.array([value == values[0] for value in values]),
        f"has another value of {name} than the first row: it is of the whole split",
    )
    return values[0]


def _seconds(submission: Submission, group: "pd.DataFrame") -> float | None:
    if (seconds := _per_run(submission, group, "seconds")) is None:
        return None
    is_time = isinstance(seconds, Real) and not isinstance(seconds, np.timedelta64) and 0.0 <= float(seconds) < np.inf
    submission.require(np.full(len(submission.rows), is_time), "has seconds that are not a number from 0")
    return float(seconds)


def _versions(submission: Submission, group: "pd.DataFrame") -> dict[str, str]:
    if (text := _per_run(submission, group, "versions")) is None:
        return {}
    if not _VERSIONS.fullmatch(str(text)):
        example = "'gpytorch 1.15.2, torch 2.13.0'"
        raise DataError(f"{submission.title}: versions {str(text)[:60]!r}: write them as in {example}")
    versions = dict(pairs := [pair.split(" ") for pair in text.split(", ")])
    if len(versions) < len(pairs):
        raise DataError(f"{submission.title}: versions {text!r} has a program twice: leave one version of it")
    return versions


def _lost(submission: Submission, group: "pd.DataFrame") -> str:
    """Why there are no predictions, in a line; "" where the cell is empty."""
    if (text := _per_run(submission, group, "lost")) is None:
        return ""
    if not isinstance(text, str):
        raise DataError(
            f"{submission.title}: lost is {text!r}: write why there are no predictions; leave it empty where there are"
        )
    line = " ".join(text.split())
    if line and submission.values:
        raise DataError(f"{submission.title}: has predictions, and lost {line[:40]!r}: leave one of them empty")
    return line.lower() if line.lower() in (LATE, LARGE) else line[:_LONGEST]


def _numbers(path: Path, column: "pd.Series") -> Float[np.ndarray, " n"]:
    import pandas as pd

    try:
        return column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        bad = pd.to_numeric(column, errors="coerce").isna() & column.notna()
        raise DataError(f"{path}: {_line(path, bad)}: column {column.name} has a value that is not a number") from error


def _require_whole(path: Path, table: "pd.DataFrame", name: str, *, optional: bool) -> None:
    import pandas as pd

    numbers = pd.to_numeric(table[name], errors="coerce")
    good = (numbers % 1 == 0) & numbers.between(-_LARGEST, _LARGEST) | (table[name].isna() if optional else False)
    if not good.all():
        raise DataError(f"{path}: {_line(path, ~good)}: {name} is not a whole number up to {_LARGEST:g}")


def _line(path: Path, bad: "pd.Series") -> str:
    """The number of the first line where a mask is true, from 1; of a CSV file the header is line 1."""
    return f"line {int(bad.idxmax()) + 1 + (path.suffix == '.csv')}"


def _is_missing(value: Any) -> bool:
    return value is None or value != value
