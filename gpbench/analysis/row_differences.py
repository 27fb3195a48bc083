"""How far a difference between two sides lies between test rows, and how far between splits, from kept predictions.

One-way random effects, d = mean + split + row, of the differences d of the two sides' losses on a test row of a split
(Searle, Casella and McCulloch 1992, section 3.6): rows alone let split means vary by s²/n, the mean over the splits of
the variance of d within a split over its number of rows, and what they vary by beyond that is the splits'.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.differences import Difference
from gpbench.records.record import Record

if TYPE_CHECKING:
    import numpy as np

PredictionsOf = Callable[[Record], "Mapping[str, np.ndarray]"]
"""The predictions kept beside a record; empty if none are."""

_SQUARED = {"rmse", "rmse_std", "nmse"}
"""Roots and ratios of the mean squared error, whose rows are squared errors."""


@dataclass(frozen=True)
class Spread:
    """`total`: the variance of the split means of a difference; `rows`: as much of it as rows alone would cause.

    `row_std` is the standard deviation of the difference between rows of one split; `n_rows` are those of all splits.
    """

    n_splits: int
    n_rows: int
    row_std: float
    rows: float
    total: float

    @property
    def splits(self) -> float:
        """The rest of the variance, which is that between splits; not below 0."""
        return max(0.0, self.total - self.rows)


def lines(differences: Sequence[Difference], predictions_of: PredictionsOf) -> list[str]:
    """A line for each difference whose sides both have predictions on two common splits; [] where none has."""
    spreads = [(d, spread(d.a, d.b, d.metric, predictions_of)) for d in differences]
    return [f"{d.name}: {_text(of, d.metric)}" for d, of in spreads if of]


def spread(a: CellRuns, b: CellRuns, metric: str, predictions_of: PredictionsOf) -> Spread | None:
    """The spread of A - B; None for a metric that is no mean over rows, and without two splits of two rows each."""
    import numpy as np

    losses_a, losses_b = (_by_split(cell, metric, predictions_of) for cell in (a, b))
    parts = [
        losses_a[split][1] - losses_b[split][1]
        for split in losses_a.keys() & losses_b.keys()
        if np.array_equal(losses_a[split][0], losses_b[split][0]) and len(losses_a[split][0]) > 1
    ]
    if len(parts) < 2:
        return None
    variances, sizes = np.array([part.var(ddof=1) for part in parts]), np.array([len(part) for part in parts])
    return Spread(
        n_splits=len(parts),
        n_rows=int(sizes.sum()),
        row_std=float(np.sqrt(np.average(variances, weights=sizes - 1))),
        rows=float(np.mean(variances / sizes)),
        total=float(np.var([part.mean() for part in parts], ddof=1)),
    )


def row_losses(metric: str, predictions: "Mapping[str, np.ndarray]") -> "np.ndarray | None":
    """What of the metric lies in each row, as in `gpbench.metrics`; None for a metric that is no mean over rows."""
    import numpy as np

    from gpbench.records.arrays import log_probs

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


def _by_split(cell: CellRuns, metric: str, predictions_of: PredictionsOf) -> "dict[int, tuple[np.ndarray, np.ndarray]]":
    """By split the numbers of its test rows, and the losses there, averaged over seeds."""
    import numpy as np

    seeds: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
    for record in cell.records:
        predictions = predictions_of(record)
        losses = row_losses(metric, predictions) if predictions else None
        if losses is not None:
            seeds.setdefault(record.split, []).append((predictions["row"], losses))
    return {split: (of[0][0], np.mean([losses for _, losses in of], axis=0)) for split, of in seeds.items()}


def _text(of: Spread, metric: str) -> str:
    what = "A - B of the mean squared error" if metric in _SQUARED else "A - B"
    share = f" ({100 * of.splits / of.total:.0f} %)" if of.total else ""
    return (
        f"over {of.n_splits} splits with {of.n_rows:,} test rows {what} has the variance {of.total:.2g}: {of.rows:.2g}"
        f" is expected from rows alone, and {of.splits:.2g}{share} is left for splits; standard deviation between rows"
        f" {of.row_std:.2g}"
    )
