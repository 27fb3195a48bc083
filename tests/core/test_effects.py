"""Zero-mean kernels against SciPy's integrals, and the posteriors of additive components against dense algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.linalg import block_diag

from gpbench.core.additive import (
    CoupledCovariance,
    CoupledPrecision,
    IndependentComponents,
    coupled_precision,
    mean_field,
)
from gpbench.core.gaussians import Natural, Normal
from gpbench.core.kernels import Effect, kernel_spec
from gpbench.core.kernels.anova import double_integral, integral
from gpbench.core.kernels.composite import fix_amplitude

GRID = np.linspace(0, 1, 9)[:, None]


def base(family):
    """A one-dimensional kernel of amplitude 1."""
    return fix_amplitude(kernel_spec(family).initial(jnp.asarray(GRID), start="median"))


def effect(*families):
    """The kernel of an effect of one input or several, with an amplitude that is not 1."""
    return Effect(jnp.asarray(0.3), jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(base, families)))


@jax.jit
def covariance(kernel, X, Y):
    """`kernel.cross`, compiled."""
    return kernel.cross(X, Y)


FAMILIES = ["squared_exponential", "matern12", "matern32", "rational_quadratic", {"sum": ["matern52", "linear"]}]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_integrals_over_the_unit_interval(family):
    kernel, x = base(family), np.array([-0.3, 0.0, 0.21, 0.5, 1.0, 1.4])
    value = jax.jit(lambda x, t: kernel.cross(x[None, None], t[None, None])[0, 0])
    inner = lambda x: quad(lambda t: float(value(x, t)), 0, 1, points=[min(max(x, 0), 1)], epsabs=1e-10)[0]
    np.testing.assert_allclose(jax.jit(integral)(kernel, x), [inner(one) for one in x], atol=1e-8)
    whole = dblquad(lambda t, x: float(value(x, t)), 0, 1, 0, lambda x: x, epsabs=1e-9)[0]
    whole += dblquad(lambda t, x: float(value(x, t)), 0, 1, lambda x: x, 1, epsabs=1e-9)[0]
    np.testing.assert_allclose(jax.jit(double_integral, static_argnums=1)(kernel, jnp.float64), whole, atol=1e-7)


@pytest.mark.parametrize("period", [0.035, 0.25, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("of_sum", [False, True])
def test_integrals_over_many_periods_or_a_part_of_one(period, of_sum):
    """A rule of a fixed number of nodes would miss many periods, and the kernel would not be positive definite."""
    periodic = {"periodic": {"period": period}}
    kernel, x = base({"sum": ["matern52", periodic]} if of_sum else periodic), jnp.asarray([-0.3, 0.0, 0.21, 1.0, 1.4])
    t = (jnp.arange(5000.0) + 0.5) / 5000
    np.testing.assert_allclose(integral(kernel, x), kernel.cross(x[:, None], t[:, None]).mean(axis=1), atol=1e-6)
    np.testing.assert_allclose(double_integral(kernel, jnp.float64), integral(kernel, t).mean(), atol=1e-6)
    stacked = Effect(jnp.asarray(0.0), jax.tree.map(lambda leaf: leaf[None], kernel))
    assert np.linalg.eigvalsh(covariance(stacked, t[::50, None], t[::50, None]))[0] > -1e-9
    slopes = jax.grad(lambda kernel: double_integral(kernel, jnp.float64))(kernel)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slopes))


@pytest.mark.parametrize("families", [("squared_exponential",), ("matern32",), ("squared_exponential",) * 2], ids=str)
def test_an_effect_has_the_mean_0_over_each_input(families):
    """By a Gauss-Legendre rule on both sides of the other argument; outside the unit interval too."""
    kernel, d = effect(*families), len(families)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for y in (0.3, 0.9, 1.2):
        split = min(y, 1.0)
        t = np.concatenate([split * (nodes + 1) / 2, split + (1 - split) * (nodes + 1) / 2])
        w = np.concatenate([split * weights, (1 - split) * weights]) / 2
        for i in range(d):
            rows = np.full((len(t), d), 0.4)
            rows[:, i] = t
            values = np.asarray(covariance(kernel, rows, np.full((1, d), y)))[:, 0]
            assert abs(w @ values) < 1e-9


def test_the_diagonal_of_an_effect_and_a_long_lengthscale():
    kernel, X = effect("matern32", "matern32"), jnp.asarray(np.random.default_rng(0).uniform(size=(7, 2)))
    np.testing.assert_allclose(kernel.diag(X), np.diag(kernel.cross(X, X)), rtol=1e-10)
    long = kernel_spec("squared_exponential").initial(jnp.asarray(GRID) * 200, start="median")  # about 60 units long
    kernel = Effect(jnp.asarray(0.0), jax.tree.map(lambda leaf: leaf[None], fix_amplitude(long)))
    length = float(long.lengthscales[0])
    # what is left of exp(-½ (x - y)²/l²) for a long l is linear: (x - ½)(y - ½)/l²
    exact = (GRID - 0.5) @ (GRID - 0.5).T / length**2
    np.testing.assert_allclose(kernel.cross(jnp.asarray(GRID), jnp.asarray(GRID)), exact, atol=1e-3 / length**2)


GROUPS = ((1, 1), (2, 3), (1, 4))
T = 11


def factor(seed=0, *, blocks=False):
    """A Gaussian factor on w; with `blocks` the groups' outputs do not meet in it."""
    rng = np.random.default_rng(seed)
    sizes = [1, 3, 3, 4]
    roots = [rng.normal(size=(m, m)) for m in sizes] if blocks else [rng.normal(size=(T, 6))]
    root = block_diag(*roots)
    return Natural(jnp.asarray(root @ root.T), jnp.asarray(rng.normal(size=T)))


@jax.jit
def exact_moments(factor):
    """Mean and covariance of the posterior in full."""
    return CoupledCovariance(factor.posterior()).moments()


def posterior(kind):
    """One of each kind."""
    rng = np.random.default_rng(1)
    normal = lambda *shape: jnp.asarray(rng.normal(size=shape))
    if kind is IndependentComponents:
        return mean_field(factor(), GROUPS)
    return kind(normal(T), normal(T, 4)) if kind is CoupledPrecision else kind(Normal(normal(T), normal(T, T)))


@pytest.mark.parametrize("kind", [IndependentComponents, CoupledCovariance, CoupledPrecision])
def test_projections_kl_and_samples_are_those_of_the_moments(kind):
    V = np.random.default_rng(2).normal(size=(T, 5))
    of = jax.jit(lambda q: (q.moments(), q.project(jnp.asarray(V)), q.kl(), q.sample(40_000, key=jax.random.key(0))))
    (mean, covariance), projected, q_kl, draws = jax.tree.map(np.asarray, of(posterior(kind)))
    np.testing.assert_allclose(projected[0], V.T @ mean, rtol=1e-10)
    np.testing.assert_allclose(projected[1], np.sum(V * (covariance @ V), axis=0), rtol=1e-8)
    kl = 0.5 * (np.trace(covariance) + mean @ mean - T - np.linalg.slogdet(covariance)[1])
    np.testing.assert_allclose(q_kl, kl, rtol=1e-7)
    error = np.sqrt(np.diag(covariance) / len(draws))
    assert (np.abs(draws.mean(0) - mean) < 5 * error).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5 * np.diag(covariance).max() * np.sqrt(2 / 40_000))


def test_all_posteriors_are_one_where_components_do_not_meet():
    apart = factor(blocks=True)
    kinds = (lambda f: mean_field(f, GROUPS), lambda f: coupled_precision(f, T))
    exact = exact_moments(apart)
    for kind in kinds:
        for moment, expected in zip(jax.jit(lambda f, kind=kind: kind(f).moments())(apart), exact):
            np.testing.assert_allclose(moment, expected, atol=1e-8)


def test_a_factor_of_low_rank_needs_no_more_columns():
    """Six outer products: six columns are exact, and with five the mean is still that of the prior times the factor."""
    exact = exact_moments(factor())
    of_rank = jax.jit(lambda f, rank: coupled_precision(f, rank).moments(), static_argnums=1)
    for moment, expected in zip(of_rank(factor(), 6), exact):
        np.testing.assert_allclose(moment, expected, atol=1e-8)
    mean, covariance = of_rank(factor(), 5)
    np.testing.assert_allclose(mean, exact[0], atol=1e-8)
    assert np.linalg.eigvalsh(covariance - exact[1]).min() > -1e-8 and np.trace(covariance - exact[1]) > 1e-3


@pytest.mark.parametrize("seed", range(4))
def test_independent_components_have_variances_below_the_exact_ones_though_their_sum_may_not(seed):
    """A Gaussian posterior of C components at N rows, whose best factors have the precision's blocks (Bishop 2006).

    With inputs that correlate the widths are a fraction of the right ones; the sum of effects that make up for each
    other is surer than independent ones.
    """
    rng = np.random.default_rng(seed)
    C, n = 2 + seed, 5
    common = rng.normal(size=n)
    x = np.stack([common + 0.3 * rng.normal(size=n) for _ in range(C)])
    K = np.zeros((C, n, C, n))
    for c in range(C):
        K[c, :, c] = np.exp(-0.5 * (x[c][:, None] - x[c]) ** 2) + 1e-6 * np.eye(n)
    precision = np.linalg.inv(K.reshape(C * n, C * n)) + np.kron(np.ones((C, C)), np.eye(n)) / 0.1
    exact = np.linalg.inv(precision)
    best = np.zeros_like(K)
    for c in range(C):
        best[c, :, c] = np.linalg.inv(precision.reshape(K.shape)[c, :, c])
    best = best.reshape(exact.shape)
    kl = lambda q: 0.5 * (np.trace(precision @ q) - np.linalg.slogdet(precision @ q)[1] - C * n)
    for c in range(C):  # no other independent factors are nearer
        S = np.zeros_like(K)
        S[c, :, c] = rng.normal(size=(n, n))
        root = np.linalg.cholesky(best) @ (np.eye(C * n) + 0.01 * S.reshape(best.shape))
        assert kl(root @ root.T) > kl(best)
    assert (np.diag(best) < 0.8 * np.diag(exact)).all()
    total = lambda q: np.diag(q.reshape(K.shape).sum((0, 2)))
    assert (total(best) > total(exact)).any()
