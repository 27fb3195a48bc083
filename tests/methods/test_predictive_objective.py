"""`ppgpr` and `dkl`: the objective of predictions, and the kernel of a network's outputs, in their limits."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, binary, inputs, layer_at, objective_of, predict, regression, start_at, train
from scipy.stats import norm

from gpbench.core.kernels import Deep, SquaredExponential, kernel_spec, lengthscale_prior
from gpbench.core.networks import Affine, Network
from gpbench.errors import ConfigError
from gpbench.methods.parts.variational import kl_of
from gpbench.methods.vi.svi import SVI

DEEP = {"deep": {"hidden": [6, 5], "outputs": 3}}


def ppgpr(**fields):
    return SVI(**{"name": "ppgpr", "data_term": "predictive", "inducing": 6, **fields})


@pytest.mark.parametrize("beta", [1.0, 0.2])
@pytest.mark.parametrize("data", [regression(30), binary(30)], ids=["regression", "binary"])
def test_the_objective_is_the_log_density_of_predictions_less_beta_times_the_divergence(data, beta):
    method = ppgpr(beta=beta)
    state, _ = train(method, data, 5)
    density = np.sum(predict(method, state, data.X).log_prob(data.y))
    parameters = state.parameters
    expected = density - beta * kl_of(parameters) + parameters.layer.log_prior()
    np.testing.assert_allclose(objective_of(method, state, data), expected, rtol=1e-10)
    bound = objective_of(SVI(inducing=6), state, data)  # Jensen: log E p(y|f) is above E log p(y|f)
    assert objective_of(ppgpr(), start_at(ppgpr(), data, parameters), data) > bound + 1e-3 or beta != 1.0


def test_without_variance_of_f_the_objective_is_that_of_svi_without_its_variance_term():
    data, method = regression(30), ppgpr(inducing=30)
    state = method.init(data, key=KEY)
    q = eqx.tree_at(lambda q: q.root, state.parameters.q, jnp.zeros((30, 30)))  # no variance, but for rounding
    mean, variance = method.marginals(eqx.tree_at(lambda s: s.parameters.q, state, q), data.X)
    np.testing.assert_allclose(variance, 0.0, atol=1e-6)
    likelihood = state.parameters.likelihood
    forms = SVI(), SVI(data_term="predictive")
    terms = [form.row_terms(likelihood, mean, variance, variance, data.y) for form in forms]
    np.testing.assert_allclose(*terms, atol=1e-5)


def test_training_raises_its_own_objective_above_that_of_the_bounds_optimum():
    data = regression(60)
    own, bound = ppgpr(), SVI(inducing=6)
    best, other = (train(method, data, 200)[0] for method in (own, bound))
    assert objective_of(own, best, data) > objective_of(own, other, data) + 0.5
    assert objective_of(bound, other, data) > objective_of(bound, best, data) + 0.5


def test_beta_is_a_setting_of_the_state_and_natural_gradients_are_refused():
    data, method = regression(20), ppgpr(search={"beta": [0.05, 1.0]}, optimiser=optax.adam(0.1))
    state = method.with_settings(method.init(data, key=KEY), {"beta": 0.05})
    moved, _ = train(method, data, 3, state)
    assert method.settings(moved)["beta"] == 0.05
    assert "beta" not in SVI().settings(SVI(inducing=5).init(data, key=KEY))
    with pytest.raises(ConfigError, match="leaves nothing to choose"):
        ppgpr(beta=0.5, search={"beta": [0.05, 1.0]}).init(data, key=KEY)
    with pytest.raises(ConfigError, match="conditional=prior"):
        ppgpr(conditional="scaled").init(data, key=KEY)
    for fields in ({"data_term": "predictive"}, {"beta": 0.5}):
        with pytest.raises(ConfigError, match="natural_step=null"):
            SVI(natural_step=0.1, optimiser=optax.adam(0.1), **fields).init(data, key=KEY)


def test_the_kernel_of_an_identity_is_its_base_and_svi_with_it_is_svi():
    data, base = regression(20), SquaredExponential(jnp.array(0.3), jnp.log(jnp.array([0.8, 1.5])))
    identity = Network((Affine(jnp.eye(2), jnp.zeros(2)),))
    deep = Deep(identity, base, hidden=(), outputs=2)
    np.testing.assert_allclose(deep.cross(data.X, data.X[:3]), base.cross(data.X, data.X[:3]), rtol=1e-12)
    start = SVI(inducing=5).init(data, key=KEY).parameters
    values = [
        SVI(inducing=5).bound(eqx.tree_at(lambda p: p.layer, start, layer_at(data.X[:5], None, kernel=kernel)), data)
        for kernel in (base, deep)
    ]
    np.testing.assert_allclose(*values, rtol=1e-10)


def test_where_lengthscales_have_a_prior_a_deep_kernel_has_one_on_outputs_and_weights():
    kernel = kernel_spec(DEEP).initial(inputs(20), start="median")
    centre = np.log(2.0 * np.sqrt(3.0))  # of its three outputs, not of the two inputs
    expected = norm.logpdf(0.5 * np.asarray(kernel.base.log_lengthscale2), centre, 0.7).sum()
    expected += sum(norm.logpdf(np.asarray(leaf)).sum() for leaf in jax.tree.leaves(kernel.network))
    prior = lengthscale_prior({"median": 2.0, "spread": 0.7})
    np.testing.assert_allclose(prior.log_prob(kernel, 2), expected, rtol=1e-12)
    other = kernel_spec({"deep": {**DEEP["deep"], "seed": 1}}).initial(inputs(20), start="median")
    assert not np.allclose(other.network.layers[0].weight, kernel.network.layers[0].weight)


def test_a_deep_kernel_learns_a_step_that_its_base_smooths():
    """On y = sign(x₁ + x₂) with little noise, a network's outputs have the step, and a stationary kernel has not."""
    X = inputs(200)
    data = regression(200)
    data = eqx.tree_at(lambda d: d.y, data, jnp.sign(X[:, 0] + X[:, 1]))
    errors = {}
    for kernel in ("squared_exponential", DEEP):
        method = SVI(name="dkl", kernel=kernel, inducing=20, optimiser=optax.adam(0.02), natural_step=0.5)
        state, _ = train(method, data, 400)
        new = inputs(200, seed=7)
        errors[str(kernel)] = np.mean((predict(method, state, new).mean - np.sign(new[:, 0] + new[:, 1])) ** 2)
    assert errors[str(DEEP)] < 0.7 * errors["squared_exponential"]
