"""Methods with hidden layers, and deep GPs, explain the targets of their training rows; minibatches are unbiased."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from problems import KEY, predict, regression, train

from gpbench.methods.additive.gam import GAM
from gpbench.methods.base import Batch
from gpbench.methods.bnn.dropout import Dropout
from gpbench.methods.bnn.sgld import SGLD
from gpbench.methods.bnn.vi_g import VIG
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.vi.svi import SVI

ADAM = optax.adam(0.02)
DEEP = {"inducing": 5, "optimiser": ADAM}
TRAINED = {
    "dgp": DGP(name="dgp", hidden=(2, 2), hidden_covariance="full", **DEEP),
    "dgp, stochastic EP": DGP(name="dgp", hidden=(2,), energy="sep", batch_size=10, **DEEP),
    "dsdgp": DSDGP(name="dsdgp", hidden=(2,), **DEEP),
    "dropout": Dropout(name="dropout", hidden=(8,), samples=50, optimiser=ADAM),
    "vi_g": VIG(name="vi_g", hidden=(4,), samples=50, target_noise=0.3, optimiser=ADAM),
}


@pytest.mark.parametrize("method", TRAINED.values(), ids=TRAINED)
def test_training_raises_the_objective_and_explains_the_targets(method):
    data = regression(40)
    state, objective = train(method, data, 300 if "dgp" in method.name else 500)
    if not getattr(method, "batch_size", None):
        assert np.mean(objective[-50:]) > np.mean(objective[:50])
    assert np.mean((predict(method, state, data.X).mean - data.y) ** 2) < 0.5 * np.var(data.y)


ESTIMATED = {
    "dgp": (DGP(name="dgp", hidden=(2,), batch_size=5, **DEEP), "tied_energy"),
    "gam": (GAM(name="gam", inducing=4, batch_size=5, optimiser=ADAM, natural_step=None), "bound"),
    "sgld": (SGLD(name="sgld", hidden=(2,), batch_size=5), "log_joint"),
    "svi": (SVI(name="svi", inducing=5, batch_size=5, optimiser=ADAM), "bound"),
}


@pytest.mark.parametrize(("method", "name"), ESTIMATED.values(), ids=ESTIMATED)
def test_the_mean_over_an_epoch_of_minibatches_is_the_objective_of_all_rows(method, name):
    """An identity of functions of the parameters, near their start and further off, and so of their gradients too."""
    data, random = regression(20), np.random.default_rng(0)
    state = method.init(data, key=KEY)
    parameters = state.position if hasattr(state, "position") else state.parameters
    value = jax.jit(lambda parameters, batch: getattr(method, name)(parameters, batch))
    cut = lambda i: Batch(*(a[i] for a in (data.X, data.y, data.index, data.weight)), data.total, data.classes)
    parts = [cut(jnp.asarray(i)) for i in random.permutation(20).reshape(4, 5)]
    for size in (0.0, 0.1):
        moved = jax.tree.map(lambda leaf, size=size: leaf + size * random.normal(size=jnp.shape(leaf)), parameters)
        np.testing.assert_allclose(np.mean([value(moved, part) for part in parts]), value(moved, data), rtol=1e-10)
