"""Cluster centres and the median distance: equal to scikit-learn's, and to all pairs compared one by one."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans

from gpbench.core import clusters

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("rows", [RNG.normal(size=(700, 3)), RNG.integers(0, 4, (300, 2)).astype(float)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_centres_are_those_of_scikit_learn_whichever_computes_them(rows, dtype, monkeypatch):
    X = rows.astype(dtype)
    start = X[:60]  # of the integers some are equal: their centres lose their rows
    with warnings.catch_warnings(action="ignore"):
        known = KMeans(60, init=start, n_init=1, max_iter=50).fit(X).cluster_centers_
    for large in (np.inf, 0):
        monkeypatch.setattr(clusters, "_LARGE", large)
        centres = clusters.kmeans(X, start)
        assert centres.dtype == dtype
        np.testing.assert_allclose(centres, known, atol=10 * np.finfo(dtype).eps)


def test_the_median_distance_is_that_of_all_pairs_of_different_rows():
    X = RNG.normal(size=(300, 4))
    X[200:] = X[:100]
    distances = [np.sqrt(np.sum((x - y) ** 2)) for x, y in itertools.combinations(X, 2)]
    assert clusters.median_distance(X) == pytest.approx(np.median([d for d in distances if d > 0]), rel=1e-14)
    assert clusters.median_distance(np.ones((5, 2))) == 1.0
