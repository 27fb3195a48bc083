"""Means, standard errors and significance tests of every table, figure and page.

Splits of one data set share rows.  Their results are not independent, and a plain paired t test rejects far too often.
The corrected resampled t test of C. Nadeau and Y. Bengio, Inference for the Generalization Error, Machine Learning 52
(2003), pages 239-281, takes s^2 (1 / n + n_test / n_train) for the variance of a mean over n splits instead of s^2 / n.
R. R. Bouckaert and E. Frank, Evaluating the Replicability of Significance Tests for Comparing Learning Algorithms,
PAKDD (2004), take the same for r repeats of k folds: n = k r, and n_test / n_train is 1 / (k - 1).

Tests of average ranks over data sets: J. Demšar, Statistical Comparisons of Classifiers, JMLR 7 (2006), section 3.2.
Only tests import SciPy, when they are called, and none `scipy.stats`, whose import takes longer than all of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

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
    """The mean and its standard error, with n - 1; None for one value, and where a square overflows."""
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


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """The p-values of a family of tests after Benjamini and Hochberg's correction (1995), in the same order."""
    n, order = len(p_values), np.argsort(p_values)[::-1]
    largest_first = np.array(p_values)[order] * n / np.arange(n, 0, -1)
    return [*map(float, np.minimum.accumulate(largest_first)[np.argsort(order)])]


def rounded(values: Float[ndarray, "N k"]) -> Float[ndarray, "N k"]:
    """The values to 12 digits, so that rounding errors break no tie."""
    return np.array([[float(f"{value:.12g}") for value in row] for row in values])


def average_ranks(values: Float[ndarray, "N k"]) -> Float[ndarray, "N k"]:
    """The ranks of k values in each of N rows, 1 for the lowest; ties share their average rank."""
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return below + (equal + 1) / 2


def friedman(ranks: Float[ndarray, "N k"]) -> tuple[float, float]:
    """Friedman's test, corrected for ties: chi-square statistic and p-value; 0 and 1 where all methods tie."""
    from scipy.special import chdtrc

    N, k = ranks.shape
    spread = float(np.sum(ranks**2)) - N * k * (k + 1) ** 2 / 4
    if spread <= 0:
        return 0.0, 1.0
    between = float(np.sum((ranks.sum(axis=0) - N * (k + 1) / 2) ** 2))
    statistic = (k - 1) * between / spread
    return statistic, float(chdtrc(k - 1, statistic))


def critical_difference(N: int, k: int) -> float:
    """Nemenyi's critical difference at 5 % of average ranks of k methods on N data sets: q sqrt(k (k + 1) / 6N)."""
    return nemenyi_quantile(k) * math.sqrt(k * (k + 1) / (6 * N))


@cache
def nemenyi_quantile(k: int) -> float:
    """The quantile q at 5 % (Table 5a): the Studentised range of k means, infinite degrees of freedom, over sqrt(2)."""
    from scipy.special import ndtr

    # P(range < q) = k int phi(z) (Phi(z + q) - Phi(z))^(k - 1) dz; the sum over an even grid is exact to rounding
    z = np.linspace(-9.0, 9.0, 400)
    density = k * (z[1] - z[0]) * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    low, high = 0.0, 20.0
    while high - low > 1e-13 * high:
        q = (low + high) / 2
        share = float(density @ (ndtr(z + q) - ndtr(z)) ** (k - 1))
        low, high = (q, high) if share < 1 - LEVEL else (low, q)
    return high / math.sqrt(2)


def cliques(different: Bool[ndarray, "k k"]) -> tuple[tuple[int, int], ...]:
    """The maximal ranges (first, last) of at least two methods in which no pair is significantly different."""
    ranges: list[tuple[int, int]] = []
    for first in range(len(different)):
        last = first
        while last + 1 < len(different) and not different[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not ranges or last > ranges[-1][1]):
            ranges.append((first, last))
    return tuple(ranges)
