"""Statistics of a few numbers, in plain Python."""

import math
from collections.abc import Sequence


def mean_stderr(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean of at least one value, and its standard error: None for one value alone."""
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return mean, None
    return mean, math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)
