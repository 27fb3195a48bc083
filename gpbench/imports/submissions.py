"""A table of predictions made by another program, as one `Submission` for each data set, split, method and output.
docs/how-to/import.md describes its columns."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from gpbench import limits
from gpbench.core.forms import FEWEST_SAMPLES
from gpbench.data import arrow
from gpbench.errors import ConfigError, DataError, GpbenchError, nearest, require
from gpbench.records.absences import LARGE, LATE

if TYPE_CHECKING:
    import pandas as pd

_NEEDED = ("dataset", "split", "method", "row")
_PER_RUN = ("seconds", "versions", "lost")  # columns of one value for a run
_OPTIONAL = ("setting", "output", *_PER_RUN)
_TEXTS = dict.fromkeys(("dataset", "method", "setting"), str)
_NUMBERED = re.compile(r"((log_)?prob|sample|edge|bin)_\d+|quantile_0?\.\d+")
_VERSIONS = re.compile(r"[\w.-]+ [\w.+!-]+(, [\w.-]+ [\w.+!-]+)*")
_GROUP = ["dataset", "split", "method", "setting", "output"]
_LARGEST = 1e15  # largest number of a row, a split or an output; floats beyond some 9e15 are no exact numbers
_LONGEST = 200  # number of characters of `lost` that a record keeps
_SUM_TOLERANCE = 1e-5  # largest error of the sum of a row's probabilities, which others write in float32
_SMALLEST_VARIANCE = 1e-30  # as a share of that of the training targets: far below it the log density overflows


@dataclass(frozen=True)
class Submission:
    """Predictions of one method for the test rows of one split."""

    file: Path
    dataset: str
    split: int
    method: str
    setting: str
    output: int | None  # None for a data set with one output
    rows: Int[np.ndarray, " n"]
    values: dict[str, Float[np.ndarray, " n"]]  # the other columns, by name
    seconds: float | None = None  # None where the table does not say
    versions: dict[str, str] = field(default_factory=dict)  # versions of the programs, by name
    lost: str = ""  # why there are no predictions; "" where there are

    @property
    def title(self) -> str:
        """File, data set, split and output, as every message begins."""
        output = "" if self.output is None else f", output {self.output}"
        return f"{self.file}: {self.dataset} split {self.split}{output}"

    def require(self, good: Any, problem: str) -> None:
        """Raises DataError unless this is so; of an array by row, with the first row of which it is not."""
        if not np.all(good):
            row = "" if np.ndim(good) == 0 else f"row {self.rows[int(np.argmin(good))]} "
            raise DataError(f"{self.title}: {row}{problem}")

    def in_order_of(self, test: Int[np.ndarray, " t"], train: Int[np.ndarray, " m"], total: int) -> "Submission":
        """The submission in the order of the test rows: each must be there once, and no other of `total` rows."""
        import pandas as pd

        index, exists = pd.Index(self.rows), (self.rows >= 0) & (self.rows < total)
        self.require(exists, f"does not exist: {self.dataset} has rows 0 to {total - 1}")
        self.require(~index.duplicated(), "is there twice")
        in_test = np.isin(self.rows, test)
        self.require(in_test | ~np.isin(self.rows, train), "is a training row of this split; give its test rows alone")
        split = "this split" if self.output is None else "this split that has the output"
        self.require(in_test, f"is no test row of {split}; `gpbench data rows` gives these")
        absent = test[~np.isin(test, self.rows)].tolist()
        verb, row = ("is", "row") if len(absent) == 1 else ("are", "the first is row")
        self.require(not absent, f"{len(absent)} of {len(test)} test rows {verb} missing: {row} {_first(absent)}")
        order = index.get_indexer(test)
        return replace(self, rows=test, values={name: column[order] for name, column in self.values.items()})

    def check_values(self, classes: int, target_variance: float) -> None:
        """Checks columns, range and sum of the predictions of a data set with so many classes: 0 for regression, and 1
        for counts, which are refused.  `target_variance` is that of the training targets."""
        self.require(classes != 1, "predictions of counts cannot be imported, for they have no one form")
        names = self.number_columns if classes == 0 else self._class_columns(classes)
        absent, extra = [n for n in names if n not in self.values], [n for n in self.values if n not in names]
        self.require(not absent, f"no column {_first(absent)} with numbers; {_described(classes)}")
        self.require(not extra, f"column {_first(extra)} does not belong there; {_described(classes)}")
        for name in names:
            column = self.values[name]
            # a logarithm may be that of 0
            good = (column < np.inf) if name.startswith("log_") else np.isfinite(column)
            self.require(good, f"has a value of {name} that is not finite")
        if classes == 0 and self.form == "edge":
            self.require((np.diff(self.matrix("edge"), axis=1) > 0).all(axis=1), "has edges that do not rise")
        elif classes == 0 and self.form == "sample":
            fault = f"has {len(names)} samples: give {FEWEST_SAMPLES} or more"
            self.require(np.full(len(self.rows), len(names) >= FEWEST_SAMPLES), fault)
        elif classes == 0 and self.form == "quantile":
            levels = [float(name[9:]) for name in names if name != "mean"]
            self.require(levels[0] > 0.0 and len({*levels}) == len(levels), "has a level twice, or 0: leave it out")
        elif classes == 0 and self.form == "mean":
            variance = self.values["variance"]
            self.require(variance > 0, "has a variance that is not positive")
            smallest = _SMALLEST_VARIANCE * target_variance
            self.require(variance >= smallest, f"has a variance below {smallest:.2g}, too small to compute a density")
        if classes == 0 and self.form != "edge":
            return
        with np.errstate(over="ignore"):
            probs = self.matrix("bin") if classes == 0 else np.exp(self.log_probs(classes))
        self.require(probs.min(axis=1) >= 0, "has a negative probability")
        self.require(abs(probs.sum(axis=1) - 1) <= _SUM_TOLERANCE, "has probabilities that do not sum to one")

    @property
    def number_columns(self) -> list[str]:
        """The columns that a predictive density of numbers should have, in order, by its `form`."""
        counts = Counter(name.partition("_")[0] for name in self.values)
        if counts["quantile"]:
            levels = [name for name in self.values if name.startswith("quantile_")]
            return [*sorted(levels, key=lambda name: float(name[9:])), *({"mean"} & self.values.keys())]
        if bins := max(counts["bin"], counts["edge"] - 1):
            return [*(f"edge_{k}" for k in range(bins + 1)), *(f"bin_{k}" for k in range(bins))]
        return [f"sample_{k}" for k in range(counts["sample"])] or ["mean", "variance"]

    @property
    def form(self) -> str:
        """What a predictive density of numbers is given by: "mean", "sample", "quantile" or "edge"."""
        return self.number_columns[0].partition("_")[0]

    def matrix(self, kind: str) -> Float[np.ndarray, "n K"]:
        """The columns of samples, quantiles, edges or bins, in order."""
        return np.stack([self.values[name] for name in self.number_columns if name.startswith(f"{kind}_")], axis=1)

    def log_probs(self, classes: int) -> Float[np.ndarray, "n C"]:
        """The logarithms of the probabilities of the classes; NaN of negative ones."""
        names = self._class_columns(classes)
        columns = np.stack([self.values[name] for name in names], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return columns if names[0].startswith("log_") else np.log(columns)

    def _class_columns(self, classes: int) -> list[str]:
        """The names of the columns of the classes: log probabilities if there are any, else probabilities."""
        logs = any(name.startswith("log_prob_") for name in self.values)
        return [f"{'log_prob' if logs else 'prob'}_{c}" for c in range(classes)]


def _first(values: Sequence[Any]) -> Any:
    return next(iter(values), "")


def _described(classes: int) -> str:
    if classes == 0:
        return "a regression data set needs mean and variance, or samples, quantiles, or bins with edges"
    return f"its {classes} classes need either prob_0 to prob_{classes - 1} or log_prob_0 to log_prob_{classes - 1}"


def read(path: Path) -> list[Submission]:
    """Reads the submissions of a Parquet or CSV file."""
    table = _table(path)
    columns = [*_NEEDED, *_OPTIONAL, "mean", "variance"]
    if absent := [name for name in _NEEDED if name not in table]:
        is_one_cell = any(mark in str(name) for name in table for mark in ";\t")
        needs = f"it needs {', '.join(_NEEDED)}, and predictions"
        mend = f"{needs}; separate its cells by commas" if is_one_cell else needs
        raise ConfigError(f"{path}: no column {absent[0]!r}; {mend}")
    if unknown := [name for name in map(str, table) if name not in columns and not _NUMBERED.fullmatch(name)]:
        hint = nearest(unknown[0], [*columns, "prob_0", "log_prob_0", "sample_0", "edge_0", "bin_0", "quantile_0.5"])
        if unknown[0].startswith("Unnamed: "):
            hint = "a column without a name, as pandas writes an index: write the table with index=False"
        raise ConfigError(f"{path}: unknown column {unknown[0]!r}; {hint}")
    require(not table.empty, f"{path}: no rows")
    return list(_groups(path, table))


def _table(path: Path) -> "pd.DataFrame":
    import pandas as pd

    fault = "is a folder" if path.is_dir() else "not a regular file: write the predictions to one"
    require(path.is_file() or not path.exists(), f"{path}: {fault}", ConfigError)
    is_csv = path.suffix == ".csv"
    try:
        content = limits.read(path, limits.IMPORTED, "split it")
        if not is_csv and not content.startswith(b"PAR1"):
            raise ValueError("neither a Parquet file nor a CSV file with the ending .csv")
        rows = content.count(b"\n") if is_csv else arrow.check_parquet(content)
        limits.check(rows, limits.IMPORTED_ROWS, "it has", "rows", "split it")
        return pd.read_csv(io.BytesIO(content), dtype=_TEXTS) if is_csv else pd.read_parquet(io.BytesIO(content))
    except (OSError, ValueError, DataError) as error:  # pyarrow's and pandas's own are ValueErrors
        words: dict[type, tuple[type[GpbenchError], str]] = {
            FileNotFoundError: (ConfigError, "no such file"),
            pd.errors.EmptyDataError: (DataError, "the file is empty"),
            UnicodeDecodeError: (DataError, "the file is not UTF-8: save it as csv in UTF-8"),
        }
        kind, text = words.get(type(error), (ConfigError, str(error).partition("\n")[0]))
        raise kind(f"{path}: {text}") from error


def _groups(path: Path, table: "pd.DataFrame") -> Iterator[Submission]:
    import pandas as pd

    table = table.copy()  # of many columns: in one piece
    table = table.assign(**{name: None for name in ("setting", "output") if name not in table}).reset_index(drop=True)
    for name in ("split", "row", "output"):
        numbers = pd.to_numeric(table[name], errors="coerce")
        is_whole = (numbers % 1 == 0) & numbers.between(-_LARGEST, _LARGEST)
        if name == "output":
            is_whole |= table[name].isna()
        _require(path, is_whole, f"{name} is not a whole number up to {_LARGEST:g}")
    for name in ("dataset", "method"):
        _require(path, table[name].notna() & (table[name].astype(str).str.strip() != ""), f"no {name}")
    others = [name for name in table if name not in (*_GROUP, "row", *_PER_RUN)]
    for key, group in table.groupby(_GROUP, sort=False, dropna=False):
        dataset, split, method, setting, output = key
        submission = Submission(
            file=path,
            dataset=str(dataset),
            split=int(split),
            method=str(method),
            setting="" if pd.isna(setting) else str(setting),
            output=None if pd.isna(output) else int(output),
            rows=group["row"].to_numpy(np.int64),
            # columns of other tasks in the same file are empty here
            values={str(n): _numbers(path, group[n]) for n in others if not group[n].isna().all()},
        )
        facts: dict[str, Any] = {}
        for name in (name for name in _PER_RUN if name in group and group[name].notna().any()):
            first, *_ = values = group[name].astype(object).where(group[name].notna(), None).tolist()
            fault = f"has another value of {name} than the first row: it is of the whole split"
            submission.require(np.array([value == first for value in values]), fault)
            facts[name] = _PARSERS[name](submission, first)
        yield replace(submission, **facts)


def _seconds(submission: Submission, seconds: Any) -> float:
    is_time = isinstance(seconds, Real) and not isinstance(seconds, np.timedelta64) and 0.0 <= float(seconds) < np.inf
    submission.require(np.full(len(submission.rows), is_time), "has seconds that are not a number from 0")
    return float(seconds)


def _versions(submission: Submission, text: Any) -> dict[str, str]:
    mend = "write them as in 'gpytorch 1.15.2, torch 2.13.0'"
    submission.require(bool(_VERSIONS.fullmatch(str(text))), f"versions {str(text)[:60]!r}: {mend}")
    versions = dict(pairs := [pair.split(" ") for pair in text.split(", ")])
    submission.require(len(versions) == len(pairs), f"versions {text!r} has a program twice: leave one version of it")
    return versions


def _lost(submission: Submission, text: Any) -> str:
    mend = "write why there are no predictions; leave it empty where there are"
    submission.require(isinstance(text, str), f"lost is {text!r}: {mend}")
    line = " ".join(text.split())
    has_both = bool(line and submission.values)
    submission.require(not has_both, f"has predictions, and lost {line[:40]!r}: leave one of them empty")
    return line.lower() if line.lower() in (LATE, LARGE) else line[:_LONGEST]


_PARSERS = {"seconds": _seconds, "versions": _versions, "lost": _lost}


def _numbers(path: Path, column: "pd.Series") -> Float[np.ndarray, " n"]:
    import pandas as pd

    try:
        return column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        good = pd.to_numeric(column, errors="coerce").notna() | column.isna()
        _require(path, good & (not good.all()), f"column {column.name} has a value that is not a number")
        raise


def _require(path: Path, good: "pd.Series", problem: str) -> None:
    """Raises DataError with the first line of which this is not so, from 1; of a CSV file the header is line 1."""
    if not good.all():
        line = int(good.idxmin()) + 1 + (path.suffix == ".csv")
        raise DataError(f"{path}: line {line}: {problem}")
