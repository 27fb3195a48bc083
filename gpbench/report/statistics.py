"""Mean, standard error and the paired t test, as every table, figure and page uses them.  Standard library only,
except that the t test imports SciPy when it is called."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

LEVEL = 0.05
"""Significance level of all tests."""


class TTest(NamedTuple):
    """Student's t test of the mean of paired differences against 0.

    `low` and `high` are the ends of the 95 % confidence interval, `p` is two-sided; all are None without a standard
    error, as for a single difference.
    """

    mean: float
    low: float | None
    high: float | None
    p: float | None

    @property
    def significant(self) -> bool:
        """Whether the interval excludes 0, which is p < 0.05."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def mean_stderr(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and its standard error: the standard deviation (with n - 1) over sqrt(n).

    The standard error is None for one value, and where a square overflows.  Raises StatisticsError without values.
    """
    n, mean = len(values), fmean(values)
    if n < 2:
        return mean, None
    try:
        variance = math.fsum((value - mean) ** 2 for value in values) / (n - 1)
    except OverflowError:
        return mean, None
    return mean, math.sqrt(variance / n)


def paired_t_test(differences: Sequence[float]) -> TTest:
    """Tests these differences, one for each split.  Raises StatisticsError without differences."""
    from scipy.special import stdtr, stdtrit

    n, (mean, stderr) = len(differences), mean_stderr(differences)
    if stderr is None:
        return TTest(mean, None, None, None)
    half_width = stderr * float(stdtrit(n - 1, 1 - LEVEL / 2))
    p = 2 * float(stdtr(n - 1, -abs(mean) / stderr)) if stderr else float(mean == 0)
    return TTest(mean, mean - half_width, mean + half_width, p)


def common_splits(by_split: Iterable[Mapping[int, float]]) -> list[int]:
    """The splits that all of these mappings share, ascending; empty without mappings."""
    keys = [of.keys() for of in by_split]
    return sorted(set(keys[0]).intersection(*keys[1:])) if keys else []
