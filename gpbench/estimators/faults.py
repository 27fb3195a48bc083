"""Rows and weights that a user gives; what is wrong with them is one line, in the place of scikit-learn's messages."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxtyping import Float

from gpbench.arguments import in_python
from gpbench.config.declared import methods
from gpbench.data.new_rows import as_pandas, check_dates
from gpbench.errors import ConfigError, DataError, GpbenchError, cause

_OF_CELLS = ("could not convert string", "float() argument", "setting an array element")
"""Parts of the messages about cells that are no numbers."""
_OF_NAMES = "The feature names should match"  # in several lines, which scikit-learn's own checks expect as they are
TARGETS_OF_TEXT = "y has texts that are no numbers: a Classifier takes labels, a Regressor numbers"


@contextmanager
def value_errors(X: Any = None) -> Iterator[Any]:
    """A context that gives X as pandas or NumPy have it, and in which gpbench's errors are ValueErrors of one line."""
    try:
        X = as_pandas(X)
        yield X
    except GpbenchError as error:
        raise ValueError(in_python(str(error))) from cause(error)
    except (TypeError, ValueError) as error:
        if X is None:
            raise
        raise _in_one_line(error, X) from None


def _in_one_line(error: Exception, X: Any) -> Exception:
    """The error of scikit-learn's validation of X and y, in one line that says how to mend it."""
    text, is_table = str(error), hasattr(X, "columns")
    if isinstance(error, TypeError) and not (is_table and "float() argument" in text):
        return error  # as scikit-learn's own checks expect it
    if any(words in text for words in _OF_CELLS):
        return ValueError(_of_texts(X))
    if text.startswith(_OF_NAMES):
        return error
    if text.startswith("Input y contains"):
        return ValueError(f"{text} Leave these rows out")
    if text.startswith("y should be a 1d array"):
        return ValueError(f"{text.removesuffix('.')}: fit one estimator for each output")
    if text.startswith("Input X contains") or "NaT" in text:
        return ValueError(_of_missing_cells(X))
    if "Expected 2D array" in text or "Found array with dim" in text:
        mend = "X.reshape(-1, 1) for rows of one input, X.reshape(1, -1) for one row"
        return ValueError(f"X has the shape {np.shape(X)}, not (rows, inputs). Reshape your data: {mend}")
    if "sample(s)" in text:
        samples, least = "sample" if len(X) == 1 else "samples", "2 rows are" if "minimum of 2" in text else "1 row is"
        return ValueError(f"X has {len(X)} {samples}: at least {least} needed")
    if "inconsistent numbers of samples" in text:
        return ValueError(f"{' '.join(text.split())}: give X and y of equal length")
    return ValueError(" ".join(text.split()))


def checked_targets(y: Any) -> Any:
    """Targets as pandas or NumPy have them.  Raises DataError for missing ones, dates and times."""
    import pandas as pd

    if y is None:
        return y
    y = as_pandas(y, "y")
    check_dates(y, "y", "make numbers of them")
    cells = np.ravel(np.asarray(y) if hasattr(y, "dtype") else np.asarray(y, object))
    if lacking := cells[pd.isna(cells)].tolist():
        raise DataError(f"Input y contains {'None' if None in lacking else 'NaN'}. Leave these rows out")
    return y


def _columns(X: Any) -> list[tuple[str, np.ndarray]]:
    """The columns of X with their names for messages."""
    if hasattr(X, "columns"):
        return [(f"column {str(name)!r}", np.asarray(X.iloc[:, i], object)) for i, name in enumerate(X.columns)]
    rows = np.asarray(X, object).reshape(len(X), -1)
    return [(f"column {i}", rows[:, i]) for i in range(rows.shape[1])]


def _of_texts(X: Any) -> str:
    """Names the first column with a text that is no number."""
    for name, cells in _columns(X):
        for cell in cells:
            try:
                float(cell)
            except (TypeError, ValueError):
                encoding = f"encode={{{name[7:]}: 'onehot'}} makes inputs of it"
                frame = "give a DataFrame with encode={COLUMN: 'onehot'}"
                return f"X, {name}: {str(cell)[:60]!r} is no number; {encoding if hasattr(X, 'columns') else frame}"
    return TARGETS_OF_TEXT


def _of_missing_cells(X: Any) -> str:
    """Names the first column with a cell that is NaN or infinite, and how many it has."""
    for name, cells in _columns(X):
        numbers = np.array([np.nan if cell is None or str(cell) in ("<NA>", "NaT") else cell for cell in cells], float)
        if missing := int(np.isnan(numbers).sum()):
            mend = "impute='mean' (or 'median') fills missing cells; else leave these rows out"
            return f"X, {name}: {missing} of {len(cells)} cells are NaN; {mend}"
        if infinite := int(np.isinf(numbers).sum()):
            return f"X, {name}: {infinite} of {len(cells)} cells are infinite (inf); mend them, or leave these rows out"
    return "X has cells that are too large for float64 (infinity)"


_BOOSTING = ".  scikit-learn's AdaBoostClassifier gives weights that sum to 1: use BaggingClassifier"
_MANY = 3.0  # mean weight above which repeats get a warning: the posterior is then that of so many more rows


def checked_weights(sample_weight: Any, rows: int, weights: Any, is_classifier: bool) -> Float[np.ndarray, " N"]:
    """The weights as an array of numbers, one for each row; 1 for None.  `weights` says what they mean."""
    if weights not in ("precision", "repeats"):
        raise ValueError(f"weights={weights!r}: give 'precision' or 'repeats'")
    if sample_weight is None:
        return np.ones(rows)
    try:
        weight = np.array(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers, one for each row") from None
    fault, counted, total = "", np.count_nonzero(weight), weight.sum()
    if weight.shape != (rows,):
        fault = f" has the shape {weight.shape}: give one weight for each of the {rows} rows"
    elif wrong := np.flatnonzero(~np.isfinite(weight) | (weight < 0)).tolist():
        fault = f"[{wrong[0]}] is {weight[wrong[0]]:g}: weights must be finite, and at least 0"
    elif counted < 2:
        fault = f" is zero in all rows but {counted}: at least two rows must count"
    elif total < 2 and weights == "repeats":
        fault = (
            f" sums to {total:.3g}, and a weight w is w rows, so that fewer than two are left: multiply the weights, so"
            f" that they sum to the number of rows, {counted}{_BOOSTING if is_classifier else ''}"
        )
    if fault:
        raise ValueError(f"sample_weight{fault}")
    if weights == "repeats" and total > _MANY * counted:
        line = f"sample_weight has the mean {total / counted:.3g}, and repeats count as that many times the rows"
        warnings.warn(f"{line}: weights='precision' leaves their number as it is", stacklevel=4)
    return weight


def repeat_rows(
    method: str, X: Float[np.ndarray, "N D"], y: Float[np.ndarray, " N"], weight: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, "R D"], Float[np.ndarray, " R"]]:
    """The rows as often as their weights say, for a method without weights, such as those of bootstrap samples."""
    from gpbench.core.memory import require_memory

    if (weight % 1).any():
        others = ", ".join(methods(lambda declared: declared["sample_weights"]))
        fault = f"method {method} takes whole numbers alone as sample_weight, as repeats"
        raise ConfigError(f"{fault}: use one of {others}")
    require_memory(8.0 * weight.sum() * (X.shape[1] + 1), "repeated rows", "repeats")
    times = weight.astype(int)
    return X.repeat(times, axis=0), y.repeat(times)
