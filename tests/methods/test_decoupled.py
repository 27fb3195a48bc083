"""Decoupled variational GPs: the limits in which they are other methods, unbiased sampling, bases that grow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpbench.methods.decoupled import Basis, Parameters, divergence, marginals, parts, sampled_square, square, waiting
from gpbench.methods.sparse import Hyper
from references import exact_evidence, inputs
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import laplace, multivariate_normal

from gpbench.core.gaussians import Normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.optimisers import decaying_adam
from gpbench.errors import ConfigError
from gpbench.methods.vi.svdgp import SVDGP
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.svi import Parameters as Shared
from gpbench.train.batches import at_step, whole
from gpbench.train.trials import best_rate

KEY = jax.random.key(0)
KINDS = ["direct", "jacobi", "hybrid", "orthogonal"]
RANDOM = np.random.default_rng(3)


def problem(n=30):
    X = inputs(n)
    return whole(X, jnp.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * jnp.asarray(np.random.default_rng(1).normal(size=n)))


def normal(*shape, scale=1.0):
    return scale * jnp.asarray(RANDOM.normal(size=shape))


def random_parameters(X, a=12, b=5):
    """Parameters at which nothing vanishes; the root is lower triangular with a positive diagonal."""
    kernel = SquaredExponential(jnp.asarray(0.6), jnp.linspace(-0.3, 0.4, X.shape[1]))
    alpha = Basis(X[:a] + normal(a, X.shape[1], scale=0.1), normal(a, X.shape[1], scale=0.3))
    beta = Basis(X[-b:], normal(b, X.shape[1], scale=0.3))
    root = jnp.tril(normal(b, b, scale=0.3)) + jnp.diag(1.0 + jnp.arange(b) / b)
    return Parameters(kernel, jnp.asarray(-1.5), alpha, normal(a, scale=0.5), beta, Normal(normal(b), root))


def method(kind="direct", **told):
    fixed = {
        "mean_basis": 12,
        "covariance_basis": 5,
        "growth": 4,
        "columns": 6,
        "batch_size": 10,
        "optimiser": decaying_adam(0.05),
    }
    return SVDGP(name="svdgp", parametrisation=kind, **(fixed | told))


def dense(p, kind, X):
    """Mean, covariance of f at X and KL by the formulas themselves, in NumPy: equations 8, 9 and those of A.3."""
    unit, rho = p.unit, np.exp(0.5 * p.kernel.log_amplitude)
    Ka, Kb, Kba = (np.asarray(x.gram(unit, y)) for x, y in ((p.alpha, p.alpha), (p.beta, p.beta), (p.beta, p.alpha)))
    ka, kb = np.asarray(p.alpha.cross(unit, X)), np.asarray(p.beta.cross(unit, X))
    a, prior = np.asarray(p.a), np.asarray(unit.gram(X, X))
    if kind == "direct":
        L = np.tril(p.q.root)
        B = L @ L.T
        inverse = np.linalg.inv(np.linalg.inv(B) + Kb)
        kl = 0.5 * (a @ Ka @ a + np.linalg.slogdet(np.eye(len(B)) + Kb @ B)[1] - np.trace(Kb @ inverse))
        return rho * ka.T @ a, rho**2 * (prior - kb.T @ inverse @ kb), kl
    chol = np.linalg.cholesky(Kb)
    R = np.tril(p.q.root)
    m, S = chol @ p.q.mean, chol @ R.T @ R @ chol.T
    if kind == "orthogonal":
        m = m - Kba @ a
    inverse = np.linalg.inv(Kb)
    mean = ka.T @ a + kb.T @ inverse @ m
    cov = prior + kb.T @ inverse @ (S - Kb) @ inverse @ kb
    of_mean = m @ inverse @ m + 2 * m @ inverse @ Kba @ a + a @ Ka @ a
    kl = 0.5 * (of_mean - np.linalg.slogdet(inverse @ S)[1] + np.trace(S @ inverse) - len(Kb))
    return rho * mean, rho**2 * cov, kl


@pytest.mark.parametrize("kind", ["direct", "hybrid", "orthogonal"])
def test_mean_variance_and_divergence_are_those_of_the_formulas(kind):
    X = inputs(20)
    p, new = random_parameters(X), inputs(7, seed=4)
    mean, cov, kl = dense(p, kind, new)
    shared = parts(p, kind)
    ours = marginals(p, shared, new)
    np.testing.assert_allclose(ours[0], mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours[1], np.diag(cov), rtol=1e-6)
    np.testing.assert_allclose(divergence(p, shared, square(p)), kl, rtol=1e-7)


@pytest.mark.parametrize("kind", ["direct", "hybrid", "orthogonal"])
def test_the_divergence_is_that_of_gaussians_on_all_the_features_together(kind):
    """On the bases' own places (features of scale 1) it is KL between two multivariate normals."""
    X = inputs(20)
    p = random_parameters(X)
    p = eqx.tree_at(lambda p: (p.alpha.log_scale, p.beta.log_scale), p, replace_fn=jnp.zeros_like)
    places = jnp.concatenate([p.alpha.Z, p.beta.Z])
    mean, cov, _ = dense(p, kind, places)
    K = np.asarray(p.kernel.gram(places, places))
    n, solve = len(K), np.linalg.solve
    kl = 0.5 * (
        np.trace(solve(K, cov)) - n + mean @ solve(K, mean) + np.linalg.slogdet(K)[1] - np.linalg.slogdet(cov)[1]
    )
    np.testing.assert_allclose(divergence(p, parts(p, kind), square(p)), kl, rtol=1e-5)


def test_one_basis_for_both_has_the_bound_of_svi():
    data = problem()
    Z, b = data.X[:6], 6
    kernel = SquaredExponential(jnp.asarray(0.4), jnp.asarray([0.1, 0.3]))
    q = Normal(normal(b), jnp.tril(normal(b, b, scale=0.05)) + jnp.diag(jnp.linspace(0.3, 0.6, b)))
    basis, log_noise = Basis(Z, jnp.zeros_like(Z)), jnp.asarray(-1.0)
    svi = SVI(name="svi").bound(Shared(Hyper(kernel, log_noise, Z), q), data)
    # q(w) = N(m, RᵀR) is f's mean A^T m on the basis, and B = A^T ((RᵀR)⁻¹ - I) A with A whitening
    unit = SquaredExponential(jnp.asarray(0.0), kernel.log_lengthscale2)
    A = np.linalg.inv(np.linalg.cholesky(np.asarray(unit.gram(Z, Z))))
    R = np.tril(q.root)
    L = np.linalg.cholesky(A.T @ (np.linalg.inv(R.T @ R) - np.eye(b)) @ A)
    nothing = waiting(6, 2, Z.dtype)
    direct = Parameters(kernel, log_noise, basis, A.T @ q.mean, basis, Normal(jnp.zeros(b), jnp.asarray(L)))
    np.testing.assert_allclose(method("direct").bound(direct, data), svi, rtol=1e-7)
    for kind in ("hybrid", "orthogonal"):  # a_r = 0
        p = Parameters(kernel, log_noise, nothing, jnp.zeros(6), basis, q)
        np.testing.assert_allclose(method(kind).bound(p, data), svi, rtol=1e-7)


def test_without_a_basis_of_the_covariance_the_mean_is_kernel_ridge_regression():
    """L = 0 leaves the prior's covariance; the bound is then largest at a = (K + σ²I)⁻¹ y (paper, section 3.4)."""
    data = problem()
    p = random_parameters(data.X)
    basis = Basis(data.X, jnp.zeros_like(data.X))
    p = eqx.tree_at(lambda p: (p.alpha, p.q.root, p.kernel.log_amplitude), p, (basis, jnp.zeros((5, 5)), jnp.zeros(())))
    K, noise = np.asarray(p.kernel.gram(data.X, data.X)), np.exp(p.log_noise)
    ridge = cho_solve(cho_factor(K + noise * np.eye(len(K))), np.asarray(data.y))
    at = lambda a: method().bound(eqx.tree_at(lambda p: p.a, p, a), data)
    gradient = jax.jit(jax.grad(at))
    assert np.abs(gradient(ridge)).max() < 1e-8 * np.abs(gradient(jnp.zeros(len(K)))).max()
    p = eqx.tree_at(lambda p: p.a, p, jnp.asarray(ridge))
    new = inputs(6, seed=9)
    mean, variance = marginals(p, parts(p, "direct"), new)
    np.testing.assert_allclose(mean, np.asarray(p.kernel.gram(new, data.X)) @ ridge, rtol=1e-9)
    np.testing.assert_allclose(variance, 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_lies_below_the_exact_evidence(kind):
    data = problem()
    for _ in range(3):
        p = random_parameters(data.X)
        K = np.asarray(p.kernel.gram(data.X, data.X)) + np.exp(p.log_noise) * np.eye(data.total)
        exact = multivariate_normal(np.zeros(data.total), K).logpdf(np.asarray(data.y))
        assert method(kind).bound(p, data) < exact


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_under_laplace_noise_lies_below_the_exact_evidence(kind):
    data = problem(3)
    for _ in range(3):
        p = random_parameters(data.X, a=3, b=2)
        K, b = np.asarray(p.kernel.gram(data.X, data.X)), np.sqrt(0.5 * np.exp(p.log_noise))
        exact = exact_evidence(K, np.asarray(data.y), log_likelihood=lambda y, f, b=b: laplace.logpdf(y, f, b))
        assert method(kind, likelihood="laplace").bound(p, data) < exact


def test_jacobi_is_direct_with_weights_in_units_of_rho():
    data = problem()
    p = random_parameters(data.X)
    rho = jnp.exp(0.5 * p.kernel.log_amplitude)
    scaled = eqx.tree_at(lambda p: (p.a, p.q.root), p, (rho * p.a, rho * p.q.root))
    np.testing.assert_allclose(method("jacobi").bound(scaled, data), method("direct").bound(p, data), rtol=1e-10)


def test_sampled_columns_give_the_square_and_its_gradient_without_bias():
    p = random_parameters(inputs(40), a=32)
    count, draws = jnp.asarray(29), 4000  # three features wait
    p = eqx.tree_at(lambda p: (p.a, p.alpha), p, (p.a.at[29:].set(0.0), p.alpha))
    keys = jax.random.split(KEY, draws)
    exact, slope = jax.value_and_grad(lambda p: square(p))(p)
    sampled = jax.value_and_grad(lambda p, key: sampled_square(p, count, 5, key=key))
    values, slopes = jax.jit(jax.vmap(sampled, (None, 0)))(p, keys)
    for ours, theirs in ((values[:, None], exact[None]), (slopes.a[:, :29], slope.a[:29]),
                         (slopes.alpha.Z[:, :29].reshape(draws, -1), slope.alpha.Z[:29].ravel()),
                         (slopes.kernel.log_lengthscale2, slope.kernel.log_lengthscale2)):  # fmt: skip
        error = ours.std(axis=0) / np.sqrt(draws)
        assert np.abs((ours.mean(axis=0) - theirs) / error).max() < 4.5  # standard errors, of up to 87 numbers
    np.testing.assert_allclose(sampled_square(p, count, 40, key=KEY), exact, rtol=1e-10)  # all columns: no sampling


def test_features_that_wait_say_nothing():
    X = inputs(20)
    p = random_parameters(X)
    more = Basis(
        *(
            jnp.concatenate(pair)
            for pair in ((p.alpha.Z, waiting(3, 2, X.dtype).Z), (p.alpha.log_scale, jnp.zeros((3, 2))))
        )
    )
    longer = eqx.tree_at(lambda p: (p.alpha, p.a), p, (more, jnp.concatenate([p.a, jnp.zeros(3)])))
    data = problem(20)
    for kind in KINDS:
        value, slope = jax.jit(jax.value_and_grad(method(kind).bound))(longer, data)
        np.testing.assert_allclose(value, jax.jit(method(kind).bound)(p, data), rtol=1e-12)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
        np.testing.assert_array_equal(slope.a[-3:], 0.0)
        np.testing.assert_array_equal(slope.alpha.Z[-3:], 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_bases_grow_from_the_batches_until_they_are_full_and_the_bound_rises(kind):
    data, trained = problem(60), method(kind, mean_basis=10, batch_size=20, optimiser=decaying_adam(0.05))
    state = trained.init(data, key=KEY)
    first = trained.objective(state, data)
    step = jax.jit(lambda s, t: trained.step(s, at_step(data, 20, t, key=KEY), key=jax.random.fold_in(KEY, t))[0])
    counts = []
    for t in range(150):
        state = step(state, jnp.asarray(t))
        counts.append(int(state.count))
    assert counts[:4] == [4, 8, 10, 10] and trained.objective(state, data) > first + 10.0
    said = trained.predict(state, data.X)
    assert np.mean((said.mean - data.y) ** 2) < 0.4 * np.var(data.y)


def test_a_natural_step_of_size_1_solves_the_gaussian_case_whatever_the_means_own_basis_says():
    data, solving = problem(), method("orthogonal", natural_step=1.0, optimiser=decaying_adam(0.0), batch_size=None)
    p = eqx.tree_at(lambda p: p.q, random_parameters(data.X), Normal(jnp.zeros(5), jnp.eye(5)))
    state = eqx.tree_at(lambda s: s.parameters, solving.init(data, key=KEY), p)
    state = eqx.tree_at(lambda s: s.count, state, jnp.asarray(12))  # full: nothing is added
    solved, _ = jax.jit(lambda state: solving.step(state, data, key=KEY))(state)
    gradient = jax.jit(jax.grad(solving.bound))
    slope, before = gradient(solved.parameters, data).q, gradient(p, data).q
    for now, then in ((slope.mean, before.mean), (jnp.tril(slope.root), jnp.tril(before.root))):
        assert np.abs(now).max() < 1e-7 * np.abs(then).max()


def test_the_rate_is_chosen_by_the_objective_and_one_that_diverges_never():
    data = problem(60)
    tried = method(batch_size=20, rates=(1e9, 0.05, 1e-9), trial_steps=40)
    assert best_rate(tried, tried.init(data, key=KEY), data, key=KEY) == 0.05


def test_two_classes_by_quadrature():
    X = inputs(80)
    data = whole(X, jnp.sign(X[:, 0] + 0.3), 2)
    trained = method("orthogonal", batch_size=40, optimiser=decaying_adam(0.05))
    state = trained.init(data, key=KEY)
    run = jax.jit(
        lambda s: jax.lax.fori_loop(0, 300, lambda t, s: trained.step(s, at_step(data, 40, t, key=KEY), key=KEY)[0], s)
    )
    log_prob = trained.predict(run(state), data.X).log_prob(data.y)
    assert np.mean(log_prob) > -0.35


@pytest.mark.parametrize(
    "told, line",
    [
        ({"growth": 11}, "method.growth=11"),
        ({"covariance_basis": 31}, "method.covariance_basis=31"),
        ({"mean_basis": 31}, "method.mean_basis=31"),
    ],
)
def test_sizes_that_do_not_fit_are_one_line(told, line):
    with pytest.raises(ConfigError, match=line):
        method(**told).init(problem(), key=KEY)
