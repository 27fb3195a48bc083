"""Methods under likelihoods of counts and of noise that varies: bounds below exact evidences, limits, predictions."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import FROZEN, KEY, bound_of, inputs, layer_at, predict, regression, start_at, train
from references import exact_evidence
from scipy import stats

from gpbench.core.gaussians import Normal
from gpbench.core.likelihoods import Gaussian, Heteroscedastic, NegativeBinomial, Poisson
from gpbench.methods.additive.gam import GAM
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.vi.svi import SVI, VariationalParameters
from gpbench.train.batches import whole

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
    layer, random = layer_at(data.X[:4], None), np.random.default_rng(0)
    q = Normal(jnp.asarray(random.normal(size=4)), jnp.eye(4) + 0.3 * jnp.asarray(random.normal(size=(4, 4))))
    if likelihood.latents() == 2:
        q = jax.tree.map(lambda a, b: jnp.stack([a, b]), q, Normal(jnp.zeros(4), jnp.eye(4)))
    return VariationalParameters(layer, likelihood, q)


def test_noise_that_does_not_deviate_is_gaussian_noise():
    data, method = regression(), SVI(name="svi", inducing=4)
    gaussian = with_q(method, data, Gaussian.initial(0.3, 0, "float64"))
    varying = Heteroscedastic(jnp.log(0.3), jnp.asarray(-30.0))
    same = with_q(method, data, varying)
    np.testing.assert_allclose(bound_of(method, same, data), bound_of(method, gaussian, data), rtol=1e-12)
    one, two = (data.y, 0.2 * jnp.ones(25)), (jnp.stack([data.y, data.y], 1), 0.2 * jnp.ones((25, 2)))
    arrays = [arrays_of(p.likelihood.predictive(*args), data.y) for p, args in ((gaussian, one), (same, two))]
    for name in arrays[0]:
        np.testing.assert_allclose(arrays[1][name], arrays[0][name], rtol=1e-5, atol=1e-8, err_msg=name)


def test_negative_binomial_counts_of_a_large_shape_are_poisson_counts():
    data, method = counts(), SVI(name="svi", inducing=4)
    poisson = with_q(method, data, Poisson(jnp.asarray(0.3), None))
    binomial = with_q(method, data, NegativeBinomial(jnp.asarray(0.3), jnp.log(1e9)))
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
