"""Significance tests of ranks over data sets.

J. Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7 (2006), section 3.2.
"""

import functools
import math

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.analysis.statistics import LEVEL


def friedman(ranks: Float[ndarray, "N k"]) -> tuple[float, float]:
    """Friedman's test that k methods have equal ranks on N data sets, corrected for ties.

    Args:
        ranks: Ranks by data set and method.

    Returns:
        The chi-square statistic with k - 1 degrees of freedom and its p-value; 0 and 1 where all methods tie on every
        data set.
    """
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


@functools.cache
def nemenyi_quantile(k: int) -> float:
    """The quantile q at 5 % (Table 5a): the Studentised range of k means, infinite degrees of freedom, over sqrt(2)."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - LEVEL, k, np.inf)) / math.sqrt(2)


def wilcoxon_holm(values: Float[ndarray, "N k"]) -> Float[ndarray, "k k"]:
    """Wilcoxon's signed-rank test of all pairs of k methods on N data sets, with Holm's correction.

    Args:
        values: Values by data set and method.

    Returns:
        The adjusted p-values by pair; 1 for pairs that tie on every data set.
    """
    from scipy.stats import wilcoxon

    k = values.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    p_values = []
    for i, j in pairs:
        difference = values[:, i] - values[:, j]
        p_values.append(float(wilcoxon(difference).pvalue) if difference.any() else 1.0)
    adjusted, largest = np.ones((k, k)), 0.0
    for step, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(pairs) - step) * p_values[index]))
        i, j = pairs[index]
        adjusted[i, j] = adjusted[j, i] = largest
    return adjusted


def smallest_wilcoxon_holm(N: int, k: int) -> float:
    """The smallest p-value that `wilcoxon_holm` can give for N data sets and k methods: k (k - 1) / 2 times 2 / 2^N."""
    return k * (k - 1) / 2**N


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
