"""The greedy choice of inducing points against LAPACK's pivoted Cholesky factorisation and dense algebra."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf

from gpbench.core import greedy
from gpbench.core.features import SelectedPoints
from gpbench.core.greedy import select_rows
from gpbench.core.kernels import SquaredExponential
from gpbench.errors import ConfigError

KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))
X = jnp.asarray(np.random.default_rng(0).normal(size=(60, 2)))
K = np.asarray(KERNEL.cross(X, X))


def left(K, chosen):
    """diag(K - Q) of the chosen rows, by dense algebra."""
    return np.diag(K) - np.sum(K[:, chosen].T * np.linalg.solve(K[np.ix_(chosen, chosen)], K[chosen]), axis=0)


def test_pivots_are_those_of_lapack_and_the_rest_is_the_conditional_variance():
    selection = select_rows(KERNEL, X, 20)
    _, pivots, _, _ = dpstrf(K)
    np.testing.assert_array_equal(selection.index, pivots[:20] - 1)
    np.testing.assert_allclose(selection.rest, left(K, np.asarray(selection.index)), atol=1e-12)
    assert selection.count == 20 and selection.index[0] == 0  # of equal variances the first


def test_the_choice_ends_where_the_weighted_rest_is_small_enough():
    weight = jnp.where(jnp.arange(60) < 30, 2.0, 0.5)
    enough = 0.3 * float(weight @ np.diag(K))
    selection = select_rows(KERNEL, X, 20, weight=weight, enough=enough)
    chosen = np.asarray(selection.index)[: int(selection.count)]
    assert 0 < len(chosen) < 20
    assert weight @ left(K, chosen) <= enough < weight @ left(K, chosen[:-1])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_copies_of_rows_end_the_choice_and_the_places_left_are_filled_with_other_rows(dtype):
    some = X[:20].astype(dtype)
    copies = jnp.concatenate([some, some])
    kernel = SquaredExponential(jnp.array(0.7, dtype), jnp.log(jnp.array([0.1, 0.1], dtype)))
    selection = select_rows(kernel, copies, 40)
    assert selection.count == 20 and selection.rest.dtype == dtype
    np.testing.assert_array_equal(np.sort(selection.index[:20]), np.arange(20))
    np.testing.assert_array_equal(np.sort(selection.index), np.arange(40))


def test_points_that_are_not_in_use_tell_nothing_about_f():
    points = SelectedPoints(X[:5], jnp.array([1.0, 1.0, 0.0, 1.0, 0.0]))
    kept = np.array([0, 1, 3])
    gram, cross = np.asarray(points.gram(KERNEL)), np.asarray(points.cross(KERNEL, X))
    np.testing.assert_array_equal(gram[np.ix_(kept, kept)], KERNEL.cross(X[kept], X[kept]))
    np.testing.assert_array_equal(gram[[2, 4]], np.eye(5)[[2, 4]])
    np.testing.assert_array_equal(cross[[2, 4]], 0.0)
    np.testing.assert_allclose(cross[kept], KERNEL.cross(X[kept], X), rtol=1e-12)


def test_too_much_memory_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr("gpbench.core.memory.free_memory", lambda: 1000)
    with pytest.raises(ConfigError, match=r"^20 rows of the kernel matrix of 60 training rows, for a greedy choice"):
        greedy.select_rows(KERNEL, X, 20)
