"""gpr, vsgpr and svi on one regression problem: where they must agree, and which lies below which."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from references import hyper_at, inputs
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from gpbench.core import features
from gpbench.core.kernels import SquaredExponential
from gpbench.errors import ConfigError
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.exact.gpr import Hyper as ExactHyper
from gpbench.methods.vi.svi import SVI, Parameters
from gpbench.methods.vi.vsgpr import VSGPR
from gpbench.train.batches import whole

KEY = jax.random.key(0)


def problem(n=25, seed=1):
    X = inputs(n)
    return whole(X, jnp.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * jnp.asarray(np.random.default_rng(seed).normal(size=n)))


def dense(hyper, data):
    K = np.asarray(hyper.kernel.gram(data.X, data.X)) + np.exp(hyper.log_noise) * np.eye(data.total)
    return K, multivariate_normal(np.zeros(data.total), K).logpdf(np.asarray(data.y))


def trained(method, data, steps):
    state = method.init(data, key=KEY)
    run = jax.jit(lambda s: jax.lax.scan(lambda s, _: method.step(s, data, key=KEY), s, None, steps))
    state, info = run(state)
    return state, info.objective


def test_gpr_has_the_exact_evidence_and_the_exact_posterior():
    data, method = problem(), GPR(name="gpr")
    hyper = hyper_at(data.X)
    K, exact = dense(hyper, data)
    value, found = method.evidence(ExactHyper(hyper.kernel, hyper.log_noise), data)
    np.testing.assert_allclose(value, exact, rtol=1e-9)
    state = eqx.tree_at(
        lambda s: (s.hyper, s.optimiser.extra),
        method.init(data, key=KEY),
        (ExactHyper(hyper.kernel, hyper.log_noise), found),
    )
    new = inputs(7, seed=5)
    said, k = method.predict(state, new), np.asarray(hyper.kernel.gram(data.X, new))
    np.testing.assert_allclose(said.mean, k.T @ np.linalg.solve(K, data.y), rtol=1e-7)
    variance = np.exp(0.7) - np.sum(k * np.linalg.solve(K, k), axis=0) + 0.05
    np.testing.assert_allclose(said.var, variance, rtol=1e-7)


@pytest.mark.parametrize("generalised", [False, True])
def test_vsgpr_with_every_point_inducing_has_the_exact_evidence_and_with_fewer_less(generalised):
    data, method = problem(), VSGPR(name="vsgpr")

    def at(Z):
        hyper = hyper_at(Z)
        return (
            eqx.tree_at(lambda h: h.log_scale, hyper, jnp.zeros_like(Z), is_leaf=lambda x: x is None)
            if (generalised)
            else hyper
        )

    exact = dense(at(data.X), data)[1]
    np.testing.assert_allclose(method.bound(at(data.X), data)[0], exact, rtol=1e-6)
    values = [float(method.bound(at(data.X[:m]), data)[0]) for m in (5, 10, 20)]
    assert values == sorted(values) and values[-1] < exact


def test_one_natural_step_of_svi_reaches_the_collapsed_bound():
    data, hyper = problem(), hyper_at(inputs(6, seed=3))
    svi = SVI(name="svi", inducing=6, natural_step=1.0, optimiser=optax.set_to_zero())
    state = eqx.tree_at(lambda s: s.parameters.hyper, svi.init(data, key=KEY), hyper)
    state, _ = svi.step(state, data, key=KEY)
    collapsed, q = VSGPR(name="vsgpr").bound(hyper, data)
    np.testing.assert_allclose(svi.bound(Parameters(hyper, state.parameters.q), data), collapsed, rtol=1e-8)
    np.testing.assert_allclose(state.parameters.q.mean, q.mu, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", [GPR(name="gpr"), VSGPR(name="vsgpr", inducing=6, lengthscales="free")])
def test_training_reaches_what_scipy_reaches(method):
    data = problem()
    state, objective = trained(method, data, 150)
    flat, unravel = jax.flatten_util.ravel_pytree(method.init(data, key=KEY).hyper)
    value = method.evidence if isinstance(method, GPR) else method.bound
    loss = jax.jit(jax.value_and_grad(lambda x: -value(unravel(x), data)[0]))
    theirs = minimize(lambda x: tuple(np.asarray(v, float) for v in loss(x)), flat, jac=True, method="L-BFGS-B")
    assert objective[-1] >= -theirs.fun - 0.05 * abs(theirs.fun)
    np.testing.assert_allclose(method.objective(state, data), objective[-1], rtol=1e-8)


@pytest.mark.parametrize("method", [GPR(name="gpr", rows=12), VSGPR(name="vsgpr", inducing=5, rows=12)])
def test_rows_beyond_those_asked_for_change_nothing(method):
    data = problem()
    other = whole(data.X.at[12:].set(9.0), data.y.at[12:].set(-9.0))
    ours, theirs = (trained(method, d, 5)[0] for d in (data, other))
    new = inputs(4, seed=8)
    np.testing.assert_array_equal(method.predict(ours, new).mean, method.predict(theirs, new).mean)


@pytest.mark.parametrize("method", [GPR(name="gpr", batch_size=5), VSGPR(name="vsgpr", inducing=5, batch_size=5)])
def test_minibatches_are_refused_in_one_line(method):
    with pytest.raises(ConfigError, match=r"leave method\.batch_size=null"):
        method.init(problem(), key=KEY)


def features_of(m, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(m, 2))), jnp.asarray(0.5 * rng.normal(size=(m, 2)))


KERNEL = SquaredExponential(jnp.array(0.7), jnp.log(jnp.array([0.8, 1.5])))


def test_generalised_features_of_scale_1_are_values_of_f():
    Z, _ = features_of(6)
    X, ones = inputs(5), jnp.zeros((6, 2))
    np.testing.assert_allclose(features.cross(KERNEL, Z, ones, X), KERNEL.gram(Z, X), rtol=1e-12)
    np.testing.assert_allclose(features.gram(KERNEL, Z, ones, Z, ones), KERNEL.gram(Z, Z), rtol=1e-12)


def test_features_with_data_are_features_with_features_of_scale_1():
    Z, log_scale = features_of(6)
    X = inputs(5)
    across = features.gram(KERNEL, Z, log_scale, X, jnp.zeros_like(X))
    np.testing.assert_allclose(features.cross(KERNEL, Z, log_scale, X), across, rtol=1e-12)


def test_a_wide_feature_is_an_average_of_f_around_its_place():
    # ψ_j = ∫ f(z_j + t) N(t | 0, v) dt up to its norm: covariances with f(x) are proportional to a Gaussian in x - z_j
    # whose variance is ls² + v, which is (l_j² + ls²)/2 for v = (l_j² - ls²)/2
    kernel = SquaredExponential(jnp.array(0.0), jnp.array([0.0]))
    x = jnp.linspace(-3, 3, 7)[:, None]
    c = 1.8
    told = features.cross(kernel, jnp.zeros((1, 1)), jnp.log(jnp.array([[c]])), x)[0]
    shape = norm.pdf(np.asarray(x[:, 0]), scale=np.sqrt((c**2 + 1) / 2))
    np.testing.assert_allclose(told / told[3], shape / shape[3], rtol=1e-10)


def test_the_gram_matrix_of_features_and_data_is_positive_definite():
    Z, log_scale = features_of(8, seed=4)
    X = inputs(6)
    both, scales = jnp.concatenate([Z, X]), jnp.concatenate([log_scale, jnp.zeros_like(X)])
    K = np.asarray(features.gram(KERNEL, both, scales, both, scales))
    np.testing.assert_allclose(np.diag(K), np.exp(0.7), rtol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-10


@pytest.mark.parametrize(
    "method",
    [GPR(name="gpr"), VSGPR(name="vsgpr", inducing=6), SVI(name="svi", inducing=6)],
    ids=lambda method: method.name,
)
def test_expected_log_likelihood_less_divergence_is_the_bound_and_of_gpr_the_evidence(method):
    """On the training rows, where metric `vlb` would be the objective."""
    data = problem()
    state, _ = trained(method, data, 8)
    said = method.predict(state, data.X)
    value = said.expected_log(data.y).sum() - method.divergence(state)
    np.testing.assert_allclose(value, method.objective(state, data), rtol=1e-6)


def test_laplace_noise_minds_outliers_less():
    """One row of ten far off: with Laplace noise the mean is nearer to the function without noise."""
    clean, X = problem(80), inputs(80)
    far = jnp.where(jnp.arange(80) % 10 == 0, 6.0, 0.0)
    data, truth = whole(X, clean.y + far), jnp.sin(2.0 * X[:, 0]) + X[:, 1]

    def error(likelihood):
        method = SVI(name="svi", inducing=20, likelihood=likelihood)
        state, _ = trained(method, data, 60)
        return float(jnp.sqrt(jnp.mean((method.predict(state, X).mean - truth) ** 2)))

    assert error("laplace") < 0.5 * error("gaussian")
