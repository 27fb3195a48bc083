"""Missing inputs: filled by the mean or the median of the training rows, each with an input that says where."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from gpbench.data import encoding
from gpbench.errors import DataError, nearest, require

if TYPE_CHECKING:
    from gpbench.data.dataset import Dataset


@dataclass(frozen=True)
class Filler:
    """What the training rows of a split say about inputs of other rows."""

    values: Float[np.ndarray, " D"]  # what stands for a missing cell of each column; NaN where none may be missing
    absent: Bool[np.ndarray, " D"]  # columns of levels that no training row has, which are 0 for all rows

    def __call__(self, X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N D"]:
        """The rows without missing cells and absent levels, in original units."""
        return np.where(self.absent, 0.0, np.where(np.isnan(X), self.values, X))

    def count_absent(self, X: Float[np.ndarray, "N D"]) -> int:
        """The number of rows with a level that no training row has."""
        return int((X[:, self.absent] == 1.0).any(axis=1).sum())


def fit(dataset: "Dataset", X: Float[np.ndarray, "n D"]) -> Filler | None:
    """Fits a filler to training rows; None for a data set that needs none."""
    if not dataset.impute and not dataset.levels:
        return None
    values = np.full(X.shape[1], np.nan)
    for name, centre in dataset.impute.items():
        column = X[:, i := dataset.columns.index(name)]
        fact = f"{name!r} is missing in all {len(X)} training rows; drop it"
        require(not np.isnan(column).all(), f"{dataset.name}: impute: {fact}")
        values[i] = np.nanmean(column) if centre == "mean" else np.nanmedian(column)
    levels = {f"{name}={level}" for name, of_column in dataset.levels.items() for level in of_column}
    is_level = np.array([name in levels for name in dataset.columns])
    return Filler(values, is_level & ~(X == 1.0).any(axis=0))


def rules(
    name: str,
    impute: str | Mapping[str, str] | None,
    columns: Sequence[str],
    levels: Mapping[str, Sequence[str]],
    X: Float[np.ndarray, "N D"],
) -> tuple[dict[str, str], dict[str, str]]:
    """A card's `impute`: "mean" or "median" by input; and the names of new inputs that say where a column is missing,
    each with an input that is missing there.  Raises DataError: there is no such column.
    """
    of_input = dict(zip(columns, encoding.columns_of_table(columns, levels)))
    centres = dict.fromkeys(of_input.values(), impute) if isinstance(impute, str) else dict(impute or {})
    for column in (str(column) for column in centres if column not in of_input.values()):
        raise DataError(f"{name}: impute: no input {column!r}; {nearest(column, {*of_input.values()})}")
    filled = {column: centres[name] for column, name in of_input.items() if name in centres}
    lacking = np.isnan(X).any(axis=0)
    indicators = {f"{of_input[c]} missing": c for c, lacks in zip(columns, lacking) if lacks and c in filled}
    for column in indicators:
        fact = f"there is an input {column!r} already; rename that column"
        require(column not in columns, f"{name}: impute: {fact}")
    return filled, indicators
