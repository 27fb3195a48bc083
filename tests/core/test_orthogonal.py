"""The orthogonal kernel: its definition by quadrature, long and short lengthscales, shares of the effects of anova."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from gpbench.core.kernels import Orthogonal, kernel_spec
from gpbench.core.kernels.composite import fix_amplitude

NODES, WEIGHTS = hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
X = np.random.default_rng(0).normal(size=(5, 1))


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
    ours = kernel.cross(jnp.asarray(X), jnp.asarray(NODES[:, None]))
    np.testing.assert_allclose(ours, by_definition(X[:, 0], NODES, lengthscale), atol=1e-9)
    np.testing.assert_allclose(ours @ WEIGHTS, 0.0, atol=1e-9)
    np.testing.assert_allclose(kernel.diag(jnp.asarray(X)), np.diag(kernel.cross(jnp.asarray(X), jnp.asarray(X))))


def test_long_lengthscales_lose_no_digits_far_rows_are_finite_and_a_fixed_amplitude_keeps_the_diagonal():
    x = X.astype(np.float32)
    exact = unit(1000.0).cross(jnp.asarray(x, float), jnp.asarray(x, float))
    np.testing.assert_allclose(unit(1000.0, np.float32).cross(jnp.asarray(x), jnp.asarray(x)), exact, rtol=1e-5)
    np.testing.assert_allclose(exact, 1e-6 * x.astype(float) @ x.T, rtol=1e-4)  # for long lengthscales it is linear
    rows = jnp.asarray([[-30.0], [0.0], [25.0]])
    total = lambda log_square: jnp.sum(Orthogonal(jnp.zeros(()), log_square).cross(rows, rows) ** 2)
    value, slope = jax.value_and_grad(total)(jnp.asarray([2 * np.log(0.05)]))
    assert np.isfinite(value) and np.all(np.isfinite(slope))
    kernel = unit(0.8)
    np.testing.assert_allclose(fix_amplitude(kernel).diag(jnp.asarray(X)), kernel.diag(jnp.asarray(X)))


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
    kernel = kernel_spec({"anova": {"order": 2, "base": "orthogonal"}}).initial(
        jnp.asarray(X @ np.ones((1, 2))), start="median"
    )
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
