"""A prior on the lengthscales, and a floor of the noise, in every method that has them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose
from problems import KEY, binary, objective_of, regression, train

from gpbench.core.kernels import LengthscalePrior, kernel_spec, lengthscale_prior
from gpbench.core.optimisers import adaptive_rates
from gpbench.errors import ConfigError
from gpbench.methods.deep.dgp import DGP
from gpbench.methods.deep.dsdgp import DSDGP
from gpbench.methods.ep.gfitc import GFITC
from gpbench.methods.ep.sep import SEP
from gpbench.methods.exact.gpr import GPR
from gpbench.methods.vi.svi import SVI
from gpbench.methods.vi.vsgpr import VSGPR

NARROW = {"median": 2.0, "spread": 1e-3}


def test_the_density_is_that_of_the_logarithms_and_its_median_grows_with_the_root_of_the_inputs():
    from scipy.stats import norm

    X = jnp.asarray(np.random.default_rng(0).normal(size=(9, 4)))
    kernel = kernel_spec({"sum": ["matern32", {"squared_exponential": {"isotropic": True}}, "linear"]}).initial(
        X, start="median"
    )
    lengthscales = [kernel.parts[0].lengthscales, kernel.parts[1].lengthscales]
    expected = sum(norm(np.log(2.0 * np.sqrt(4)), 0.7).logpdf(np.log(part)).sum() for part in lengthscales)
    assert_allclose(LengthscalePrior(2.0, 0.7).log_prob(kernel, 4), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "make, data",
    [
        (lambda **p: SEP(inducing=6, optimiser=adaptive_rates(), **p), binary(25)),
        (lambda **p: GFITC(inducing=6, tolerance=1e-11, **p), binary(25)),
        (lambda **p: SVI(inducing=6, **p), regression(25)),
        (lambda **p: VSGPR(inducing=6, **p), regression(25)),
        (lambda **p: GPR(**p), regression(25)),
    ],
    ids=["sep", "gfitc", "svi", "vsgpr", "gpr"],
)
def test_the_objective_includes_the_prior(make, data):
    free, held = make(), make(lengthscale_prior=NARROW)
    state = free.init(data, key=KEY)
    kernel = state.parameters if hasattr(state, "parameters") else state
    kernel = getattr(kernel, "layer", kernel).kernel
    prior = LengthscalePrior(**NARROW).log_prob(kernel, 2)
    reported = [train(method, data, 1)[1][0] for method in (free, held)]
    assert_allclose(reported[1] - reported[0], prior, rtol=1e-8)
    assert_allclose(
        objective_of(held, held.init(data, key=KEY), data) - objective_of(free, state, data), prior, rtol=1e-8
    )


@pytest.mark.parametrize("deep", [DGP, DSDGP], ids=["dgp", "dsdgp"])
def test_the_loss_of_deep_models_includes_the_prior_of_every_layer(deep):
    fields = {"inducing": 4, "hidden": [3], "start": "rows", "optimiser": optax.adam(0.01)}
    data, free, held = regression(10), deep(**fields), deep(**fields, lengthscale_prior=NARROW)
    parameters = free.init_parameters(data, key=KEY)
    losses = [jax.jit(method.loss)(parameters, data, key=KEY)[0] for method in (free, held)]
    prior = LengthscalePrior(**NARROW)
    expected = sum(prior.log_prob(layer.kernel, inputs) for layer, inputs in zip(parameters.layers, (2, 3)))
    assert_allclose(losses[0] - losses[1], expected, rtol=1e-8)


@pytest.mark.parametrize("method", [GPR(lengthscale_prior=NARROW), VSGPR(inducing=6, lengthscale_prior=NARROW)])
def test_a_narrow_prior_holds_the_lengthscales_at_its_median(method):
    state, _ = train(method, regression(25), 30)
    kernel = getattr(state.parameters, "layer", state.parameters).kernel
    assert_allclose(kernel.lengthscales, 2.0 * np.sqrt(2), rtol=1e-2)


@pytest.mark.parametrize("method", [GPR(noise_floor=0.01), VSGPR(inducing=12, noise_floor=0.01)])
def test_the_noise_of_targets_without_any_ends_at_its_floor(method):
    data = regression(25)
    data = eqx.tree_at(lambda data: data.y, data, jnp.sin(data.X[:, 0]))
    state, _ = train(method, data, 60)
    assert 0.01 <= float(state.parameters.likelihood.noise) < 0.0101


@pytest.mark.parametrize("value", [3, {"median": 1.0}, {"median": 0.0, "spread": 1.0}, {"median": 1.0, "spread": "x"}])
def test_what_is_no_prior_is_one_line(value):
    with pytest.raises(ConfigError, match=r"method\.lengthscale_prior=.*: must be null, or "):
        lengthscale_prior(value)
    assert lengthscale_prior(None) is None
