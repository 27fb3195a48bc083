"""Mean, standard error and the corrected paired t test, as every table, figure and page uses them.

Splits of one data set share rows, so that their results are not independent and a plain paired t test rejects far too
often.  The corrected resampled t test of C. Nadeau and Y. Bengio, Inference for the Generalization Error, Machine
Learning 52 (2003), pages 239-281, has s^2 (1 / n + n_test / n_train) for the variance of a mean over n splits, in place
of s^2 / n.

Standard library only, except that the t test imports SciPy when it is called.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

LEVEL = 0.05
"""Significance level of all tests."""


class TTest(NamedTuple):
    """The corrected resampled t test of the mean of paired differences against 0, with n - 1 degrees of freedom.

    `stderr` is the corrected standard error of the mean, `low` and `high` are the ends of the 95 % confidence interval,
    `p` is two-sided; all are None where no test is possible.
    """

    mean: float
    stderr: float | None
    low: float | None
    high: float | None
    p: float | None

    @property
    def possible(self) -> bool:
        """Whether there is a test: not for a single split, for equal differences other than 0, and without a ratio."""
        return self.p is not None

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


def paired_t_test(differences: Sequence[float], ratio: float | None) -> TTest:
    """Tests these differences, one for each split.  Raises StatisticsError without differences.

    `ratio` is n_test / n_train of the splits; 0 is the plain paired t test of independent differences, and with None,
    for unknown, there is no test.
    """
    from scipy.special import stdtr, stdtrit

    n, (mean, plain) = len(differences), mean_stderr(differences)
    # differences that are equal to rounding have no variance to judge by, except that ties are ties
    if plain is None or ratio is None or 0 < abs(mean) * 1e-12 >= plain:
        return TTest(mean, None, None, None, None)
    # s^2 (1 / n + ratio)
    stderr = plain * math.sqrt(1 + n * ratio)
    half_width = stderr * float(stdtrit(n - 1, 1 - LEVEL / 2))
    p = 2 * float(stdtr(n - 1, -abs(mean) / stderr)) if stderr else 1.0
    return TTest(mean, stderr, mean - half_width, mean + half_width, p)


def largest_ratio(ratios: Iterable[float | None]) -> float | None:
    """The largest of these ratios, whose test is the most careful one; None where one is unknown, and without any."""
    known = list(ratios)
    return None if None in known else max((ratio for ratio in known if ratio is not None), default=None)


def common_splits(by_split: Iterable[Mapping[int, float]]) -> list[int]:
    """The splits that all of these mappings share, ascending; empty without mappings."""
    keys = [of.keys() for of in by_split]
    return sorted(set(keys[0]).intersection(*keys[1:])) if keys else []
