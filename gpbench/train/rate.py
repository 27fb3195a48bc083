"""The rate of this machine, by which CPU seconds of different machines compare."""

import functools
import time

import numpy as np
from numpy import ndarray
from threadpoolctl import threadpool_limits

_SECONDS = 0.0100
"""CPU seconds that the work below takes on the machine of the first boards, whose rate is 1."""


@functools.cache
def machine_rate() -> float:
    """How many seconds of the machine of rate 1 a CPU second of this one is worth: by a fixed mixture of matrix
    products, factors and exponentials, the quickest of seven."""
    angles = np.cos(np.outer(np.arange(256.0), np.arange(256.0)))
    with threadpool_limits(1):  # idle threads of BLAS spin
        return round(_SECONDS / min(_cpu_seconds(angles) for _ in range(7)), 3)


def _cpu_seconds(matrix: ndarray) -> float:
    start = time.process_time()
    for _ in range(3):
        gram = matrix @ matrix.T + 256.0 * np.eye(256)
        np.linalg.slogdet(np.exp(-gram / 256.0) + gram)
    return max(time.process_time() - start, 1e-6)
