"""Methods with likelihoods other than Gaussian and probit: full EP, bounds below exact evidences, stationary points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from problems import (
    FROZEN,
    KEY,
    binary,
    bound_of,
    inputs,
    layer_at,
    predict,
    regression,
    sep,
    start_at,
    start_layer,
    train,
)
from references import dense_ep, exact_evidence, logistic, sampled_evidence
from scipy import stats
from scipy.special import log_softmax

from gpbench.core.gaussians import Normal, initial_sites
from gpbench.core.likelihoods import Logistic, RobustMax, Softmax, StudentT
from gpbench.errors import ConfigError
from gpbench.methods.bnn.ensemble import Ensemble
from gpbench.methods.bnn.hmc import HMC
from gpbench.methods.bnn.laplace import LinearisedLaplace
from gpbench.methods.bnn.mile import MILE
from gpbench.methods.bnn.sgld import SGLD
from gpbench.methods.bnn.vi_g import VIG
from gpbench.methods.bnn.vi_kw import VIKW
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.vi.svi import SVI, VariationalParameters
from gpbench.train.batches import whole

LOGISTIC = {"logistic": {"nodes": 60}}


def covariance(layer, X, noise=0.0):
    return np.asarray(layer.kernel.cross(X, X)) + noise * np.eye(len(X))


def test_ep_with_every_point_inducing_is_full_ep_under_the_logistic_likelihood():
    data = binary(15)
    layer = layer_at(data.X)
    log_z, nu, tau, *_ = dense_ep(covariance(layer, data.X, 0.05), np.asarray(data.y), logistic)
    gfitc = GFITC(tolerance=1e-10, likelihood=LOGISTIC)
    value, _, inference = jax.jit(gfitc.evidence)(layer, data, initial_sites(data.weight))
    np.testing.assert_allclose(value, log_z, rtol=1e-6)
    np.testing.assert_allclose(inference.sites.nu, nu, rtol=1e-4)
    np.testing.assert_allclose(inference.sites.tau, tau, rtol=1e-4, atol=1e-6)
    method = sep(inducing=15, update="outer", tolerance=1e-10, damping=0.8, likelihood=LOGISTIC)
    _, objective = train(method, data, 1, start_layer(method, data, layer))
    np.testing.assert_allclose(objective[-1], log_z, rtol=1e-6)


def random_q(seed, m, latents):
    """An arbitrary q(w), with a leading axis where there are several latent functions."""
    random = np.random.default_rng(seed)
    one = lambda: Normal(jnp.asarray(random.normal(size=m)), jnp.asarray(np.eye(m) + 0.3 * random.normal(size=(m, m))))
    return one() if latents == 1 else jax.tree.map(lambda *leaves: jnp.stack(leaves), *(one() for _ in range(latents)))


def bounds(name, data, likelihood, layer):
    """svi's bound at three arbitrary q, and after natural-gradient steps from the prior."""
    method = SVI(name="svi", inducing=3, optimiser=FROZEN, natural_step=0.3, likelihood=name)
    bound = lambda q: float(bound_of(method, VariationalParameters(layer, likelihood, q), data))
    arbitrary = [bound(random_q(seed, 3, likelihood.latents())) for seed in (0, 1, 2)]
    start = method.init(data, key=KEY)
    state, _ = train(
        method, data, 80, start_at(method, data, VariationalParameters(layer, likelihood, start.parameters.q))
    )
    return np.asarray(arbitrary), bound(state.parameters.q)


def test_the_bound_under_the_logistic_likelihood_lies_below_the_exact_evidence():
    data = binary(3)
    layer = layer_at(data.X)
    exact = exact_evidence(covariance(layer, data.X, 0.05), np.asarray(data.y), log_likelihood=logistic)
    arbitrary, optimum = bounds(LOGISTIC, data, Logistic(nodes=60), layer)
    assert (arbitrary < exact).all() and exact - 0.05 < optimum < exact


def test_the_bound_under_student_t_noise_lies_below_the_exact_evidence():
    data = regression(3)
    layer = layer_at(data.X, None)
    likelihood = StudentT.initial(0.5, 0, data.X.dtype, df=4.0)
    log_likelihood = lambda y, f: stats.t.logpdf(y, 4.0, f, np.sqrt(0.5 / 2))  # t has variance df / (df - 2) = 2
    exact = exact_evidence(covariance(layer, data.X), np.asarray(data.y), log_likelihood=log_likelihood)
    arbitrary, optimum = bounds({"student_t": {"df": 4.0}}, data, likelihood, layer)
    assert (arbitrary < exact).all() and exact - 0.1 < optimum < exact


def three_classes(n):
    X = inputs(n)
    return whole(X, jnp.asarray(np.arange(n) % 3, X.dtype), 3)


def log_robust_max(y, f):
    return np.log(np.where(f.argmax(-1) == y, 0.9, 0.05))


def log_softmax_of(y, f):
    return np.take_along_axis(log_softmax(f, axis=-1), y.astype(int)[None, :, None], -1)[..., 0]


@pytest.mark.parametrize(
    ("name", "likelihood", "log_likelihood", "gap"),
    [
        ({"softmax": {"samples": 512}}, Softmax(3, samples=512), log_softmax_of, 0.2),
        ({"robust_max": {"epsilon": 0.1}}, RobustMax(3, epsilon=0.1), log_robust_max, 1.5),
    ],
    ids=["softmax", "robust_max"],
)
def test_the_bound_for_three_classes_lies_below_the_exact_evidence(name, likelihood, log_likelihood, gap):
    data = three_classes(3)
    layer = layer_at(data.X, None)
    exact, error = sampled_evidence(covariance(layer, data.X), np.asarray(data.y), 3, log_likelihood)
    arbitrary, optimum = bounds(name, data, likelihood, layer)
    assert (arbitrary < exact).all()
    assert exact - gap < optimum < exact - 4 * error


@pytest.mark.parametrize("likelihood", ["softmax", {"robust_max": {"epsilon": 0.1}}], ids=str)
def test_natural_steps_for_three_classes_end_where_the_bound_is_flat_in_every_q(likelihood):
    """Robust-max is not log-concave: without `keep_definite` its steps leave the positive definite precisions."""
    data = three_classes(20)
    layer = layer_at(data.X[:4])
    method = SVI(name="svi", inducing=4, optimiser=FROZEN, natural_step=0.5, likelihood=likelihood)
    state, _ = train(method, data, 150, start_layer(method, data, layer))
    p = state.parameters
    assert p.q.mean.shape == (3, 4) and not np.allclose(p.q.mean[0], p.q.mean[1])
    slope = jax.jit(jax.grad(lambda q: method.bound(VariationalParameters(p.layer, p.likelihood, q), data)))(p.q)
    np.testing.assert_allclose(ravel_pytree(slope)[0], 0.0, atol=1e-6)
    log_probs = predict(method, state, data.X).log_probs
    np.testing.assert_allclose(np.exp(log_probs).sum(1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("network", [VIKW, VIG, SGLD, HMC, Ensemble, MILE, LinearisedLaplace])
def test_networks_refuse_robust_max_whose_log_density_has_no_slope(network):
    """Its gradient is 0 and its values near a point are equal, so that gradient steps would not see the targets."""
    f, y = jnp.asarray([[0.3, -1.0, 0.8], [2.0, 0.1, 0.5]]), jnp.asarray([0.0, 2.0])
    value = lambda f: jnp.sum(RobustMax(3).log_prob(f, y))
    assert (jax.grad(value)(f) == 0.0).all() and all(value(f.at[0, c].add(0.1)) == value(f) for c in range(3))
    fields = {"name": "network", "likelihood": {"robust_max": {"epsilon": 0.01}}}
    with pytest.raises(ConfigError, match=r"^network needs a .* or softmax likelihood, not robust_max"):
        network(**fields) if network in (SGLD, HMC) else network(**fields, optimiser=FROZEN)
