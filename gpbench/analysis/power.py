"""Power of comparisons: the smallest difference that recorded splits show, and the splits that a difference needs; and
variance components of a difference: test rows and splits, from kept predictions.

Under the corrected resampled t test (`gpbench.analysis.statistics`) the statistic has Student's noncentral t
distribution with n - 1 degrees of freedom, whose noncentrality is the true difference over the corrected standard error
s sqrt(1 / n + n_test / n_train).  The second term has no n: differences below a floor need more data, not more splits.

The model of the components has one-way random effects, d = mean + split + row, for the difference d of the two losses
on a test row (S. R. Searle, G. Casella and C. E. McCulloch, Variance Components, 1992, section 3.6).  Rows alone let
the means of splits vary by the mean over splits of s²/n, where s² is the variance of d within a split of n rows.  The
rest of their variance is due to splits."""

import bisect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpbench.analysis.cells import CellRuns
from gpbench.analysis.differences import Difference, feet, pair_names
from gpbench.analysis.grouping import gather
from gpbench.analysis.printing import counted, number
from gpbench.analysis.provenance import facts_of, seconds_lines
from gpbench.analysis.sheets import Grid, Sheet
from gpbench.analysis.sides import Side
from gpbench.analysis.statistics import LEVEL
from gpbench.analysis.tables import title
from gpbench.errors import ConfigError
from gpbench.records.arrays import log_probs
from gpbench.records.record import Record

_POWER = 0.8  # probability with which a difference is to be shown
NOTE = (
    "smallest true difference that n splits, or any number of them, show with 80 % probability, and splits needed if"
    " the true difference is the observed one: corrected resampled t test, two-sided at 5 %, with the observed standard"
    " deviation of splits"
)
_MOST = 10**6  # number of splits beyond which more of them change nothing
_LARGE = 100.0  # noncentrality that is significant with any number of splits, and that SciPy's functions still compute


def power_of(noncentrality: float, n: int) -> float:
    """The probability that the two-sided test over n splits rejects: P(|T| > t) for a noncentral T."""
    from scipy.special import nctdtr, stdtrit

    shift, t = min(abs(noncentrality), _LARGE), stdtrit(n - 1, 1 - LEVEL / 2)
    below, inside = (0.0 if math.isnan(p) else p for p in nctdtr(n - 1, shift, [-t, t]))  # NaN where it underflows
    return float(below + 1 - inside)


def smallest_difference(sd: float, n: int, ratio: float) -> float:
    """The true difference that n splits show with probability `_POWER`, without the other tail, below 1e-6."""
    from scipy.special import nctdtrinc, stdtrit

    return _stderr(sd, n, ratio) * float(nctdtrinc(n - 1, 1 - _POWER, stdtrit(n - 1, 1 - LEVEL / 2)))


def splits_needed(difference: float, sd: float, ratio: float) -> float:
    """The fewest splits that show a true difference with probability `_POWER`; infinity beyond a million."""

    def enough(n: int) -> bool:
        stderr = _stderr(sd, n, ratio)
        return power_of(difference / stderr if stderr else math.copysign(_LARGE, difference), n) >= _POWER

    if difference == 0 or not enough(_MOST):
        return math.inf
    return bisect.bisect_left(range(_MOST), True, lo=2, key=enough)


def sheet(a: Side, b: Side, differences: Sequence[Difference]) -> Sheet:
    """The sheet of the power of comparisons: a line for each difference with a test."""
    powers = [(d, row) for d in differences if (row := _row(d))]
    if not powers:
        raise ConfigError(
            "no power without a test, which needs two splits that both sides have, a known correction of their"
            " variance, and records with the numbers of training and test rows: train more splits with `gpbench run`"
        )
    records = [record for d, _ in powers for record in d.records]
    sides = f"{a.value} - {b.value}"
    header = ("data set", sides, "sd of splits", "corrected se", "n", "smallest with n", "with any n", "splits needed")
    lines = tuple(_line(d, row) for d, row in powers)
    return Sheet(
        title=f"Power of the comparison of {a.value} with {b.value} on {counted(len(powers), 'data set')}.",
        grids=[Grid(title(differences[0].metric, records), header, lines)],
        remarks=[*feet(NOTE, differences), *(seconds_lines(records) if differences[0].metric == "seconds" else [])],
        facts=facts_of(records),
        rows=[row for _, row in powers],
    )


def _stderr(sd: float, n: int, ratio: float) -> float:
    return sd * math.sqrt(1 / n + ratio)


def _row(d: Difference) -> dict:
    """The numbers of a line by name, {} without a test; `splits_needed` is "never" where no number is enough."""
    if d.test.stderr is None or d.ratio is None:
        return {}
    sd = d.test.stderr / _stderr(1.0, d.n, d.ratio)
    needed = splits_needed(d.test.mean, sd, d.ratio)
    return {
        **pair_names(d),
        "difference": d.test.mean,
        "sd": sd,
        "stderr": d.test.stderr,
        "n_splits": d.n,
        "test_train_ratio": d.ratio,
        "smallest_difference": smallest_difference(sd, d.n, d.ratio),
        "floor": smallest_difference(sd, _MOST, d.ratio),
        "splits_needed": "never" if math.isinf(needed) else int(needed),
    }


def _line(d: Difference, row: Mapping) -> tuple[str, ...]:
    needed = row["splits_needed"]
    floors = (number(row["smallest_difference"]), number(row["floor"]))
    words = (f"{d.test.mean:+.4g}", number(row["sd"]), number(row["stderr"]), str(d.n), *floors)
    return (d.name, *words, needed if needed == "never" else f"{needed:,}")


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
    predictions = ((record.split, predictions_of(record)) for record in cell.records)
    losses = ((split, p["row"], row_losses(metric, p)) for split, p in predictions if p)
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
