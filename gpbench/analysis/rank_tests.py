"""Tests of average ranks over data sets: J. Demšar, Statistical Comparisons of Classifiers, JMLR 7 (2006), section 3.2.

Nothing here needs `scipy.stats`, whose import takes longer than all of these tests.
"""

import math
from functools import cache

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from gpbench.analysis.statistics import LEVEL, holm

_MOST_EXACT, _MOST_TIED = 50, 13
"""Numbers of data sets up to which Wilcoxon's test is exact: without ties, and with them, as SciPy has it."""


def rounded(values: Float[ndarray, "N k"]) -> Float[ndarray, "N k"]:
    """The values to 12 digits, so that rounding errors break no tie."""
    return np.array([[float(f"{value:.12g}") for value in row] for row in values])


def average_ranks(values: Float[ndarray, "N k"]) -> Float[ndarray, "N k"]:
    """The ranks of k values in each of N rows, 1 for the lowest; ties share their average rank."""
    below = (values[:, None, :] < values[:, :, None]).sum(axis=2)
    equal = (values[:, None, :] == values[:, :, None]).sum(axis=2)
    return below + (equal + 1) / 2


def friedman(ranks: Float[ndarray, "N k"]) -> tuple[float, float]:
    """Friedman's test that k methods have equal ranks on N data sets, corrected for ties: the chi-square statistic with
    k - 1 degrees of freedom and its p-value; 0 and 1 where all methods tie on every data set.
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


def wilcoxon_holm(values: Float[ndarray, "N k"]) -> Float[ndarray, "k k"]:
    """The p-values of Wilcoxon's signed-rank test of all pairs of k methods on N data sets, with Holm's correction; 1
    for pairs that tie on every data set.
    """
    k = values.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k)]
    adjusted = np.ones((k, k))
    for (i, j), p in zip(pairs, holm([_wilcoxon(values[:, i] - values[:, j]) for i, j in pairs])):
        adjusted[i, j] = adjusted[j, i] = p
    return adjusted


def _wilcoxon(differences: Float[ndarray, " N"]) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test, without differences of 0: exact, or normal for many."""
    from scipy.special import ndtr

    signed = differences[differences != 0]
    n = len(signed)
    if not n:
        return 1.0
    ranks = average_ranks(np.abs(signed)[None])[0]
    plus = float(ranks[signed > 0].sum())
    _, sizes = np.unique(ranks, return_counts=True)
    if len(differences) > (_MOST_EXACT if len(sizes) == len(differences) else _MOST_TIED):
        variance = (n * (n + 1) * (2 * n + 1) - float((sizes**3 - sizes).sum()) / 2) / 24
        return 2 * float(ndtr(-abs(plus - n * (n + 1) / 4) / math.sqrt(variance)))
    # the number of the 2^n signs that give each sum of positive ranks, in halves
    counts = np.zeros(n * (n + 1) + 1)
    counts[0] = 1
    for rank in (2 * ranks).astype(int):
        counts[rank:] += counts[:-rank].copy()
    tail = min(counts[: int(2 * plus) + 1].sum(), counts[int(2 * plus) :].sum())
    return min(1.0, 2 * float(tail) / 2**n)


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
