"""A table of predictions made by another program, as one `Submission` for each data set, split, method and output.

Columns: `dataset`, `split`, `method`, `row`, and `mean` and `variance` (regression, original units, noise included) or
`prob_0`, `prob_1`, ... or `log_prob_0`, `log_prob_1`, ... (classification, the classes in order of code); optional are
`setting`, `output` (the number of one of several outputs) and `seconds` of training.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Shaped

from gpbench.errors import DataError

_SUM_TOLERANCE = 1e-5
"""Of the sum of a row's probabilities, which others write in float32."""

_SMALLEST_VARIANCE = 1e-30
"""As a share of the variance of the training targets: far below it the log density overflows."""


@dataclass(frozen=True)
class Submission:
    """What one method predicts for the test rows of one split.  `values` are the other columns, by name.

    `output` is None for a data set with one output, `seconds` where the table does not say.
    """

    file: str
    dataset: str
    split: int
    method: str
    setting: str
    output: int | None
    seconds: float | None
    rows: Int[np.ndarray, " n"]
    values: dict[str, Float[np.ndarray, " n"]]

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
        self.require(in_test, "is no test row of this split; `gpbench data rows` gives these")
        absent = test[~np.isin(test, self.rows)]
        if len(absent):
            verb, row = ("is", "row") if len(absent) == 1 else ("are", "the first is row")
            raise DataError(f"{self.title}: {len(absent)} of {len(test)} test rows {verb} missing: {row} {absent[0]}")
        order = np.argsort(self.rows)
        positions = order[np.searchsorted(self.rows[order], test)]
        return {name: column[positions] for name, column in self.values.items()}

    def check_values(self, classes: int, target_variance: float) -> None:
        """Checks the predictions of a data set with so many classes, 0 for regression: columns, range and sum.

        `target_variance` is that of the training targets.  Raises DataError.
        """
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
    return f"its {classes} classes need prob_0 to prob_{classes - 1}, or log_prob_0 to log_prob_{classes - 1}"
