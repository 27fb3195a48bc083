"""Bases of functions, orthogonal kernels and generalised features: formulae, gradients, unbiased estimates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from gpbench.core import generalised
from gpbench.core.bases import KernelFunctions, RandomFeatures, draw_blocks
from gpbench.core.bases import kernel as kernel_basis
from gpbench.core.bases.base import adagrad, merge
from gpbench.core.bases.fourier import cosine_of_turns, spectral_degrees
from gpbench.core.kernels import Matern12, Matern32, Matern52, Orthogonal, SquaredExponential, kernel_spec
from gpbench.core.kernels.composite import fix_amplitude

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
    stored = evaluated(basis.store(3, X.dtype), kernel, X, jnp.arange(10))
    np.testing.assert_allclose(stored, whole, rtol=1e-12, atol=1e-13)
    single = jax.tree.map(lambda a: a.astype(jnp.float32), (kernel, X))
    np.testing.assert_allclose(evaluated(basis, *single, jnp.arange(10)), whole, atol=2e-6)
    longer = RandomFeatures(jax.random.key(5), 80, 4, 0)
    np.testing.assert_array_equal(values_of(longer, kernel, jnp.arange(10)), values_of(basis, kernel, jnp.arange(10)))
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


def test_mean_squares_in_several_parts_are_those_of_one_and_draws_of_one_block_add_up(monkeypatch):
    monkeypatch.setattr("gpbench.core.bases.kernel._ROWS", 3)
    monkeypatch.setattr("gpbench.core.bases.kernel._COLUMNS", 4)
    kernel = SquaredExponential(jnp.asarray(0.3), jnp.asarray([0.2, -0.4, 1.0]))
    ours = squares_of(KernelFunctions.around(X, 2), kernel)
    np.testing.assert_allclose(ours, np.mean(np.square(covariance(kernel, X)), axis=0), rtol=1e-12)
    blocks = jnp.asarray([3, 1, 3, 0, 1, 3])
    totals, first = jax.jit(merge)(jnp.asarray([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]), blocks)
    np.testing.assert_array_equal(totals, [37.0, 18.0, 37.0, 8.0, 18.0, 37.0])
    np.testing.assert_array_equal(first, [True, True, False, True, False, False])


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


NODES, WEIGHTS = hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
AT = np.random.default_rng(0).normal(size=(5, 1))


def unit(lengthscale, dtype=float):
    return Orthogonal(jnp.zeros((), dtype), jnp.asarray([2 * np.log(lengthscale)], dtype))


def by_definition(x, y, lengthscale):
    """g(x, y) - I(x) I(y) / II of the squared exponential g, with its means I and II by quadrature."""
    g = lambda a, b: np.exp(-0.5 * (a[:, None] - b[None, :]) ** 2 / lengthscale**2)
    mean_of = lambda a: g(a, NODES) @ WEIGHTS
    return g(x, y) - np.outer(mean_of(x), mean_of(y)) / (WEIGHTS @ mean_of(NODES))


@pytest.mark.parametrize("lengthscale", [0.7, 1.0, 3.0])
def test_the_kernel_is_the_squared_exponential_conditioned_on_a_mean_of_zero(lengthscale):
    kernel = unit(lengthscale)
    ours = kernel.cross(jnp.asarray(AT), jnp.asarray(NODES[:, None]))
    np.testing.assert_allclose(ours, by_definition(AT[:, 0], NODES, lengthscale), atol=1e-9)
    np.testing.assert_allclose(ours @ WEIGHTS, 0.0, atol=1e-9)
    np.testing.assert_allclose(kernel.diag(jnp.asarray(AT)), np.diag(kernel.cross(jnp.asarray(AT), jnp.asarray(AT))))


def test_long_lengthscales_lose_no_digits_far_rows_are_finite_and_a_fixed_amplitude_keeps_the_diagonal():
    x = AT.astype(np.float32)
    exact = unit(1000.0).cross(jnp.asarray(x, float), jnp.asarray(x, float))
    np.testing.assert_allclose(unit(1000.0, np.float32).cross(jnp.asarray(x), jnp.asarray(x)), exact, rtol=1e-5)
    np.testing.assert_allclose(exact, 1e-6 * x.astype(float) @ x.T, rtol=1e-4)  # for long lengthscales it is linear
    rows = jnp.asarray([[-30.0], [0.0], [25.0]])
    total = lambda log_square: jnp.sum(Orthogonal(jnp.zeros(()), log_square).cross(rows, rows) ** 2)
    value, slope = jax.value_and_grad(total)(jnp.asarray([2 * np.log(0.05)]))
    assert np.isfinite(value) and np.all(np.isfinite(slope))
    kernel = unit(0.8)
    np.testing.assert_allclose(fix_amplitude(kernel).diag(jnp.asarray(AT)), kernel.diag(jnp.asarray(AT)))


@pytest.mark.parametrize(("lengthscale", "dtype"), [(2e-4, jnp.float32), (1e-9, jnp.float64), (1e-2, jnp.float64)])
def test_short_lengthscales_have_the_constant_of_the_formula_and_finite_gradients(lengthscale, dtype):
    """At x = y = 0 the kernel is 1 - c, with c = √(q(q + 2))/(q + 1), and dc/dlog q = q / (√(q(q + 2)) (q + 1)²)."""
    origin, log_q = jnp.zeros((1, 1), dtype), jnp.asarray(2 * np.log(lengthscale), dtype)
    kernel = lambda log_q: Orthogonal(jnp.zeros((), dtype), log_q[None]).cross(origin, origin)[0, 0]
    value, slope = jax.value_and_grad(kernel)(log_q)
    q = lengthscale**2
    root = np.sqrt(q * (q + 2))
    assert value == pytest.approx(1 - root / (q + 1), rel=1e-5)
    assert slope == pytest.approx(-q / (root * (q + 1) ** 2), rel=1e-4)


def test_effects_of_an_anova_kernel_are_orthogonal_and_share_the_variance_of_its_functions():
    """A function Σ_j a_j k(x, z_j) of two inputs: its variance is the sum over the effects of one input and of both."""
    rng = np.random.default_rng(3)
    spec = kernel_spec({"anova": {"order": 2, "base": "orthogonal"}})
    kernel = spec.initial(jnp.asarray(AT @ np.ones((1, 2))), start="median")
    Z, a = rng.normal(size=(4, 2)), rng.normal(size=4)
    grid = np.stack([m.ravel() for m in np.meshgrid(NODES, NODES, indexing="ij")], axis=1)
    values = np.asarray(kernel.cross(jnp.asarray(grid), jnp.asarray(Z)) @ a).reshape(80, 80)
    first, second = values @ WEIGHTS, WEIGHTS @ values
    np.testing.assert_allclose(WEIGHTS @ first, 0.0, atol=1e-9)
    both = values - first[:, None] - second[None, :]
    weights = np.outer(WEIGHTS, WEIGHTS)
    shares = [WEIGHTS @ first**2, WEIGHTS @ second**2, np.sum(weights * both**2)]
    np.testing.assert_allclose(sum(shares), np.sum(weights * values**2), rtol=1e-9)
    bases = [jax.tree.map(lambda leaf, d=d: leaf[d], kernel.bases) for d in (0, 1)]
    M = [np.asarray(b.cross(jnp.asarray(Z[:, [d]]), jnp.asarray(NODES[:, None]))) for d, b in enumerate(bases)]
    M = [(m * WEIGHTS) @ m.T for m in M]
    v = np.exp(np.asarray(kernel.log_variance))
    expected = [v[0] ** 2 * a @ M[0] @ a, v[0] ** 2 * a @ M[1] @ a, v[1] ** 2 * a @ (M[0] * M[1]) @ a]
    np.testing.assert_allclose(shares, expected, rtol=1e-8)


def formula(kernel, Z, log_scale, Y, log_scale_y):
    """The product over the inputs of the factors of every pair, with an array of M P D entries."""
    s2, r2 = jnp.exp(2.0 * log_scale)[:, None], jnp.exp(2.0 * log_scale_y)
    difference = Z[:, None] / kernel.lengthscales - Y / kernel.lengthscales
    height = jnp.sqrt(2.0 * jnp.sqrt(s2 * r2) / (s2 + r2))
    return kernel.amplitude * jnp.prod(height * jnp.exp(-(difference**2) / (s2 + r2)), axis=-1)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-12), (jnp.float32, 5e-6)])
@pytest.mark.parametrize("shape", [(5, 7, 3), (33, 18, 25)], ids=["one block", "blocks of rows and of inputs"])
def test_gram_and_its_gradient_are_those_of_the_formula_with_scales_over_a_range_of_a_hundred(shape, dtype, tolerance):
    m, p, d = shape
    rng = np.random.default_rng(0)
    array = lambda x: jnp.asarray(x, dtype)
    scales = [array(rng.uniform(-np.log(10.0), np.log(10.0), size=(n, d))) for n in (m, p)]
    Z, Y = (array(rng.normal(size=(n, d))) for n in (m, p))
    kernel = SquaredExponential(array(0.3), array(np.log(d) + rng.normal(size=d)))
    bar = array(rng.normal(size=(m, p)))

    def evaluate(covariances):
        def value(*arguments):
            K = covariances(*arguments)
            return jnp.sum(bar * K), K

        (_, K), gradient = jax.value_and_grad(value, argnums=range(5), has_aux=True)(kernel, Z, scales[0], Y, scales[1])
        return jax.tree.leaves((K, gradient))

    evaluated = jax.jit(evaluate, static_argnums=0)
    for ours, theirs in zip(evaluated(generalised.gram), evaluated(formula), strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=tolerance * float(jnp.abs(theirs).max()))
