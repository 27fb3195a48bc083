"""Decoupled variational GPs: the limits in which they are other methods, unbiased sampling, bases that grow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import KEY, bound_of, inputs, minibatches, objective_of, predict, regression, start_at, train
from references import exact_evidence
from samples import chosen_state
from scipy.linalg import cho_factor, cho_solve
from scipy.stats import laplace, multivariate_normal

from gpbench.core.decoupled import Direct, Hybrid, Jacobi, Orthogonal
from gpbench.core.features import InducingPoints, ScaledFeatures, unused_features
from gpbench.core.gaussians import Normal, standard_normal
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Gaussian, Laplace
from gpbench.core.optimisers import decaying_adam
from gpbench.methods.parts.sparse_layer import SparseLayer
from gpbench.methods.vi import svi
from gpbench.methods.vi.svdgp import SVDGP
from gpbench.train.batches import whole

CLASSES = {"direct": Direct, "jacobi": Jacobi, "hybrid": Hybrid, "orthogonal": Orthogonal}
RANDOM = np.random.default_rng(3)
ADAM = decaying_adam(0.05)


def normal(*shape, scale=1.0):
    return scale * RANDOM.normal(size=shape)


def array(x):
    """An array of JAX, made without compiling anything."""
    return jnp.asarray(np.asarray(x, "float64"))


def random_parameters(kind, X, a=12, b=5, likelihood=Gaussian):
    """Parameters at which nothing vanishes; the root is lower triangular with a positive diagonal."""
    X = np.asarray(X)
    kernel = SquaredExponential(array(0.6), array(np.linspace(-0.3, 0.4, X.shape[1])))
    Z = X[:a] + normal(a, X.shape[1], scale=0.1)
    alpha = ScaledFeatures(array(Z), array(normal(a, X.shape[1], scale=0.3)))
    beta = ScaledFeatures(array(X[-b:]), array(normal(b, X.shape[1], scale=0.3)))
    root = array(np.tril(normal(b, b, scale=0.3)) + np.diag(1.0 + np.arange(b) / b))
    shared = (kernel, likelihood(array(-1.5)), alpha, array(normal(a, scale=0.5)), beta)
    cls = CLASSES[kind]
    return cls(*shared, root if issubclass(cls, Direct) else Normal(array(normal(b)), root))


def method(kind="direct", **fields):
    small = {"mean_basis": 12, "covariance_basis": 5, "growth": 4, "columns": 6, "batch_size": 10, "optimiser": ADAM}
    return SVDGP(name="svdgp", parametrisation=kind, **(small | fields))


@jax.jit
def posterior(p, X):
    """Mean and variance of f at X, and KL from the prior."""
    factors = p.factors()
    return *p.marginals(factors, X), p.kl(factors, p.square())


def bound(kind, p, data):
    return bound_of(method(kind), p, data)


@jax.jit
def slope_of(method, p, data):
    """The gradient of `method.bound`, and its value."""
    return jax.value_and_grad(method.bound)(p, data)


@jax.jit
def blocks(p, X):
    """The Gram matrices of and between the bases and X, of the kernel of unit amplitude."""
    unit = p.unit
    grams = [x.gram(unit, y) for x, y in ((p.alpha, p.alpha), (p.beta, p.beta), (p.beta, p.alpha))]
    return *grams, p.alpha.cross(unit, X), p.beta.cross(unit, X), unit.cross(X, X)


@jax.jit
def gram(kernel, X, Y):
    return kernel.cross(X, Y)


def padded(p, features=3):
    """The parameters with more features of the mean, which are not in use."""
    more = unused_features(features, 2, p.a.dtype)
    alpha = jax.tree.map(lambda *leaves: array(np.concatenate(leaves)), p.alpha, more)
    return eqx.tree_at(lambda p: (p.alpha, p.a), p, (alpha, array(np.append(p.a, np.zeros(features)))))


def dense(p, X):
    """Mean, covariance of f at X and KL by the formulas themselves, in NumPy: equations 8, 9 and those of A.3."""
    rho, a = np.exp(0.5 * p.kernel.log_amplitude), np.asarray(p.a)
    Ka, Kb, Kba, ka, kb, prior = map(np.asarray, blocks(p, X))
    if isinstance(p, Direct):
        L = np.tril(p.L)
        B = L @ L.T
        inverse = np.linalg.inv(np.linalg.inv(B) + Kb)
        kl = 0.5 * (a @ Ka @ a + np.linalg.slogdet(np.eye(len(B)) + Kb @ B)[1] - np.trace(Kb @ inverse))
        return rho * ka.T @ a, rho**2 * (prior - kb.T @ inverse @ kb), kl
    chol = np.linalg.cholesky(Kb)
    R = np.tril(p.q.root)
    m, S = chol @ p.q.mean, chol @ R.T @ R @ chol.T
    if isinstance(p, Orthogonal):
        m = m - Kba @ a
    inverse = np.linalg.inv(Kb)
    mean = ka.T @ a + kb.T @ inverse @ m
    cov = prior + kb.T @ inverse @ (S - Kb) @ inverse @ kb
    of_mean = m @ inverse @ m + 2 * m @ inverse @ Kba @ a + a @ Ka @ a
    kl = 0.5 * (of_mean - np.linalg.slogdet(inverse @ S)[1] + np.trace(S @ inverse) - len(Kb))
    return rho * mean, rho**2 * cov, kl


@pytest.mark.parametrize("kind", ["direct", "hybrid", "orthogonal"])
def test_mean_variance_and_kl_are_those_of_the_formulas(kind):
    X = inputs(20)
    p, new = random_parameters(kind, X), inputs(7, seed=4)
    mean, cov, kl = dense(p, new)
    ours = posterior(p, new)
    np.testing.assert_allclose(ours[0], mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours[1], np.diag(cov), rtol=1e-6)
    np.testing.assert_allclose(ours[2], kl, rtol=1e-7)


@pytest.mark.parametrize("kind", ["direct", "hybrid", "orthogonal"])
def test_the_kl_is_that_of_gaussians_on_all_the_features_together(kind):
    """At the bases' own locations (features of scale 1) it is KL between two multivariate normals."""
    X = inputs(20)
    p = random_parameters(kind, X)
    p = eqx.tree_at(lambda p: (p.alpha.log_scale, p.beta.log_scale), p, replace_fn=lambda x: array(np.zeros(x.shape)))
    locations = array(np.concatenate([p.alpha.Z, p.beta.Z]))
    mean, cov, _ = dense(p, locations)
    K = np.asarray(gram(p.kernel, locations, locations))
    solve, logdet = np.linalg.solve, lambda matrix: np.linalg.slogdet(matrix)[1]
    kl = 0.5 * (np.trace(solve(K, cov)) - len(K) + mean @ solve(K, mean) + logdet(K) - logdet(cov))
    np.testing.assert_allclose(posterior(p, X[:7])[2], kl, rtol=1e-5)


def test_one_basis_for_both_has_the_bound_of_svi():
    data = regression()
    Z, b = array(np.asarray(data.X)[:5]), 5
    kernel = SquaredExponential(array(0.4), array([0.1, 0.3]))
    root = np.tril(normal(b, b, scale=0.05)) + np.diag(np.linspace(0.3, 0.6, b))
    q = Normal(array(normal(b)), array(root))
    basis, likelihood = ScaledFeatures(Z, array(np.zeros(Z.shape))), Gaussian(array(-1.0))
    layer = SparseLayer(kernel, None, InducingPoints(Z))
    expected = bound_of(svi.SVI(name="svi"), svi.VariationalParameters(layer, likelihood, q), data)
    # q(w) = N(m, RᵀR) is f's mean A^T m on the basis, and B = A^T ((RᵀR)⁻¹ - I) A with A whitening
    unit = SquaredExponential(array(0.0), kernel.log_lengthscale2)
    A = np.linalg.inv(np.linalg.cholesky(np.asarray(gram(unit, Z, Z))))
    R = np.tril(q.root)
    L = np.linalg.cholesky(A.T @ (np.linalg.inv(R.T @ R) - np.eye(b)) @ A)
    direct = Direct(kernel, likelihood, basis, array(A.T @ np.asarray(q.mean)), basis, array(L))
    np.testing.assert_allclose(bound("direct", padded(direct, 7), data), expected, rtol=1e-7)
    unused = unused_features(12, 2, Z.dtype)
    for kind in ("hybrid", "orthogonal"):  # a_r = 0
        p = CLASSES[kind](kernel, likelihood, unused, array(np.zeros(12)), basis, q)
        np.testing.assert_allclose(bound(kind, p, data), expected, rtol=1e-7)


def test_without_a_basis_of_the_covariance_the_mean_is_kernel_ridge_regression():
    """L = 0 leaves the prior's covariance; the bound is then largest at a = (K + σ²I)⁻¹ y (paper, section 3.4)."""
    data = regression()
    p = random_parameters("direct", data.X)
    basis = ScaledFeatures(data.X, array(np.zeros(data.X.shape)))
    flat = (basis, array(np.zeros((5, 5))), array(0.0))
    p = eqx.tree_at(lambda p: (p.alpha, p.L, p.kernel.log_amplitude), p, flat)
    K, noise = np.asarray(gram(p.kernel, data.X, data.X)), np.exp(p.likelihood.log_noise)
    ridge = cho_solve(cho_factor(K + noise * np.eye(len(K))), np.asarray(data.y))
    slope = jax.jit(jax.grad(lambda a: method().bound(eqx.tree_at(lambda p: p.a, p, a), data)))
    assert np.abs(slope(array(ridge))).max() < 1e-8 * np.abs(slope(array(np.zeros(len(K))))).max()
    p = eqx.tree_at(lambda p: p.a, p, array(ridge))
    new = inputs(7, seed=9)
    mean, variance, _ = posterior(p, new)
    np.testing.assert_allclose(mean, np.asarray(gram(p.kernel, new, data.X)) @ ridge, rtol=1e-9)
    np.testing.assert_allclose(variance, 1.0)


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("likelihood", [Gaussian, Laplace], ids=["gaussian", "laplace"])
def test_the_bound_lies_below_the_exact_evidence(kind, likelihood):
    is_gaussian = likelihood is Gaussian
    data, sizes = regression(25 if is_gaussian else 3), {} if is_gaussian else {"a": 3, "b": 2}
    for _ in range(3):
        p = random_parameters(kind, data.X, likelihood=likelihood, **sizes)
        K, y = np.asarray(gram(p.kernel, data.X, data.X)), np.asarray(data.y)
        if is_gaussian:
            C = K + np.exp(p.likelihood.log_noise) * np.eye(data.total)
            exact = multivariate_normal(np.zeros(data.total), C).logpdf(y)
        else:
            b = float(p.likelihood.scale)
            exact = exact_evidence(K, y, log_likelihood=lambda y, f, b=b: laplace.logpdf(y, f, b))
        assert bound(kind, p, data) < exact


def test_jacobi_is_direct_with_weights_in_units_of_rho():
    data = regression()
    p = random_parameters("direct", data.X)
    rho = np.exp(0.5 * p.kernel.log_amplitude)
    a, L = (array(rho * np.asarray(weights)) for weights in (p.a, p.L))
    scaled = Jacobi(p.kernel, p.likelihood, p.alpha, a, p.beta, L)
    np.testing.assert_allclose(bound("jacobi", scaled, data), bound("direct", p, data), rtol=1e-10)


def test_sampled_columns_give_the_square_and_its_gradient_without_bias():
    p = random_parameters("direct", inputs(40), a=32)
    draws = 4000
    Z, a = np.array(p.alpha.Z), np.array(p.a)
    Z[29:], a[29:] = unused_features(3, 2, p.a.dtype).Z, 0.0  # three features are not in use
    p = eqx.tree_at(lambda p: (p.a, p.alpha.Z), p, (array(a), array(Z)))
    keys = jax.random.split(KEY, draws)
    exact, slope = jax.jit(jax.value_and_grad(lambda p: p.square()))(p)
    sample = jax.vmap(jax.value_and_grad(lambda p, key: p.sampled_square(5, key=key)), (None, 0))
    exact, slope, (values, slopes) = jax.tree.map(np.asarray, (exact, slope, jax.jit(sample)(p, keys)))
    for ours, theirs in (
        (values[:, None], exact[None]),
        (slopes.a[:, :29], slope.a[:29]),
        (slopes.alpha.Z[:, :29].reshape(draws, -1), slope.alpha.Z[:29].ravel()),
        (slopes.kernel.log_lengthscale2, slope.kernel.log_lengthscale2),
    ):
        error = ours.std(axis=0) / np.sqrt(draws)
        assert np.abs((ours.mean(axis=0) - theirs) / error).max() < 4.5  # standard errors, of up to 90 numbers
    complete = jax.jit(lambda p: p.sampled_square(40, key=KEY))  # all columns: no sampling
    np.testing.assert_allclose(complete(p), exact, rtol=1e-10)


@pytest.mark.parametrize("kind", CLASSES)
def test_unused_features_change_nothing(kind):
    data = regression()
    p = random_parameters(kind, data.X)
    value, slope = slope_of(method(kind), padded(p), data)
    np.testing.assert_allclose(value, bound(kind, p, data), rtol=1e-12)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(slope))
    np.testing.assert_array_equal(np.asarray(slope.a)[-3:], 0.0)
    np.testing.assert_array_equal(np.asarray(slope.alpha.Z)[-3:], 0.0)


def test_bases_grow_from_the_batches_until_they_are_full():
    data, growing = regression(60), method(mean_basis=10, batch_size=20)
    p, counts = growing.init_parameters(data, key=KEY), []
    update = jax.jit(lambda p, batch: growing.update(p, None, batch)[0])  # what a step begins with
    stacked = minibatches(data, 20, 4)
    for t in range(4):
        p = update(p, jax.tree.map(lambda leaf, t=t: leaf[t], stacked))
        counts.append(int(p.alpha.count()))
    assert counts == [4, 8, 10, 10]


@pytest.mark.parametrize("kind", CLASSES)
def test_training_on_minibatches_raises_the_bound_and_explains_the_targets(kind):
    data, growing = regression(60), method(kind, mean_basis=10, batch_size=20)
    start = growing.init(data, key=KEY)
    state, _ = train(growing, data, 150, start)
    assert objective_of(growing, state, data) > objective_of(growing, start, data) + 10.0
    assert start.parameters.alpha.count() == 0 and state.parameters.alpha.count() == 10
    predictive = predict(growing, state, data.X)
    assert np.mean((np.asarray(predictive.mean) - np.asarray(data.y)) ** 2) < 0.4 * np.var(np.asarray(data.y))


@pytest.mark.parametrize("features", ["generalised", "values"])
@pytest.mark.parametrize(("kind", "natural_step"), [("direct", None), ("hybrid", None), ("orthogonal", 0.1)])
def test_the_optimiser_moves_all_but_scales_of_values_and_what_natural_steps_move(kind, natural_step, features):
    p, learning = random_parameters(kind, regression().X), method(kind, features=features, natural_step=natural_step)
    moved = eqx.tree_at(learning.trainable, p, jax.tree.map(lambda leaf: np.asarray(leaf) + 1, learning.trainable(p)))
    paths = jax.tree_util.tree_leaves_with_path(p)
    still = {jax.tree_util.keystr(path) for (path, a), b in zip(paths, jax.tree.leaves(moved), strict=True) if a is b}
    scales = {".alpha.log_scale", ".beta.log_scale"} if features == "values" else set()
    assert still == scales | ({".q.mean", ".q.root"} if natural_step else set())


def test_a_natural_step_of_size_1_solves_the_gaussian_case_whatever_the_means_own_basis_predicts():
    data = regression()
    solving = method("orthogonal", mean_basis=15, natural_step=1.0, optimiser=decaying_adam(0.0), batch_size=None)
    p = random_parameters("orthogonal", data.X, a=15)  # its basis is full: nothing is added
    p = eqx.tree_at(lambda p: p.q, p, standard_normal(5, p.a.dtype))
    solution, _ = train(solving, data, 1, start_at(solving, data, p))
    slopes = (slope_of(method("orthogonal"), q, data)[1].q for q in (solution.parameters, p))
    for now, then in zip(*map(jax.tree.leaves, slopes), strict=True):
        assert np.abs(now).max() < 1e-7 * np.abs(then).max()


def test_the_rate_is_chosen_by_the_objective_and_one_that_diverges_never():
    data = regression(60)
    with_rates = method(batch_size=20, rates=(1e9, 0.05, 1e-9), trial_steps=40)
    assert chosen_state(with_rates, data, key=KEY).optimiser.rate == 0.05


def test_two_classes_by_quadrature():
    X = inputs(60)
    data = whole(X, jnp.sign(X[:, 0] + 0.3), 2)
    classifier = method("orthogonal", batch_size=20)
    state, _ = train(classifier, data, 300)
    assert np.mean(predict(classifier, state, X).log_prob(data.y)) > -0.35
