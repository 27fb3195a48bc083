"""Methods under likelihoods of many kinds: bounds below exact evidences, stationary points, limits, predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree
from problems import FROZEN, KEY, binary, bound_of, inputs, layer_at, predict, regression, start_at, start_layer, train
from references import exact_evidence, logistic, probit, sampled_evidence
from scipy import stats
from scipy.special import log_softmax

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.core import likelihoods
from gpbench.core.gaussians import Normal
from gpbench.core.likelihoods import Gaussian, Heteroscedastic, Logistic, Poisson, Probit, RobustMax, Softmax, StudentT
from gpbench.errors import ConfigError
from gpbench.methods.additive.gam import GAM
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.vi.svi import SVI, VariationalParameters
from gpbench.train.batches import whole

LOGISTIC = {"logistic": {"nodes": 60}}


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
    parameters = VariationalParameters(layer, likelihood, start.parameters.q)
    state, _ = train(method, data, 80, start_at(method, data, parameters))
    return np.asarray(arbitrary), bound(state.parameters.q)


def three_classes(n):
    X = inputs(n)
    return whole(X, jnp.asarray(np.arange(n) % 3, X.dtype), 3)


def log_robust_max(y, f):
    return np.log(np.where(f.argmax(-1) == y, 0.9, 0.05))


def log_softmax_of(y, f):
    return np.take_along_axis(log_softmax(f, axis=-1), y.astype(int)[None, :, None], -1)[..., 0]


CHOICES = {
    "probit": ("probit", Probit(), binary, probit, 0.1),
    "logistic": (LOGISTIC, Logistic(nodes=60), binary, logistic, 0.05),
    # t has variance df / (df - 2) = 2
    "student_t": (
        {"student_t": {"df": 4.0}},
        StudentT.initial(0.5, 0, "float64", df=4.0),
        regression,
        lambda y, f: stats.t.logpdf(y, 4.0, f, np.sqrt(0.5 / 2)),
        0.1,
    ),
    "softmax": ({"softmax": {"samples": 512}}, Softmax(3, samples=512), three_classes, log_softmax_of, 0.2),
    "robust_max": ({"robust_max": {"epsilon": 0.1}}, RobustMax(3, epsilon=0.1), three_classes, log_robust_max, 1.5),
}


@pytest.mark.parametrize("name", CHOICES)
def test_the_bound_lies_below_the_exact_evidence_and_natural_steps_come_near_it(name):
    spec, likelihood, make, log_likelihood, gap = CHOICES[name]
    data, noise = make(3), 0.05 if make is binary else 0.0
    layer = layer_at(data.X, noise or None)
    K, y, error = np.asarray(layer.kernel.cross(data.X, data.X)) + noise * np.eye(3), np.asarray(data.y), 0.0
    if make is three_classes:
        exact, error = sampled_evidence(K, y, 3, log_likelihood)
    else:
        exact = exact_evidence(K, y, log_likelihood=log_likelihood)
    arbitrary, optimum = bounds(spec, data, likelihood, layer)
    assert (arbitrary < exact).all()
    assert exact - gap < optimum < exact - 4 * error


@pytest.mark.parametrize("likelihood", ["probit", "softmax", {"robust_max": {"epsilon": 0.1}}], ids=str)
def test_natural_steps_end_where_the_bound_is_flat_in_every_q(likelihood):
    """Robust-max is not log-concave: without `keep_definite` its steps leave the positive definite precisions."""
    data = binary(20) if likelihood == "probit" else three_classes(20)
    layer = layer_at(data.X[:4])
    method = SVI(name="svi", inducing=4, optimiser=FROZEN, natural_step=0.5, likelihood=likelihood)
    state, _ = train(method, data, 150, start_layer(method, data, layer))
    p = state.parameters
    slope = jax.jit(jax.grad(lambda q: method.bound(VariationalParameters(p.layer, p.likelihood, q), data)))(p.q)
    np.testing.assert_allclose(ravel_pytree(slope)[0], 0.0, atol=1e-6)
    if likelihood != "probit":
        assert p.q.mean.shape == (3, 4) and not np.allclose(p.q.mean[0], p.q.mean[1])
        np.testing.assert_allclose(np.exp(predict(method, state, data.X).log_probs).sum(1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("network", ["vi_kw", "vi_g", "sgld", "hmc", "ensemble", "mile", "laplace"])
def test_networks_refuse_robust_max_whose_log_density_has_no_slope(network):
    """Its gradient is 0 and its values near a point are equal, so that gradient steps would not see the targets."""
    f, y = jnp.asarray([[0.3, -1.0, 0.8], [2.0, 0.1, 0.5]]), jnp.asarray([0.0, 2.0])
    value = lambda f: jnp.sum(RobustMax(3).log_prob(f, y))
    assert (jax.grad(value)(f) == 0.0).all() and all(value(f.at[0, c].add(0.1)) == value(f) for c in range(3))
    words = ["dataset=wine", f"method={network}", "method.likelihood={robust_max: {epsilon: 0.01}}"]
    with pytest.raises(ConfigError, match=rf"^{network} needs a .* or softmax likelihood, not robust_max"):
        build_method(compose(words)["method"])


ADAM = optax.adam(0.05)


def counts(n=40):
    """n rows of `inputs` with counts of a smooth rate, as one batch."""
    X = inputs(n)
    rate = np.exp(1.0 + np.sin(2.0 * np.asarray(X)[:, 0]))
    return whole(X, jnp.asarray(np.random.default_rng(3).poisson(rate).astype(float)), 1)


@jax.jit
def arrays_of(predictive, y):
    """`predictive.arrays`, compiled."""
    return predictive.arrays(y)


@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_the_bound_of_counts_lies_below_the_exact_evidence_and_natural_steps_come_near_it(name):
    data = counts(3)
    layer = layer_at(data.X, None)
    method = SVI(name="svi", inducing=3, optimiser=FROZEN, natural_step=0.3, likelihood=name)
    start = method.init(data, key=KEY)
    likelihood = start.parameters.likelihood
    assert np.isclose(likelihood.log_rate, np.log(np.mean(np.asarray(data.y))))
    of = lambda mu: stats.poisson(mu) if likelihood.shape is None else stats.nbinom(10.0, 10.0 / (10.0 + mu))
    log_likelihood = lambda y, f: of(np.exp(float(likelihood.log_rate) + f)).logpmf(y)
    K = np.asarray(layer.kernel.cross(data.X, data.X))
    exact = exact_evidence(K, np.asarray(data.y), log_likelihood=log_likelihood)
    parameters = VariationalParameters(layer, likelihood, start.parameters.q)
    state, _ = train(method, data, 80, start_at(method, data, parameters))
    at_prior, optimum = (float(bound_of(method, p, data)) for p in (parameters, state.parameters))
    assert at_prior < optimum < exact
    assert exact - 0.1 < optimum


def with_q(method, data, likelihood):
    """Parameters with an arbitrary q of the mean, and where there is a second function its prior."""
    layer, q = layer_at(data.X[:4], None), random_q(0, 4, 1)
    if likelihood.latents() == 2:
        q = jax.tree.map(lambda a, b: jnp.stack([a, b]), q, Normal(jnp.zeros(4), jnp.eye(4)))
    return VariationalParameters(layer, likelihood, q)


def test_noise_that_does_not_deviate_is_gaussian_and_counts_of_a_large_shape_are_poisson_counts():
    data, method = regression(), SVI(name="svi", inducing=4)
    gaussian = with_q(method, data, Gaussian.initial(0.3, 0, "float64"))
    varying = Heteroscedastic(jnp.log(0.3), jnp.asarray(-30.0))
    same = with_q(method, data, varying)
    np.testing.assert_allclose(bound_of(method, same, data), bound_of(method, gaussian, data), rtol=1e-12)
    one, two = (data.y, 0.2 * jnp.ones(25)), (jnp.stack([data.y, data.y], 1), 0.2 * jnp.ones((25, 2)))
    arrays = [arrays_of(p.likelihood.predictive(*args), data.y) for p, args in ((gaussian, one), (same, two))]
    for name in arrays[0]:
        np.testing.assert_allclose(arrays[1][name], arrays[0][name], rtol=1e-5, atol=1e-8, err_msg=name)
    data, method = counts(), SVI(name="svi", inducing=4)
    poisson = with_q(method, data, Poisson(jnp.asarray(0.3), None))
    binomial = with_q(method, data, likelihoods.NegativeBinomial(jnp.asarray(0.3), jnp.log(1e9)))
    np.testing.assert_allclose(bound_of(method, binomial, data), bound_of(method, poisson, data), rtol=1e-6)


def test_noise_that_varies_is_found_where_it_is():
    X = inputs(120)
    std = np.where(np.asarray(X)[:, 0] > 0, 0.8, 0.1)
    data = whole(X, jnp.asarray(np.sin(np.asarray(X)[:, 1]) + std * np.random.default_rng(5).normal(size=120)))
    method = SVI(name="svi", inducing=20, natural_step="auto", likelihood="heteroscedastic", optimiser=ADAM)
    state, objective = train(method, data, 200)
    assert objective[-1] > objective[0]
    grid = jnp.asarray([[1.2, 0.0], [-1.2, 0.0]])
    wide, narrow = np.sqrt(predict(method, state, grid).var)
    assert wide > 2.5 * narrow


@pytest.mark.parametrize(
    "method",
    [
        SVI(name="svi", inducing=10, natural_step="auto", optimiser=ADAM),
        SVI(name="svi", inducing=10, natural_step="auto", likelihood="negative_binomial", optimiser=ADAM),
        GAM(name="gam", inducing=6, natural_step="auto", optimiser=ADAM),
        DGP(name="dgp", inducing=8, hidden=(1,), optimiser=ADAM),
    ],
    ids=["svi", "svi, negative_binomial", "gam", "dgp"],
)
def test_methods_of_counts_predict_the_rate(method):
    data = counts()
    state, objective = train(method, data, 150)
    assert np.isfinite(objective).all() and objective[-1] > objective[0]
    arrays = arrays_of(predict(method, state, data.X), data.y)
    rate = np.exp(1.0 + np.sin(2.0 * np.asarray(data.X)[:, 0]))
    assert np.corrcoef(arrays["mean"], rate)[0, 1] > 0.8
    assert all(np.isfinite(array).all() for array in arrays.values())
