"""Statistics of the rows that initial values need, in NumPy: cluster centres, and the median distance between rows.
scikit-learn and SciPy have both, and their import costs more than most data sets' whole training."""

import warnings

import numpy as np
from jaxtyping import Float, Int

_LARGE = 2e6  # rows times centres from which scikit-learn's k-means, which is three times as fast, is worth its import
_ROUNDS = 50  # largest number of Lloyd's iterations
_TOLERANCE = 1e-4  # squared shift of all centres, in units of the inputs' mean variance, below which they stay
_BLOCK = 256  # number of rows that are compared with all others or all centres at a time: a cache holds these distances


def kmeans(X: Float[np.ndarray, "N D"], start: Float[np.ndarray, "M D"]) -> Float[np.ndarray, "M D"]:
    """Cluster centres by Lloyd's algorithm, to rounding the same for small and large data, in the dtype of the rows.
    Where there are fewer different rows than centres, some are copies of others."""
    if len(X) * len(start) < _LARGE and (centres := _lloyd(X, start)) is not None:
        return centres
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():  # of fewer different rows than centres
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(len(start), init=start, n_init=1, max_iter=_ROUNDS, tol=_TOLERANCE).fit(X).cluster_centers_


def _lloyd(X: Float[np.ndarray, "N D"], start: Float[np.ndarray, "M D"]) -> Float[np.ndarray, "M D"] | None:
    """Centres as scikit-learn finds them, step by step: the numbers of runs that were recorded with it stay.  None
    where a centre loses all rows, as it does where some rows are equal: scikit-learn knows where to move it."""
    middle = X.mean(axis=0)
    X, centres = X - middle, start - middle
    tolerance = _TOLERANCE * np.mean(np.var(X, axis=0))
    labels = np.full(len(X), -1)
    for _ in range(_ROUNDS):
        old_labels, labels = labels, _nearest(X, centres)
        counts = np.bincount(labels, minlength=len(centres))
        if not counts.all():
            return None
        sums = np.stack([np.bincount(labels, column, len(centres)) for column in X.T], axis=1)
        old, centres = centres, (sums * (1.0 / counts)[:, None]).astype(X.dtype)
        if np.array_equal(labels, old_labels) or np.sum((centres - old) ** 2) <= tolerance:
            break
    return centres + middle


def _nearest(X: Float[np.ndarray, "N D"], centres: Float[np.ndarray, "M D"]) -> Int[np.ndarray, " N"]:
    """The number of the nearest centre of each row."""
    squares, factors = np.einsum("md,md->m", centres, centres), -2.0 * centres.T
    blocks = (X[i : i + _BLOCK] for i in range(0, len(X), _BLOCK))
    return np.concatenate([np.argmin(block @ factors + squares, axis=1) for block in blocks])


def median_distance(X: Float[np.ndarray, "N D"]) -> float:
    """The median Euclidean distance between different rows, in units of the inputs; 1 if all rows are equal."""
    X = np.asarray(X, np.float64)
    squares = np.concatenate([_later_squares(X[i:]) for i in range(0, len(X), _BLOCK)])
    positive = np.sqrt(squares[squares > 0])
    return float(np.median(positive)) if positive.size else 1.0


def _later_squares(X: Float[np.ndarray, "N D"]) -> Float[np.ndarray, " P"]:
    """The squared distances of the first block of rows to each row after them, input by input: 0 for equal rows."""
    block = X[:_BLOCK]
    squares = np.zeros((len(block), len(X)))
    for ours, others in zip(block.T, X.T):
        squares += (ours[:, None] - others) ** 2
    return squares[~np.tri(*squares.shape, dtype=bool)]
