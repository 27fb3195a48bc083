"""Basis functions in blocks: cosines, random features from seeds, kernel functions, draws and sparse updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from gpbench.core.bases import KernelFunctions, RandomFeatures, draw_blocks
from gpbench.core.bases import kernel as kernel_basis
from gpbench.core.bases.base import adagrad, merge
from gpbench.core.bases.fourier import cosine_of_turns, spectral_degrees
from gpbench.core.kernels import Matern12, Matern32, Matern52, SquaredExponential

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(7, 3)))


@jax.jit
def covariance(kernel, X):
    """Of all pairs of rows, compiled."""
    return kernel.cross(X, X)


@jax.jit
def values_of(basis, kernel, blocks):
    """The functions of these blocks at X, without their unit."""
    return basis.values(kernel, X, basis.locations(blocks, 3, X.dtype))


@jax.jit
def evaluated(basis, kernel, X, blocks):
    """`basis.evaluate`, compiled."""
    return basis.evaluate(kernel, X, blocks)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 6e-7), ("float64", 2e-14)])
def test_cosines_and_their_derivatives(dtype, tolerance):
    u = jnp.linspace(-4.0, 4.0, 20_001, dtype=dtype)
    exact = np.cos(2 * np.pi * np.asarray(u, float))
    np.testing.assert_allclose(jax.jit(cosine_of_turns)(u), exact, atol=tolerance)
    slope = jax.jit(jax.vmap(jax.grad(cosine_of_turns)))(u)
    np.testing.assert_allclose(slope, -2 * np.pi * np.sin(2 * np.pi * np.asarray(u, float)), atol=10 * tolerance)
    assert slope.dtype == u.dtype


@pytest.mark.parametrize("cls", [SquaredExponential, Matern12, Matern32, Matern52])
def test_random_features_estimate_the_kernel_without_bias(cls):
    """The mean over 200,000 features, within 4 standard errors for every pair of rows."""
    kernel = cls(jnp.asarray(0.3), jnp.asarray([0.2, -0.4, 1.0]))
    basis = RandomFeatures(jax.random.key(0), 200_000, 1_000, spectral_degrees(kernel))

    def add(sums, b):
        Phi = basis.evaluate(kernel, X, b[None]) * jnp.sqrt(1.0 * basis.size)
        return (sums[0] + Phi @ Phi.T, sums[1] + (Phi**2) @ (Phi**2).T), None

    sums = jax.jit(lambda: jax.lax.scan(add, (jnp.zeros((7, 7)),) * 2, jnp.arange(basis.blocks))[0])()
    mean, square = (np.asarray(s) / basis.size for s in sums)
    error = np.sqrt((square - mean**2) / basis.size)
    assert (abs(mean - np.asarray(covariance(kernel, X))) < 4 * error).all()


def test_a_feature_follows_from_its_seed_alone_and_the_last_block_may_be_longer_than_what_is_left():
    """Whatever is evaluated with it, in either precision, stored or not."""
    kernel = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4, 1.0]))
    basis = RandomFeatures(jax.random.key(5), 40, 4, 0)
    whole = evaluated(basis, kernel, X, jnp.arange(10))
    of_two, of_one = (np.asarray(values_of(basis, kernel, jnp.asarray(blocks))) for blocks in ([7, 2], [2]))
    np.testing.assert_array_equal(of_two[:, 4:], of_one)
    np.testing.assert_allclose(
        evaluated(basis.store(3, X.dtype), kernel, X, jnp.arange(10)), whole, rtol=1e-12, atol=1e-13
    )
    single = jax.tree.map(lambda a: a.astype(jnp.float32), (kernel, X))
    np.testing.assert_allclose(evaluated(basis, *single, jnp.arange(10)), whole, atol=2e-6)
    longer = RandomFeatures(jax.random.key(5), 80, 4, 0)
    np.testing.assert_array_equal(values_of(longer, kernel, jnp.arange(10)), values_of(basis, kernel, jnp.arange(10)))
    kernel = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4, 1.0]))
    for basis in (KernelFunctions.around(X, 3), RandomFeatures(jax.random.key(0), 7, 3, 0)):
        values = np.asarray(values_of(basis, kernel, jnp.arange(3)))
        assert values.shape == (7, 9) and not values[:, 7:].any() and values[:, :7].all()
    kernels = KernelFunctions.around(X, 3)
    values, squares = evaluated(kernels, kernel, X, jnp.arange(3)), squares_of(kernels, kernel)
    np.testing.assert_allclose(values[:, :7], covariance(kernel, X), rtol=1e-12)
    np.testing.assert_allclose(squares, np.mean(np.square(covariance(kernel, X)), axis=0), rtol=1e-12)


def squares_of(basis, kernel):
    """The mean squares of the functions over the rows of X, (7,)."""
    return np.asarray(jax.jit(lambda: basis.initial_squares(kernel, X))()).ravel()[:7]


def test_mean_squares_in_several_parts_are_those_of_one(monkeypatch):
    monkeypatch.setattr("gpbench.core.bases.kernel._ROWS", 3)
    monkeypatch.setattr("gpbench.core.bases.kernel._COLUMNS", 4)
    kernel = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4, 1.0]))
    ours = squares_of(KernelFunctions.around(X, 2), kernel)
    np.testing.assert_allclose(ours, np.mean(np.square(covariance(kernel, X)), axis=0), rtol=1e-12)


@pytest.mark.parametrize("rows", [3, 8, 21])
def test_a_product_of_half_of_the_blocks_is_that_of_the_whole_kernel_matrix(monkeypatch, rows):
    monkeypatch.setattr(kernel_basis, "PRODUCT_ROWS", 4)
    X, A = (jax.random.normal(jax.random.key(k), (rows, columns)) for k, columns in enumerate((2, 3)))
    kernel = Matern32(jnp.log(2.0), jnp.zeros(2))
    expected = np.asarray(covariance(kernel, X)) @ np.asarray(A)
    np.testing.assert_allclose(jax.jit(kernel_basis.gram_product)(kernel, X, A), expected, rtol=1e-12)


@pytest.mark.parametrize("replacement", [False, True])
def test_every_block_is_drawn_equally_often(replacement):
    draw = jax.jit(jax.vmap(lambda key: draw_blocks(11, 4, replacement, key=key)))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 5_000)))
    counts = np.bincount(drawn.ravel(), minlength=11)
    expected = 5_000 * 4 / 11
    assert abs(counts - expected).max() < 4 * np.sqrt(expected)
    distinct = [len(set(row)) == 4 for row in drawn]
    assert all(distinct) or (replacement and not all(distinct))


def test_draws_of_one_block_add_up():
    blocks = jnp.asarray([3, 1, 3, 0, 1, 3])
    totals, first = jax.jit(merge)(jnp.asarray([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), blocks)
    np.testing.assert_array_equal(totals, [37.0, 18.0, 37.0, 8.0, 18.0, 37.0])
    np.testing.assert_array_equal(first, [True, True, False, True, False, False])


def test_adagrad_of_some_blocks_is_adagrad_of_all_with_gradients_of_zero_elsewhere():
    values, sums = jnp.asarray(RNG.normal(size=(5, 2))), jnp.asarray(RNG.uniform(size=(5, 2)))
    blocks, gradients = jnp.asarray([4, 1, 4]), jnp.asarray(RNG.normal(size=(3, 2)))
    total = np.zeros((5, 2))
    np.add.at(total, np.asarray(blocks), np.asarray(gradients))
    expected_sums = np.asarray(sums) + total**2
    new, new_sums, first = jax.jit(adagrad)(values, sums, blocks, gradients, 0.1)
    np.testing.assert_allclose(new, np.asarray(values) - 0.1 * total / np.sqrt(expected_sums), rtol=1e-12)
    np.testing.assert_allclose(new_sums, expected_sums, rtol=1e-12)
    np.testing.assert_array_equal(first, [True, True, False])
    new, *_ = jax.jit(adagrad)(jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.asarray([0]), jnp.zeros((1, 1)), 0.1)
    np.testing.assert_array_equal(new, 1.0)
