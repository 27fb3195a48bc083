"""Doubly stochastic deep GPs: svi as the model without hidden layers, and a bound that no noise exceeds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, bound_of, inputs, predict, regression, train

from gpbench.config.build import build_method
from gpbench.config.compose import compose
from gpbench.errors import ConfigError
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.parts.sparse_layer import SparseLayer
from gpbench.methods.vi import svi
from gpbench.methods.vi.svi import SVI

ADAM = optax.adam(0.02)


def dsdgp(**fields):
    return DSDGP(name="dsdgp", **{"inducing": 5, "optimiser": ADAM, **fields})


def test_without_hidden_layers_the_bound_is_svis():
    data, method = regression(), dsdgp(hidden=())
    state, _ = train(method, data, 30)
    p = state.parameters
    q = jax.tree.map(lambda leaf: leaf[0], p.q[0])
    layer: SparseLayer = p.layers[0].unit(p.layers[0].Z[0])
    ours = -jax.jit(lambda p: method.loss(p, data, key=KEY)[0])(p)
    theirs = bound_of(
        SVI(name="svi", inducing=5, optimiser=ADAM), svi.VariationalParameters(layer, p.likelihood, q), data
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_training_raises_the_bound_and_explains_the_targets():
    data, method = regression(40), dsdgp(hidden=(2,))
    state, objective = train(method, data, 300)
    assert objective[-1] > objective[0] + 10
    predictive = predict(method, state, data.X)
    assert np.mean((predictive.mean - data.y) ** 2) < 0.5 * np.var(data.y)


def test_hidden_layers_start_at_their_linear_mean_which_training_leaves_alone():
    data, method = regression(20), dsdgp(hidden=(2, 1))
    start = method.init(data, key=KEY).parameters
    np.testing.assert_allclose(start.means[0], np.eye(2))
    state, _ = train(method, data, 5)
    assert eqx.tree_equal(state.parameters.means, start.means)
    assert not eqx.tree_equal(state.parameters.layers, start.layers)


def test_a_narrow_first_layer_sees_the_principal_components():
    X = inputs(50) @ jnp.asarray([[3.0, 0.0], [0.0, 0.1]])
    data = eqx.tree_at(lambda b: b.X, regression(50), X)
    (axis,) = dsdgp(hidden=(1,)).init(data, key=KEY).parameters.means
    np.testing.assert_allclose(np.abs(axis[:, 0]), [1.0, 0.0], atol=0.05)


def test_lbfgs_is_refused_as_the_bound_is_a_random_estimate():
    with pytest.raises(ConfigError, match=r"^method\.optimiser=null: "):
        build_method(compose(["method=dsdgp", "dataset=sinc", "method.optimiser=null"])["method"])
