"""gpr, vsgpr and svi on one regression problem: where they must agree, and which lies below which."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import (
    FROZEN,
    KERNEL,
    KEY,
    bound_of,
    evaluated,
    inputs,
    layer_at,
    objective_of,
    predict,
    regression,
    start_at,
    train,
)
from references import gp_prediction
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from gpbench.core.features import ScaledFeatures
from gpbench.core.kernels import SquaredExponential
from gpbench.core.likelihoods import Gaussian
from gpbench.methods.ep.pep import PowerEP
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.parts.collapsed import CollapsedParameters as Collapsed
from gpbench.methods.vi import svi
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vsgpr import TVSGPR, VSGPR
from gpbench.train.batches import whole

NOISE = Gaussian(jnp.asarray(np.log(0.05)))


def dense(data, kernel=KERNEL, noise=0.05):
    """The covariance of the targets, and their exact log evidence."""
    K = np.asarray(kernel.cross(data.X, data.X)) + noise * np.eye(data.total)
    return K, multivariate_normal(np.zeros(data.total), K).logpdf(np.asarray(data.y))


@pytest.mark.parametrize("generalised", [False, True])
def test_vsgpr_with_every_point_inducing_has_the_exact_evidence_and_with_fewer_less(generalised):
    data, method = regression(), VSGPR(name="vsgpr")

    def bound(m):
        layer = layer_at(data.X[:m], None, generalised=generalised)
        return float(bound_of(method, Collapsed(layer, NOISE), data)[0])

    exact = dense(data)[1]
    np.testing.assert_allclose(bound(data.total), exact, rtol=1e-6)
    values = [bound(m) for m in (5, 10, 20)]
    assert values == sorted(values) and values[-1] < exact


@pytest.mark.parametrize(
    ("fields", "collapsed"), [({}, VSGPR(name="v")), ({"conditional": "scaled"}, TVSGPR(name="t"))]
)
def test_one_natural_step_of_svi_and_of_tsvgp_reaches_the_collapsed_bound(fields, collapsed):
    data, layer = regression(), layer_at(inputs(6, seed=3), None)
    method = SVI(name="svi", inducing=6, natural_step=1.0, optimiser=FROZEN, **fields)
    q = method.init(data, key=KEY).parameters.q
    state, _ = train(method, data, 1, start_at(method, data, svi.VariationalParameters(layer, NOISE, q)))
    best, optimum = bound_of(collapsed, Collapsed(layer, NOISE), data)
    np.testing.assert_allclose(objective_of(method, state, data), best, rtol=1e-8)
    if not fields:
        np.testing.assert_allclose(state.parameters.q.mean, optimum.q.mean, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", [GPR(name="gpr"), VSGPR(name="vsgpr", inducing=6)], ids=lambda method: method.name)
def test_training_reaches_what_scipy_reaches(method):
    data = regression()
    start = method.init(data, key=KEY)
    state, objective = train(method, data, 150, start)
    flat, unravel = ravel_pytree(start.parameters)
    loss = jax.jit(jax.value_and_grad(lambda x: -method.evidence(unravel(x), data)[0]))
    theirs = minimize(lambda x: tuple(np.asarray(v, float) for v in loss(x)), flat, jac=True, method="L-BFGS-B")
    assert objective[-1] >= -theirs.fun - 0.05 * abs(theirs.fun)
    np.testing.assert_allclose(objective_of(method, state, data), objective[-1], rtol=1e-8)


@pytest.mark.parametrize(
    "method", [GPR(name="gpr", rows=12), VSGPR(name="vsgpr", inducing=5, rows=12)], ids=lambda method: method.name
)
def test_rows_beyond_those_asked_for_change_nothing(method):
    data = regression()
    other = whole(data.X.at[12:].set(9.0), data.y.at[12:].set(-9.0))
    ours, theirs = (train(method, d, 5)[0] for d in (data, other))
    new = inputs(4, seed=8)
    np.testing.assert_array_equal(*(predict(method, state, new).mean for state in (ours, theirs)))


def test_a_wide_feature_is_an_average_of_f_and_values_of_f_are_features_of_scale_1():
    # ψ_j = ∫ f(z_j + t) N(t | 0, v) dt up to its norm: covariances with f(x) are proportional to a Gaussian in x - z_j
    # whose variance is ls² + v, which is (l_j² + ls²)/2 for v = (l_j² - ls²)/2
    kernel = SquaredExponential(jnp.array(0.0), jnp.array([0.0]))
    x = jnp.linspace(-3, 3, 7)[:, None]
    c = 1.8
    covariance = ScaledFeatures(jnp.zeros((1, 1)), jnp.log(jnp.array([[c]]))).cross(kernel, x)[0]
    shape = norm.pdf(np.asarray(x[:, 0]), scale=np.sqrt((c**2 + 1) / 2))
    np.testing.assert_allclose(covariance / covariance[3], shape / shape[3], rtol=1e-10)
    features, X = ScaledFeatures(inputs(6), 0.5 * inputs(6, seed=1)), inputs(5)
    values = ScaledFeatures(X, jnp.zeros_like(X))
    np.testing.assert_allclose(features.cross(KERNEL, X), features.gram(KERNEL, values), rtol=1e-12)


@pytest.mark.parametrize(
    "method",
    [GPR(name="gpr"), VSGPR(name="vsgpr", inducing=6), SVI(name="svi", inducing=6)],
    ids=lambda method: method.name,
)
def test_expected_log_likelihood_less_kl_is_the_bound_and_of_gpr_the_evidence(method):
    """On the training rows, where metric `vlb` would be the objective."""
    data = regression()
    state, _ = train(method, data, 8)
    value = jax.jit(lambda s: method.expected_log_prob(s, data.X, data.y).sum() - method.kl(s))(state)
    np.testing.assert_allclose(value, objective_of(method, state, data), rtol=1e-6)


def collapsed_bound(method, m=6, noise=NOISE):
    """The objective of a collapsed method with `m` inducing points at fixed hyper-parameters."""
    layer = layer_at(inputs(m, seed=3), None)
    return float(bound_of(method, Collapsed(layer, noise), regression())[0])


def low_rank(m=6):
    """Q = Kxz Kzz⁻¹ Kzx and d = diag(K - Q) of the same problem, by the formulas."""
    X, Z = regression().X, inputs(m, seed=3)
    Kxz = np.asarray(KERNEL.cross(X, Z))
    Q = Kxz @ np.linalg.solve(np.asarray(KERNEL.cross(Z, Z)), Kxz.T)
    return Q, np.exp(0.7) - np.diag(Q)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_the_power_ep_energy_is_that_of_the_dense_formula(alpha):
    """Bui, Yan and Turner (2017), equation 21; α = 1 is FITC, and α = 0 the bound of vsgpr."""
    (Q, d), y, noise = low_rank(), np.asarray(regression().y), 0.05
    evidence = multivariate_normal(np.zeros(len(y)), Q + np.diag(alpha * d + noise)).logpdf(y)
    correction = np.log1p(alpha * d / noise).sum() / alpha if alpha else d.sum() / noise
    energy = collapsed_bound(PowerEP(name="pep", alpha=alpha))
    np.testing.assert_allclose(energy, evidence - 0.5 * (1 - alpha) * correction, rtol=1e-7)


def test_power_ep_tends_to_the_bound_and_to_fitc_which_predicts_by_the_posterior_of_its_prior():
    at = lambda alpha: collapsed_bound(PowerEP(name="pep", alpha=alpha))
    np.testing.assert_allclose(at(0.0), collapsed_bound(VSGPR(name="vsgpr")), rtol=1e-12)
    np.testing.assert_allclose(at(1e-7), at(0.0), rtol=1e-5)
    np.testing.assert_allclose(at(1 - 1e-7), at(1.0), rtol=1e-5)
    # Snelson and Ghahramani (2006): mean Q*x (Q + diag(d) + σ²I)⁻¹ y, variance k** - Q*x (...)⁻¹ Qx* + σ².
    data, method = regression(), PowerEP(name="fitc_gp", alpha=1.0, inducing=6)
    new, Z, (Q, d) = inputs(7, seed=5), inputs(6, seed=3), low_rank()
    _, state = evaluated(method, data, Collapsed(layer_at(Z, None), NOISE))
    Kzz, Kzx, Kzn = (np.asarray(KERNEL.cross(Z, x)) for x in (Z, data.X, new))
    cross, predictive = Kzx.T @ np.linalg.solve(Kzz, Kzn), predict(method, state, new)
    mean, variance = gp_prediction(Q + np.diag(d + 0.05), cross, np.exp(0.7), data.y, 0.05)
    np.testing.assert_allclose(predictive.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(predictive.var, variance, rtol=1e-6)


def test_the_tighter_bound_lies_between_that_of_vsgpr_and_the_evidence():
    """Titsias (2025): log N(y | 0, Q + σ²I) - ½ Σ log(1 + d/σ²)."""
    (Q, d), data = low_rank(), regression()
    tight = collapsed_bound(TVSGPR(name="tvsgpr"))
    dense_value = multivariate_normal(np.zeros(len(d)), Q + 0.05 * np.eye(len(d))).logpdf(np.asarray(data.y))
    np.testing.assert_allclose(tight, dense_value - 0.5 * np.log1p(d / 0.05).sum(), rtol=1e-7)
    assert collapsed_bound(VSGPR(name="vsgpr")) < tight < dense(data)[1]
