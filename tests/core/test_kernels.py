"""Kernels: closed forms, limits, positive definiteness and derivatives."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kernel_values import AMPLITUDE, RNG, SQUARED, VALUES, X, Y, cross, stationary
from scipy import special

from gpbench.core import kernels
from gpbench.core.kernels import Deep, Linear, Matern12, Matern32, Matern52, Periodic, SquaredExponential, kernel_spec
from gpbench.core.kernels.stationary import square_distance

WEIGHTS = RNG.normal(size=(6, 6))


def perturb(kernel):
    """The kernel with all of its parameters different."""
    rng = np.random.default_rng(1)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf + rng.normal(0.0, 0.3, leaf.shape)), as_numpy(kernel))


def as_numpy(tree):
    """The tree with leaves of NumPy, whose arithmetic compiles nothing."""
    return jax.tree.map(np.asarray, tree)


@pytest.fixture(scope="module", params=VALUES)
def kernel(request):
    return perturb(kernel_spec(VALUES[request.param]).initial(jnp.asarray(X), start="median_each"))


# Not the level 0 of the other tests: without the MLIR emitters its exp(0) can be 1 + 1.6e-9.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
def evaluate(kernel, X, Y):
    """cross(X, Y), diag(X), and a weighted sum of both with its derivatives in the parameters, X and Y."""

    def total(kernel, X, Y):
        gram, diagonal = kernel.cross(X, Y), kernel.diag(X)
        return jnp.sum(WEIGHTS.astype(X.dtype) * gram) + jnp.sum(diagonal), (gram, diagonal)

    (value, (gram, diagonal)), gradients = jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True)(kernel, X, Y)
    return gram, diagonal, value, gradients


def repeated_rows(dtype):
    """Four rows, of which two are there twice."""
    rows = np.concatenate([X[:4], X[:2]]).astype(dtype)
    return rows, rows


def test_gram_matrices_are_positive_definite_with_the_stated_diagonal_and_finite_gradients_on_repeated_rows(kernel):
    gram, diagonal, _, gradients = evaluate(kernel, *repeated_rows("float64"))
    np.testing.assert_allclose(np.diag(gram), diagonal, rtol=1e-13)
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12, atol=1e-15)
    assert np.linalg.eigvalsh(gram).min() > -1e-13 * np.trace(gram)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(as_numpy(gradients)))


def test_gradients_equal_finite_differences(kernel):
    """Central differences along random directions, h = 1e-5: their error is below 1e-8 for values of order 1."""
    rng = np.random.default_rng(2)
    point = as_numpy((kernel, X, rng.normal(size=(6, 3))))
    gradient = as_numpy(evaluate(*point)[3])
    for _ in range(3):
        direction = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), point)
        above = evaluate(*jax.tree.map(lambda leaf, step: leaf + 1e-5 * step, point, direction))[2]
        below = evaluate(*jax.tree.map(lambda leaf, step: leaf - 1e-5 * step, point, direction))[2]
        slope = sum(jax.tree.leaves(jax.tree.map(np.vdot, gradient, direction)))
        np.testing.assert_allclose(slope, (above - below) / 2e-5, rtol=1e-6, atol=1e-6)
    if not isinstance(kernel, Deep):  # units that are 0 at all rows, and a shift of all outputs, matter to none
        assert all(np.all(leaf != 0.0) for leaf in jax.tree.leaves(gradient[0])), "every parameter matters"


def test_float32_stays_float32_and_agrees_with_float64(kernel):
    low = jax.tree.map(lambda leaf: leaf.astype(np.float32), as_numpy(kernel))
    gram, diagonal, _, gradients = results = evaluate(low, *repeated_rows("float32"))
    assert {leaf.dtype for leaf in jax.tree.leaves(results)} == {jnp.dtype("float32")}
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(as_numpy(gradients)))
    scale = np.max(diagonal)
    np.testing.assert_allclose(gram, evaluate(kernel, *repeated_rows("float64"))[0], atol=1e-5 * scale)
    np.testing.assert_allclose(np.diag(gram), diagonal, atol=2e-6 * scale)


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_the_initial_prior_variance_is_one_in_the_dtype_of_the_rows(value):
    rows = jnp.asarray(X, jnp.float32)
    kernel = kernel_spec(value).initial(rows, start="median")
    assert {leaf.dtype for leaf in jax.tree.leaves(kernel)} == {jnp.dtype("float32")}
    assert kernel.describe()
    np.testing.assert_allclose(np.mean(evaluate(kernel, rows, rows)[1]), 1.0, rtol=1e-5)


R = np.sqrt(np.sum((X[:, None] - Y[None]) ** 2 / SQUARED, axis=-1))


def test_the_squared_exponential_is_bit_for_bit_the_formula_that_committed_results_were_made_with():
    def formula(log_amplitude, log_lengthscale2, X, Y):
        scale = jnp.exp(-0.5 * log_lengthscale2)
        X, Y = X * scale, Y * scale
        exponent = X @ Y.T - 0.5 * jnp.sum(X**2, 1)[:, None] - 0.5 * jnp.sum(Y**2, 1)[None, :]
        return jnp.exp(jnp.minimum(exponent, 0.0) + log_amplitude)

    kernel = stationary(SquaredExponential)
    for transform in (lambda f: f, jax.jit):
        for rows in (X, Y):
            now = transform(lambda k, X, Y: k.cross(X, Y))(kernel, jnp.asarray(X), jnp.asarray(rows))
            first = transform(formula)(kernel.log_amplitude, kernel.log_lengthscale2, jnp.asarray(X), jnp.asarray(rows))
            np.testing.assert_array_equal(now, first)
    assert jax.tree.leaves(kernel)[0] is kernel.log_amplitude
    np.testing.assert_allclose(cross(stationary(SquaredExponential)), AMPLITUDE * np.exp(-0.5 * R**2), rtol=1e-12)


@pytest.mark.parametrize(("family", "nu"), [(Matern12, 0.5), (Matern32, 1.5), (Matern52, 2.5)])
def test_matern_kernels_are_the_bessel_form(family, nu):
    s = np.sqrt(2 * nu) * R
    bessel = AMPLITUDE * 2 ** (1 - nu) / special.gamma(nu) * s**nu * special.kv(nu, s)
    np.testing.assert_allclose(cross(stationary(family)), bessel, rtol=1e-12)


def test_the_gradient_of_a_matern_kernel_is_zero_where_rows_coincide():
    kernel, x = stationary(Matern12), jnp.asarray(X[:1])
    np.testing.assert_array_equal(jax.jit(jax.grad(lambda y: kernel.cross(x, y)[0, 0]))(x), 0.0)


def test_rational_quadratic_periodic_linear_and_constant_kernels_are_their_formulae():
    formula = AMPLITUDE * (1 + R**2 / (2 * 0.7)) ** -0.7
    np.testing.assert_allclose(cross(stationary(kernels.RationalQuadratic, jnp.log(0.7))), formula, rtol=1e-12)
    period = np.array([1.0, 2.0, 3.0])
    kernel = stationary(Periodic, jnp.log(period))
    sines = np.sin(np.pi * (X[:, None] - Y[None]) / period) ** 2
    np.testing.assert_allclose(cross(kernel), AMPLITUDE * np.exp(-2 * np.sum(sines / SQUARED, axis=-1)), rtol=1e-12)
    np.testing.assert_allclose(cross(kernel, X + 5 * period), cross(kernel), rtol=1e-10)
    np.testing.assert_allclose(cross(Linear(jnp.log(SQUARED))), (X * SQUARED) @ Y.T, rtol=1e-12)
    np.testing.assert_allclose(cross(kernels.Constant(jnp.log(AMPLITUDE))), np.full((6, 4), AMPLITUDE), rtol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_anova_is_the_sum_over_all_subsets_of_inputs(order):
    spec = kernel_spec({"anova": {"order": order, "base": "matern32"}})
    kernel = perturb(spec.initial(jnp.asarray(X), start="median_each"))
    scaled = np.abs(X[:, None] - Y[None]) * np.exp(-0.5 * kernel.bases.kernel.log_lengthscale2[:, 0])
    z = (1 + np.sqrt(3) * scaled) * np.exp(-np.sqrt(3) * scaled)
    explicit = sum(
        np.exp(kernel.log_variance[r - 1]) * sum(z[..., list(s)].prod(-1) for s in itertools.combinations(range(3), r))
        for r in range(1, order + 1)
    )
    np.testing.assert_allclose(cross(kernel), explicit, rtol=1e-12)


def test_sums_and_products_are_made_of_their_parts():
    a, b = stationary(Matern12), stationary(SquaredExponential)
    product = kernel_spec({"product": ["matern12", "squared_exponential"]}).initial(jnp.asarray(X), start="median")
    parts = [kernel_spec(name).initial(jnp.asarray(X), start="median") for name in ("matern12", "squared_exponential")]
    np.testing.assert_allclose(cross(product), cross(parts[0]) * cross(parts[1]), rtol=1e-12)
    total = kernel_spec({"sum": ["matern12", "squared_exponential"]}).initial(jnp.asarray(X), start="median")
    np.testing.assert_allclose(cross(total), 0.5 * (cross(parts[0]) + cross(parts[1])), rtol=1e-12)
    np.testing.assert_array_equal(cross(type(total)((a, b))), cross(a) + cross(b))
    some = eqx.tree_at(lambda k: k.log_lengthscale2, a, a.log_lengthscale2[jnp.asarray([0, 2])])
    np.testing.assert_array_equal(cross(kernels.ActiveInputs(some, (0, 2))), cross(some, X[:, [0, 2]], Y[:, [0, 2]]))


def test_differences_give_the_squared_distance_without_cancellation_far_from_the_origin():
    far = jnp.asarray(X) + 1e6
    np.testing.assert_allclose(square_distance(far, far[:3]), np.sum((far[:, None] - far[:3]) ** 2, -1), rtol=1e-15)
