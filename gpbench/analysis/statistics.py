"""Means, standard errors and significance tests of every table, figure and page.

Splits of one data set share rows.  Their results are not independent, and a plain paired t test rejects far too often.
The corrected resampled t test of C. Nadeau and Y. Bengio, Inference for the Generalization Error, Machine Learning 52
(2003), pages 239-281, takes s^2 (1 / n + n_test / n_train) for the variance of a mean over n splits instead of s^2 / n.
R. R. Bouckaert and E. Frank, Evaluating the Replicability of Significance Tests for Comparing Learning Algorithms,
PAKDD (2004), take the same for r repeats of k folds: n = k r, and n_test / n_train is 1 / (k - 1).

`rank_tests` has the tests over data sets.  Only tests import SciPy, when they are called.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

LEVEL = 0.05
"""Significance level of all tests."""

FOLDS = ("kfold",)
"""Split sets of which the correction is that of repeated folds."""
INDEPENDENT = ("draws",)
"""Split sets whose splits train on rows of their own, so that no variance is corrected for shared rows."""
UNTESTED = {
    "groups90": "whole groups are left out",
    "groups_kfold": "whole groups are left out",
    "temporal": "each split trains on the past of the next",
    "fixed": "their rows were given",
}
"""Split sets of which no correction of the variance is known, with the reason."""


class TTest(NamedTuple):
    """The corrected resampled t test of the mean of paired differences against 0, with n - 1 degrees of freedom."""

    mean: float  # mean of the differences
    stderr: float | None  # corrected standard error of the mean; None, like all below, where no test is possible
    low: float | None  # ends of the 95 % confidence interval
    high: float | None
    p: float | None  # two-sided p-value

    @property
    def possible(self) -> bool:
        """False for a single split, for equal differences other than 0, and without a ratio."""
        return self.p is not None

    @property
    def significant(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def mean_stderr(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error, the standard deviation (with n - 1) over sqrt(n): None for one value, and where
    a square overflows.
    """
    n, mean = len(values), fmean(values)
    if n < 2:
        return mean, None
    try:
        variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    except OverflowError:
        return mean, None
    return mean, math.sqrt(variance / n)


def paired_t_test(differences: Sequence[float], ratio: float | None) -> TTest:
    """The corrected resampled t test of the mean of paired differences against 0."""
    from scipy.special import stdtr, stdtrit

    n, (mean, plain) = len(differences), mean_stderr(differences)
    # Differences that are equal up to rounding have no variance to judge by; differences of 0 are ties.
    if plain is None or ratio is None or 0 < abs(mean) * 1e-12 >= plain:
        return TTest(mean, None, None, None, None)
    # s^2 (1 / n + ratio)
    stderr = plain * math.sqrt(1 + n * ratio)
    half_width = stderr * float(stdtrit(n - 1, 1 - LEVEL / 2))
    p = 2 * float(stdtr(n - 1, -abs(mean) / stderr)) if stderr else 1.0
    return TTest(mean, stderr, mean - half_width, mean + half_width, p)


def largest_ratio(ratios: Iterable[float | None]) -> float | None:
    """The largest ratio, which makes the most careful test; None without ratios, and where one is unknown (None)."""
    known = list(ratios)
    return None if None in known else max((ratio for ratio in known if ratio is not None), default=None)


def common_splits(by_split: Iterable[Mapping[int, float]]) -> list[int]:
    """The splits that all mappings share, in ascending order; none without mappings."""
    keys = [values.keys() for values in by_split]
    return sorted(set(keys[0]).intersection(*keys[1:])) if keys else []


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests after Holm's step-down correction, in the same order."""
    adjusted, largest = [1.0] * len(p_values), 0.0
    for step, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests after the step-up correction of the false discovery rate, in the same order.
    Y. Benjamini and Y. Hochberg, Controlling the False Discovery Rate, JRSS B 57 (1995), pages 289-300.
    """
    adjusted, smallest = [1.0] * len(p_values), 1.0
    for index in np.argsort(p_values, kind="stable")[::-1]:
        rank = sum(p <= p_values[index] for p in p_values)
        smallest = min(smallest, len(p_values) / rank * p_values[index])
        adjusted[index] = smallest
    return adjusted
