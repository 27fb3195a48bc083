"""Variance components of a difference between two sides: test rows and splits, from kept predictions.

The model has one-way random effects, d = mean + split + row, for the difference d of the two losses on a test row
(S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, 1992, section 3.6).  Rows alone let the means of
splits vary by the mean over splits of s²/n, where s² is the variance of d within a split of n rows.  The rest of their
variance is due to splits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.differences import Difference
from gpbench.analysis.grouping import gather
from gpbench.records.arrays import log_probs
from gpbench.records.record import Record

_Reader = Callable[[Record], Mapping[str, np.ndarray]]  # maps a record to its kept predictions; empty without any

_SQUARED = {"rmse", "rmse_std", "nmse"}
"""Metrics that are functions of the mean squared error; their losses are squared errors."""


@dataclass(frozen=True)
class _Spread:
    """Variance components of a difference."""

    n_splits: int
    n_rows: int  # number of test rows of all splits
    row_std: float  # standard deviation of the difference between rows of a split
    rows: float  # variance of the means of splits that rows alone cause
    total: float  # variance of the means of splits

    @property
    def splits(self) -> float:
        """Variance between splits: the rest of the total, at least 0."""
        return max(0.0, self.total - self.rows)


def lines(differences: Sequence[Difference], predictions_of: _Reader) -> list[str]:
    """A line for each difference whose sides both kept predictions on two common splits."""
    spreads = [(d, spread(d.a, d.b, d.metric, predictions_of)) for d in differences]
    return [f"{d.name}: {_text(components, d.metric)}" for d, components in spreads if components]


def spread(a: CellRuns, b: CellRuns, metric: str, predictions_of: _Reader) -> _Spread | None:
    """The variance components of A - B; None for a metric that is no mean over rows, or below two splits."""
    losses_a, losses_b = (_by_split(cell, metric, predictions_of) for cell in (a, b))
    pairs = [(losses_a[split], losses_b[split]) for split in losses_a.keys() & losses_b.keys()]
    by_split = [of_a - of_b for (rows, of_a), (others, of_b) in pairs if len(rows) > 1 and np.array_equal(rows, others)]
    if len(by_split) < 2:
        return None
    variances, sizes = np.array([d.var(ddof=1) for d in by_split]), np.array([len(d) for d in by_split])
    return _Spread(
        n_splits=len(by_split),
        n_rows=int(sizes.sum()),
        row_std=float(np.sqrt(np.average(variances, weights=sizes - 1))),
        rows=float(np.mean(variances / sizes)),
        total=float(np.var([d.mean() for d in by_split], ddof=1)),
    )


def row_losses(metric: str, predictions: Mapping[str, np.ndarray]) -> "np.ndarray | None":
    """The losses of the test rows, whose mean is the metric; None for a metric that is no mean over rows."""
    y = predictions["target"]
    if metric in ("nll", "mnlp"):
        return -predictions["log_prob"]
    if metric in ("test_ll", "ll_std"):
        return predictions["log_prob"]
    if metric in _SQUARED:
        return (y - predictions["mean"]) ** 2
    if metric in ("error", "brier"):
        by_class = log_probs(predictions)
        truth = np.arange(by_class.shape[1]) == (y > 0 if by_class.shape[1] == 2 else y).astype(int)[:, None]
        if metric == "error":
            return 1.0 - truth[np.arange(len(y)), by_class.argmax(axis=1)]
        return np.sum((np.exp(by_class) - truth) ** 2, axis=1)
    return None


def _by_split(cell: CellRuns, metric: str, predictions_of: _Reader) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The numbers of the test rows and their losses, averaged over seeds, by split."""
    kept = ((record.split, predictions_of(record)) for record in cell.records)
    losses = ((split, p["row"], row_losses(metric, p)) for split, p in kept if p)
    seeds = gather((split, (rows, of_rows)) for split, rows, of_rows in losses if of_rows is not None)
    return {split: (runs[0][0], np.mean([of_rows for _, of_rows in runs], axis=0)) for split, runs in seeds.items()}


def _text(spread: _Spread, metric: str) -> str:
    noun = "A - B of the mean squared error" if metric in _SQUARED else "A - B"
    share = f" ({100 * spread.splits / spread.total:.0f} %)" if spread.total else ""
    return (
        f"over {spread.n_splits} splits with {spread.n_rows:,} test rows {noun} has the variance {spread.total:.2g}:"
        f" {spread.rows:.2g} is expected from rows alone, and {spread.splits:.2g}{share} is left for splits; standard"
        f" deviation between rows {spread.row_std:.2g}"
    )
