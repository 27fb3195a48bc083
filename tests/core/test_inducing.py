"""Where lengthscales and inducing points start: medians, cluster centres and the greedy choice."""

import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf
from sklearn.cluster import KMeans

from gpbench.core import clusters, greedy
from gpbench.core.features import SelectedPoints, inducing_points
from gpbench.core.greedy import select_rows
from gpbench.core.kernels import SquaredExponential
from gpbench.core.kernels.base import initial_log_lengthscales2
from gpbench.errors import ConfigError

X = jnp.asarray([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])  # distances 5, 5, 10; along the inputs 3, 3, 6 and 4, 4, 8


@pytest.mark.parametrize(
    ("start", "lengthscales"), [("median", [5.0, 5.0]), ("root_median", [5**0.5] * 2), ("median_each", [3.0, 4.0])]
)
def test_initial_lengthscales(start, lengthscales):
    np.testing.assert_allclose(jnp.exp(0.5 * initial_log_lengthscales2(X, start)), lengthscales, rtol=1e-12)


def test_a_constant_input_starts_at_one_and_more_points_than_different_rows_are_copies_of_them():
    with_constant = jnp.concatenate([X, jnp.ones((3, 1))], axis=1)
    assert initial_log_lengthscales2(with_constant, "median_each")[2] == 0.0
    with warnings.catch_warnings(action="error"):
        Z = inducing_points(jnp.concatenate([X, X, X]), 7, "kmeans", key=jax.random.key(0))
    np.testing.assert_allclose(np.unique(Z, axis=0), X)


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


KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))
POINTS = jnp.asarray(np.random.default_rng(0).normal(size=(60, 2)))
K = np.asarray(KERNEL.cross(POINTS, POINTS))


def left(K, chosen):
    """diag(K - Q) of the chosen rows, by dense algebra."""
    return np.diag(K) - np.sum(K[:, chosen].T * np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]), axis=0)


def test_pivots_are_those_of_lapack_and_the_rest_is_the_conditional_variance():
    selection = select_rows(KERNEL, POINTS, 20)
    _, pivots, _, _ = dpstrf(K)
    np.testing.assert_array_equal(selection.index, pivots[:20] - 1)
    np.testing.assert_allclose(selection.rest, left(K, np.asarray(selection.index)), atol=1e-12)
    assert selection.count == 20 and selection.index[0] == 0  # of equal variances the first


def test_the_choice_ends_where_the_weighted_rest_is_small_enough():
    weight = jnp.where(jnp.arange(60) < 30, 2.0, 0.5)
    enough = 0.3 * float(weight @ np.diag(K))
    selection = select_rows(KERNEL, POINTS, 20, weight=weight, enough=enough)
    chosen = np.asarray(selection.index)[: int(selection.count)]
    assert 0 < len(chosen) < 20
    assert weight @ left(K, chosen) <= enough < weight @ left(K, chosen[:-1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_copies_of_rows_end_the_choice_and_the_places_left_are_filled_with_other_rows(dtype):
    some = POINTS[:20].astype(dtype)
    copies = jnp.concatenate([some, some])
    kernel = SquaredExponential(jnp.array(0.7, dtype), jnp.log(jnp.array([0.1, 0.1], dtype)))
    selection = select_rows(kernel, copies, 40)
    assert selection.count == 20 and selection.rest.dtype == dtype
    np.testing.assert_array_equal(np.sort(selection.index[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(selection.index), np.arange(40))


def test_points_that_are_not_in_use_tell_nothing_about_f():
    points = SelectedPoints(POINTS[:5], jnp.array([1.0, 1.0, 0.0, 1.0, 0.0]))
    kept = np.array([0, 1, 3])
    gram, cross = np.asarray(points.gram(KERNEL)), np.asarray(points.cross(KERNEL, POINTS))
    np.testing.assert_array_equal(gram[np.ix_(kept, kept)], KERNEL.cross(POINTS[kept], POINTS[kept]))
    np.testing.assert_array_equal(gram[[2, 4]], np.eye(5)[[2, 4]])
    np.testing.assert_array_equal(cross[[2, 4]], 0.0)
    np.testing.assert_allclose(cross[kept], KERNEL.cross(POINTS[kept], POINTS), rtol=1e-12)


def test_too_much_memory_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"^20 rows of the kernel matrix of 60 training rows, for a greedy choice"):
        greedy.select_rows(KERNEL, POINTS, 20)
